#include "core/layer_reads.hpp"

#include "core/value_ref.hpp"

namespace troupe::mp {
namespace {

Result<void> check_read(const v1::ValueRef& read, const std::string& layer,
                        const std::string& where, const OutputCounts& earlier) {
  if (read.layer().empty() == read.field().empty())
    return bad_input(
        where,
        "layer \"" + layer + "\" must read either an output of a layer or a field of the batch",
        "write `layer` or `field`");
  if (read.layer().empty()) {
    if (read.slot() != 0) return bad_input(where + ".slot", "a batch field has no slots");
    return {};
  }
  const auto producer = earlier.find(read.layer());
  if (producer == earlier.end())
    return bad_input(
        where + ".layer",
        "layer \"" + layer + "\" reads " + describe(read) + ", which is not an earlier layer",
        "a layer reads from layers above it");
  if (read.slot() >= producer->second)
    return bad_input(where + ".slot",
                     "layer \"" + layer + "\" reads " + describe(read) + ", which has only " +
                         std::to_string(producer->second),
                     "slots count from 0");
  return {};
}

}  // namespace

Result<void> check_reads(const v1::Layer& layer, const std::string& path,
                         const OutputCounts& earlier) {
  for (int i = 0; i < layer.reads_size(); ++i)
    TROUPE_TRY(check_read(layer.reads(i), layer.name(), path + ".reads[" + std::to_string(i) + "]",
                          earlier));
  return {};
}

}  // namespace troupe::mp
