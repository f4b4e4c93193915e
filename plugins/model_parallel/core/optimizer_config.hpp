#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "core/learning_rate.hpp"
#include "troupe/model_parallel/v1/optimizer.pb.h"
#include "troupe/result.hpp"

/// What an optimizer's config says, with defaults filled in. Groups of parameters are numbered:
/// 0 is what no group claims, i + 1 is `groups[i]`.

namespace troupe::mp {

/// Whether the whole of `name` matches: `*` stands for any characters, `?` for one.
bool matches_pattern(const std::string& pattern, const std::string& name);

/// The group that a parameter belongs to.
std::size_t group_of(const v1::Optimizer& optimizer, const std::string& parameter);

/// Learning rate of a group before the schedule, and its weight decay.
double learning_rate_of(const v1::Optimizer& optimizer, std::size_t group);
double weight_decay_of(const v1::Optimizer& optimizer, std::size_t group);

/// How many numbers the optimizer keeps for each of a parameter's.
std::size_t state_per_element(const v1::Optimizer& optimizer);

/// Checks what the ranges of the fields cannot. `parameters` are the names of the whole model's;
/// `locate` turns a path within the optimizer ("sgd.nesterov") into what errors name as their
/// place.
Result<void> check_optimizer(const v1::Optimizer& optimizer,
                             const std::vector<std::string>& parameters,
                             const std::function<std::string(const std::string&)>& locate);

/// The learning rates of all groups.
Result<std::vector<LearningRate>> learning_rates(
    const v1::Optimizer& optimizer, const RunLength& run,
    const std::function<std::string(const std::string&)>& locate);

}  // namespace troupe::mp
