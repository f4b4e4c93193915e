#include "core/optimizer_config.hpp"

#include <algorithm>
#include <cmath>

#include "troupe/validate.hpp"

namespace troupe::mp {
namespace {

/// The value of an optional field, or what PyTorch takes without it.
template <class Message>
double rate_or(const Message& config, double otherwise) {
  return config.has_lr() ? config.lr() : otherwise;
}

double default_learning_rate(const v1::Optimizer& optimizer) {
  switch (optimizer.kind_case()) {
    case v1::Optimizer::kSgd: return optimizer.sgd().lr();
    case v1::Optimizer::kAdam: return rate_or(optimizer.adam(), 1e-3);
    case v1::Optimizer::kAdamw: return rate_or(optimizer.adamw(), 1e-3);
    case v1::Optimizer::kRmsprop: return rate_or(optimizer.rmsprop(), 1e-2);
    case v1::Optimizer::kLamb: return rate_or(optimizer.lamb(), 1e-3);
    case v1::Optimizer::KIND_NOT_SET: break;
  }
  return 0;
}

double default_weight_decay(const v1::Optimizer& optimizer) {
  switch (optimizer.kind_case()) {
    case v1::Optimizer::kSgd: return optimizer.sgd().weight_decay();
    case v1::Optimizer::kAdam: return optimizer.adam().weight_decay();
    case v1::Optimizer::kAdamw:
      return optimizer.adamw().has_weight_decay() ? optimizer.adamw().weight_decay() : 1e-2;
    case v1::Optimizer::kRmsprop: return optimizer.rmsprop().weight_decay();
    case v1::Optimizer::kLamb: return optimizer.lamb().weight_decay();
    case v1::Optimizer::KIND_NOT_SET: break;
  }
  return 0;
}

/// The group of `parameters` with an index of `optimizer.groups`, if it is one.
const v1::ParameterGroup* find_group(const v1::Optimizer& optimizer, std::size_t group) {
  const auto count = static_cast<std::size_t>(optimizer.groups_size());
  return group == 0 || group > count ? nullptr : &optimizer.groups(static_cast<int>(group - 1));
}

Result<void> check_patterns(const v1::Optimizer& optimizer,
                            const std::vector<std::string>& parameters, const Locate& locate) {
  for (int g = 0; g < optimizer.groups_size(); ++g) {
    const auto& names = optimizer.groups(g).names();
    for (int n = 0; n < names.size(); ++n) {
      const bool matches = std::any_of(parameters.begin(), parameters.end(), [&](const auto& name) {
        return matches_pattern(names[n], name);
      });
      if (!matches)
        return bad_input(
            locate("optimizer.groups[" + std::to_string(g) + "].names[" + std::to_string(n) + "]"),
            "\"" + names[n] + "\" matches no parameter",
            parameters.empty() ? "the model has none"
                               : "the first is called \"" + parameters.front() + "\"");
    }
  }
  return {};
}

}  // namespace

bool matches_pattern(const std::string& pattern, const std::string& name) {
  // Greedy, going back to the last `*` when what follows it does not fit.
  std::size_t p = 0;
  std::size_t n = 0;
  std::size_t star = std::string::npos;
  std::size_t taken = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string::npos) {
      p = star + 1;
      n = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::size_t group_of(const v1::Optimizer& optimizer, const std::string& parameter) {
  for (int g = 0; g < optimizer.groups_size(); ++g)
    for (const auto& pattern : optimizer.groups(g).names())
      if (matches_pattern(pattern, parameter)) return static_cast<std::size_t>(g) + 1;
  return 0;
}

double learning_rate_of(const v1::Optimizer& optimizer, std::size_t group) {
  const auto* own = find_group(optimizer, group);
  return own != nullptr && own->has_lr() ? own->lr() : default_learning_rate(optimizer);
}

double weight_decay_of(const v1::Optimizer& optimizer, std::size_t group) {
  const auto* own = find_group(optimizer, group);
  return own != nullptr && own->has_weight_decay() ? own->weight_decay()
                                                   : default_weight_decay(optimizer);
}

std::size_t state_per_element(const v1::Optimizer& optimizer) {
  switch (optimizer.kind_case()) {
    case v1::Optimizer::kSgd: return optimizer.sgd().momentum() != 0 ? 1 : 0;
    case v1::Optimizer::kAdam: return optimizer.adam().amsgrad() ? 3 : 2;
    case v1::Optimizer::kAdamw: return optimizer.adamw().amsgrad() ? 3 : 2;
    case v1::Optimizer::kRmsprop:
      return 1 + (optimizer.rmsprop().momentum() != 0 ? 1 : 0) +
             (optimizer.rmsprop().centered() ? 1 : 0);
    case v1::Optimizer::kLamb: return 2;
    case v1::Optimizer::KIND_NOT_SET: break;
  }
  return 0;
}

Result<void> check_optimizer(const std::optional<v1::Optimizer>& optimizer,
                             const std::vector<std::string>& parameters, const Locate& locate) {
  if (!optimizer || optimizer->kind_case() == v1::Optimizer::KIND_NOT_SET)
    return bad_input(locate("optimizer"), "an optimizer is needed",
                     "for example optimizer { sgd { lr: 0.1 } }");
  TROUPE_TRY(validate_at("optimizer.", *optimizer, locate));
  const auto& sgd = optimizer->sgd();
  if (sgd.nesterov() && (sgd.momentum() == 0 || sgd.dampening() != 0))
    return bad_input(locate("optimizer.sgd.nesterov"),
                     "Nesterov momentum needs momentum and no dampening",
                     "set momentum above 0 and leave dampening out");
  return check_patterns(*optimizer, parameters, locate);
}

Result<void> check_clip_grad_norm(double limit, const std::string& where) {
  if (std::isfinite(limit) && limit >= 0) return {};
  return bad_input(where, "clip_grad_norm is " + std::to_string(limit),
                   "write a finite number; 0 means no clipping");
}

Result<std::vector<LearningRate>> learning_rates(const v1::Optimizer& optimizer,
                                                 const RunLength& run, const Locate& locate) {
  const auto in_schedule = [&](const std::string& path) {
    return locate("optimizer.schedule." + path);
  };
  std::vector<LearningRate> rates;
  for (std::size_t group = 0; group <= static_cast<std::size_t>(optimizer.groups_size()); ++group) {
    TROUPE_ASSIGN(LearningRate rate, LearningRate::make(learning_rate_of(optimizer, group),
                                                        optimizer.schedule(), run, in_schedule));
    rates.push_back(std::move(rate));
  }
  return rates;
}

}  // namespace troupe::mp
