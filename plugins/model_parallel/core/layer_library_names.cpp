#include "core/layer_library_names.hpp"

#include <set>

namespace troupe::mp {
namespace {

bool is_name(const std::string& name) {
  constexpr const char* allowed =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.";
  return !name.empty() && name.front() != '.' &&
         name.find_first_not_of(allowed) == std::string::npos;
}

}  // namespace

Result<void> check_layer_libraries(const std::vector<std::string>& names, const Locate& locate) {
  std::set<std::string> seen;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string path = "layer_libraries[" + std::to_string(i) + "]";
    if (!is_name(names[i]))
      return bad_input(locate(path), "\"" + names[i] + "\" is not the name of a library",
                       "write the name of a file in the nodes' plugin directories, without the "
                       "directory and without .so");
    if (!seen.insert(names[i]).second)
      return bad_input(locate(path), "\"" + names[i] + "\" is there twice", "write it once");
  }
  return {};
}

}  // namespace troupe::mp
