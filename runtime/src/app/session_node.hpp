#pragma once

#include <sys/types.h>

#include <string>

#include <caf/actor.hpp>

namespace troupe {

/// One node of a job, as its driver knows it.
struct SessionNode {
  std::string name;
  std::string launcher_address;  ///< empty: a child of this process
  caf::actor launcher;
  pid_t pid = 0;        ///< of its worker; 0: none yet
  std::string address;  ///< of its worker
  caf::actor control;   ///< its node actor

  bool local() const { return launcher_address.empty(); }
  std::string who() const { return "node " + name; }
};

}  // namespace troupe
