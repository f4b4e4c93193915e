#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "troupe/api.hpp"

namespace troupe {

/// What kind of failure an error is; decides the exit code of `troupe`.
enum class ErrorCode {
  internal,     ///< a defect, or an exception in a layer: exit code 1
  bad_input,    ///< usage, configuration or a file the user gave: exit code 2
  cluster,      ///< a node lost, a peer unreachable: exit code 3
  interrupted,  ///< the user asked to stop: exit code 130
};

/// A failure as a value. Printed as `where: what; hint`.
struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string where;  ///< file:line:column, node, stage and step, ...: what the reader looks at
  std::string what;   ///< one clause, no trailing punctuation
  std::string hint;   ///< how to mend it; may be empty

  /// `where: what; hint` on one line; line breaks inside the parts become spaces.
  TROUPE_API std::string to_string() const;
};

/// The exit code of `troupe` for an error of this kind.
TROUPE_API int exit_code(ErrorCode code);

TROUPE_API Error internal_error(std::string where, std::string what, std::string hint = {});
TROUPE_API Error bad_input(std::string where, std::string what, std::string hint = {});
TROUPE_API Error cluster_error(std::string where, std::string what, std::string hint = {});

/// Either a value or an `Error`. Errors on the data path travel as values; nothing here throws,
/// and reading the side that is not there is a programmer error (undefined).
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return *std::get_if<0>(&state_); }
  const T& value() const& { return *std::get_if<0>(&state_); }
  T&& value() && { return std::move(*std::get_if<0>(&state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  Error& error() & { return *std::get_if<1>(&state_); }
  const Error& error() const& { return *std::get_if<1>(&state_); }
  Error&& error() && { return std::move(*std::get_if<1>(&state_)); }

 private:
  std::variant<T, Error> state_;
};

/// Success without a value, or an `Error`. `return {};` is success.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit

  bool ok() const { return !error_; }
  explicit operator bool() const { return ok(); }
  Error& error() & { return *error_; }
  const Error& error() const& { return *error_; }
  Error&& error() && { return std::move(*error_); }

 private:
  std::optional<Error> error_;
};

/// Returns the error of `expression` from the enclosing function, if it has one.
#define TROUPE_TRY(expression)                                     \
  do {                                                             \
    if (auto troupe_try_result = (expression); !troupe_try_result) \
      return std::move(troupe_try_result).error();                 \
  } while (false)

/// `TROUPE_ASSIGN(auto x, f())`: declares or assigns the value of `f()`, or returns its error.
#define TROUPE_ASSIGN(target, expression) \
  TROUPE_ASSIGN_NAMED(TROUPE_CONCAT(troupe_assign_, __LINE__), target, expression)
#define TROUPE_ASSIGN_NAMED(name, target, expression) \
  auto name = (expression);                           \
  if (!name) return std::move(name).error();          \
  target = std::move(name).value()
#define TROUPE_CONCAT(a, b) TROUPE_CONCAT_INNER(a, b)
#define TROUPE_CONCAT_INNER(a, b) a##b

}  // namespace troupe
