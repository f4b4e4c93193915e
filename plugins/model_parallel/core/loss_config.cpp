#include "core/loss_config.hpp"

#include "core/value_ref.hpp"

namespace troupe::mp {
namespace {

/// PyTorch's.
constexpr std::int64_t default_ignore_index = -100;

template <class T>
std::uint64_t count_other_than(std::int64_t ignored, const HostTensor& targets) {
  const auto* values = targets.as<T>();
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < targets.data.size() / sizeof(T); ++i)
    count += static_cast<std::int64_t>(values[i]) != ignored ? 1 : 0;
  return count;
}

}  // namespace

Result<void> check_loss(const v1::Loss& loss, const Locate& locate) {
  if (!loss.has_custom()) return {};
  const auto& custom = loss.custom();
  if (!is_loss_kind(custom.kind()))
    return bad_input(locate("loss.custom.kind"),
                     "\"" + custom.kind() + "\" is not the kind of a loss",
                     "kinds of losses begin with \"loss.\"");
  if (custom.has_ignore_index() && custom.targets() != v1::Loss::Custom::TARGETS_CLASS_INDICES)
    return bad_input(locate("loss.custom.ignore_index"),
                     describe(loss) + " has no class indices to ignore",
                     "write targets: TARGETS_CLASS_INDICES, or leave ignore_index out");
  return {};
}

void set_loss_kind(const v1::Loss& loss, v1::Layer& layer) {
  auto& attributes = *layer.mutable_attributes();
  switch (loss.kind_case()) {
    case v1::Loss::kCrossEntropy:
      layer.set_kind("loss.cross_entropy");
      attributes["label_smoothing"] = loss.cross_entropy().label_smoothing();
      attributes["ignore_index"] = static_cast<double>(ignore_index_of(loss));
      return;
    case v1::Loss::kBceWithLogits: {
      layer.set_kind("loss.bce_with_logits");
      const auto& weights = loss.bce_with_logits().pos_weight();
      for (int i = 0; i < weights.size(); ++i)
        attributes["pos_weight." + std::to_string(i)] = weights[i];
      return;
    }
    case v1::Loss::kL1: layer.set_kind("loss.l1"); return;
    case v1::Loss::kHuber:
      layer.set_kind("loss.huber");
      attributes["delta"] = loss.huber().has_delta() ? loss.huber().delta() : 1;
      return;
    case v1::Loss::kCustom:
      layer.set_kind(loss.custom().kind());
      attributes = loss.custom().attributes();
      if (wants_class_indices(loss))
        attributes["ignore_index"] = static_cast<double>(ignore_index_of(loss));
      return;
    case v1::Loss::kMse:
    case v1::Loss::KIND_NOT_SET: layer.set_kind("loss.mse"); return;
  }
}

bool wants_class_indices(const v1::Loss& loss) {
  return loss.has_cross_entropy() ||
         loss.custom().targets() == v1::Loss::Custom::TARGETS_CLASS_INDICES;
}

bool wants_numbers(const v1::Loss& loss) {
  if (loss.has_custom()) return loss.custom().targets() == v1::Loss::Custom::TARGETS_NUMBERS;
  return loss.kind_case() != v1::Loss::KIND_NOT_SET && !wants_class_indices(loss);
}

std::string describe(const v1::Loss& loss) {
  switch (loss.kind_case()) {
    case v1::Loss::kMse: return "mean squared error";
    case v1::Loss::kCrossEntropy: return "cross-entropy";
    case v1::Loss::kBceWithLogits: return "binary cross-entropy";
    case v1::Loss::kL1: return "mean absolute error";
    case v1::Loss::kHuber: return "Huber's loss";
    case v1::Loss::kCustom: return "the loss \"" + loss.custom().kind() + "\"";
    case v1::Loss::KIND_NOT_SET: break;
  }
  return "no loss";
}

std::int64_t ignore_index_of(const v1::Loss& loss) {
  if (loss.custom().has_ignore_index()) return loss.custom().ignore_index();
  return loss.cross_entropy().has_ignore_index() ? loss.cross_entropy().ignore_index()
                                                 : default_ignore_index;
}

std::uint64_t TargetCount::in(const HostTensor& targets) const {
  if (of_targets_) {
    switch (targets.dtype) {
      case v1::DTYPE_INT64: return count_other_than<std::int64_t>(ignored_, targets);
      case v1::DTYPE_INT32: return count_other_than<std::int32_t>(ignored_, targets);
      case v1::DTYPE_INT16: return count_other_than<std::int16_t>(ignored_, targets);
      case v1::DTYPE_INT8: return count_other_than<std::int8_t>(ignored_, targets);
      case v1::DTYPE_UINT8: return count_other_than<std::uint8_t>(ignored_, targets);
      default: break;
    }
  }
  return targets.shape.empty() ? 0 : static_cast<std::uint64_t>(targets.shape[0]);
}

}  // namespace troupe::mp
