#include "core/optimizer_check.hpp"

#include <cmath>

namespace troupe::mp {
namespace {

using Locate = std::function<std::string(const std::string&)>;

constexpr const char* sgd_path = "optimizer.sgd.";

/// Finite, at least 0, and at most 1 where `share` says that it is a share.
Result<void> check_number(double value, const std::string& name, bool share, const Locate& locate) {
  if (std::isfinite(value) && value >= 0 && (!share || value <= 1)) return {};
  return bad_input(locate(sgd_path + name), name + " is " + std::to_string(value),
                   share ? "write a number from 0 to 1" : "write a finite number, at least 0");
}

Result<void> check_sgd(const v1::Sgd& sgd, const Locate& locate) {
  if (!sgd.has_lr())
    return bad_input(locate("optimizer.sgd.lr"), "lr is missing",
                     "write the learning rate, for example lr: 0.1");
  TROUPE_TRY(check_number(sgd.lr(), "lr", false, locate));
  TROUPE_TRY(check_number(sgd.momentum(), "momentum", true, locate));
  TROUPE_TRY(check_number(sgd.dampening(), "dampening", true, locate));
  TROUPE_TRY(check_number(sgd.weight_decay(), "weight_decay", false, locate));
  if (sgd.nesterov() && (sgd.momentum() == 0 || sgd.dampening() != 0))
    return bad_input(locate("optimizer.sgd.nesterov"),
                     "Nesterov momentum needs momentum and no dampening",
                     "set momentum above 0 and leave dampening out");
  return {};
}

}  // namespace

Result<void> check_optimizer(const std::optional<v1::Optimizer>& optimizer, const Locate& locate) {
  if (!optimizer || optimizer->kind_case() == v1::Optimizer::KIND_NOT_SET)
    return bad_input(locate("optimizer"), "an optimizer is needed",
                     "for example optimizer { sgd { lr: 0.1 } }");
  return check_sgd(optimizer->sgd(), locate);
}

Result<void> check_clip_grad_norm(double limit, const std::string& where) {
  if (std::isfinite(limit) && limit >= 0) return {};
  return bad_input(where, "clip_grad_norm is " + std::to_string(limit),
                   "write a finite number; 0 means no clipping");
}

}  // namespace troupe::mp
