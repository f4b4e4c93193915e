#pragma once

#include <string>

#include "troupe/api.hpp"

namespace troupe {

/// What the user of `troupe run` sees. On a terminal `progress` redraws one line; otherwise it
/// prints a plain line at most every few seconds. With `--json` both print nothing and `result`
/// prints one object. Thread-safe.
class TROUPE_API Console {
 public:
  virtual ~Console();
  /// A line of text on stdout.
  virtual void line(const std::string& text) = 0;
  /// `fraction` in [0, 1]; `text` holds loss, rate and time left.
  virtual void progress(double fraction, const std::string& text) = 0;
  /// The job's result as one JSON object, printed with `--json` only.
  virtual void result(const std::string& json) = 0;
};

}  // namespace troupe
