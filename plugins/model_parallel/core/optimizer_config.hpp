#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/learning_rate.hpp"
#include "troupe/api.hpp"
#include "troupe/model_parallel/host_tensor.hpp"
#include "troupe/model_parallel/v1/optimizer.pb.h"
#include "troupe/result.hpp"

/// What an optimizer's config says, with defaults filled in. Groups of parameters are numbered:
/// 0 is what no group claims, i + 1 is `groups[i]`.

namespace troupe::mp {

/// Whether the whole of `name` matches: `*` stands for any characters, `?` for one.
bool matches_pattern(const std::string& pattern, const std::string& name);

/// The group that a parameter belongs to.
TROUPE_API std::size_t group_of(const v1::Optimizer& optimizer, const std::string& parameter);

/// Learning rate of a group before the schedule, and its weight decay.
double learning_rate_of(const v1::Optimizer& optimizer, std::size_t group);
TROUPE_API double weight_decay_of(const v1::Optimizer& optimizer, std::size_t group);

/// How many numbers the optimizer keeps for each of a parameter's.
std::size_t state_per_element(const v1::Optimizer& optimizer);

/// Turns the path of a field ("optimizer.sgd.lr") into what errors name as its place.
using Locate = std::function<std::string(const std::string& path)>;

/// Checks the optimizer of a training, wherever it was written: there is one, every number is in
/// its range, they go together, and every pattern matches one of `parameters`, the names of the
/// whole model's.
Result<void> check_optimizer(const std::optional<v1::Optimizer>& optimizer,
                             const std::vector<std::string>& parameters, const Locate& locate);

/// Checks the limit of the gradient norm; 0 means that there is none.
Result<void> check_clip_grad_norm(double limit, const std::string& where);

/// The learning rates of all groups.
Result<std::vector<LearningRate>> learning_rates(const v1::Optimizer& optimizer,
                                                 const RunLength& run, const Locate& locate);

}  // namespace troupe::mp
