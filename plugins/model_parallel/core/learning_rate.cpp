#include "core/learning_rate.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace troupe::mp {
namespace {

constexpr double pi = 3.14159265358979323846;

template <class Message>
double gamma_of(const Message& decay) {
  return decay.has_gamma() ? decay.gamma() : 0.1;
}

/// From `start` to `end` along half a cosine as `share` goes from 0 to 1.
double along_cosine(double start, double end, double share) {
  return end + (start - end) / 2 * (1 + std::cos(pi * share));
}

double along_line(double start, double end, double share) { return start + (end - start) * share; }

Result<void> check_milestones(const v1::LearningRateSchedule& schedule,
                              const std::function<std::string(const std::string&)>& locate) {
  const auto& milestones = schedule.multi_step().milestones();
  for (int i = 1; i < milestones.size(); ++i)
    if (milestones[i] <= milestones[i - 1])
      return bad_input(locate("multi_step.milestones[" + std::to_string(i) + "]"),
                       "milestones must rise", "sort them, each once");
  return {};
}

/// `length` where it is left open: what the warm-up leaves of the run.
Result<std::uint64_t> rest_of_run(const v1::LearningRateSchedule& schedule, std::uint64_t run,
                                  const std::string& where) {
  const std::uint64_t before = schedule.warmup().length();
  if (run == 0)
    return bad_input(where, "how long the run is, is not known here", "write the length");
  if (run <= before)
    return bad_input(where, "the warm-up takes the whole run", "shorten it, or write the length");
  return run - before;
}

}  // namespace

Result<LearningRate> LearningRate::make(
    double full, const v1::LearningRateSchedule& given, const RunLength& run,
    const std::function<std::string(const std::string&)>& locate) {
  const bool epochs = given.unit() == v1::LearningRateSchedule::UNIT_EPOCHS;
  if (epochs && run.steps_per_epoch == 0)
    return bad_input(locate("unit"), "there are no epochs to count", "count in steps");
  const std::uint64_t steps_per_unit = epochs ? run.steps_per_epoch : 1;
  const std::uint64_t units = (run.steps + steps_per_unit - 1) / steps_per_unit;
  auto schedule = given;
  TROUPE_TRY(check_milestones(schedule, locate));
  if (schedule.has_cosine() && schedule.cosine().length() == 0) {
    TROUPE_ASSIGN(const std::uint64_t rest, rest_of_run(schedule, units, locate("cosine.length")));
    schedule.mutable_cosine()->set_length(rest);
  }
  if (schedule.has_one_cycle()) {
    auto& cycle = *schedule.mutable_one_cycle();
    if (cycle.length() == 0) {
      TROUPE_ASSIGN(const std::uint64_t rest,
                    rest_of_run(schedule, units, locate("one_cycle.length")));
      cycle.set_length(rest);
    }
    if (!cycle.has_rise()) cycle.set_rise(0.3);
    if (!cycle.has_initial_divisor()) cycle.set_initial_divisor(25);
    if (!cycle.has_final_divisor()) cycle.set_final_divisor(10000);
  }
  return LearningRate(full, std::move(schedule), steps_per_unit);
}

double LearningRate::at(std::uint64_t step) const {
  const std::uint64_t passed = (std::max<std::uint64_t>(step, 1) - 1) / steps_per_unit_;
  const std::uint64_t warm_up = schedule_.warmup().length();
  if (passed < warm_up) return warming_up(static_cast<double>(passed));
  const std::uint64_t time = passed - warm_up;
  switch (schedule_.kind_case()) {
    case v1::LearningRateSchedule::kStep: {
      const std::uint64_t decays = time / schedule_.step().every();
      return full_ * std::pow(gamma_of(schedule_.step()), static_cast<double>(decays));
    }
    case v1::LearningRateSchedule::kMultiStep: {
      const auto& decay = schedule_.multi_step();
      const auto reached =
          std::count_if(decay.milestones().begin(), decay.milestones().end(),
                        [&](std::uint64_t milestone) { return milestone <= time; });
      return full_ * std::pow(gamma_of(decay), static_cast<double>(reached));
    }
    case v1::LearningRateSchedule::kCosine: {
      const auto length = static_cast<double>(schedule_.cosine().length());
      const double share = std::min(static_cast<double>(time) / length, 1.0);
      return along_cosine(full_, schedule_.cosine().min_lr(), share);
    }
    case v1::LearningRateSchedule::kOneCycle: return one_cycle(static_cast<double>(time));
    case v1::LearningRateSchedule::KIND_NOT_SET: break;
  }
  return full_;
}

double LearningRate::warming_up(double time) const {
  const auto& warmup = schedule_.warmup();
  const double start = warmup.has_start_factor() ? warmup.start_factor() : 1.0 / 3;
  // The schedule begins with the rate that the warm-up leads to.
  const double target =
      schedule_.has_one_cycle() ? full_ / schedule_.one_cycle().initial_divisor() : full_;
  return target * along_line(start, 1, time / static_cast<double>(warmup.length()));
}

double LearningRate::one_cycle(double time) const {
  const auto& cycle = schedule_.one_cycle();
  const auto move = cycle.linear() ? along_line : along_cosine;
  const double first = full_ / cycle.initial_divisor();
  const double last = first / cycle.final_divisor();
  const auto length = static_cast<double>(cycle.length());
  // A cycle that is too short to rise begins at the top.
  const double top = std::max(cycle.rise() * length - 1, 0.0);
  const double end = length - 1;
  if (time < top) return move(first, full_, time / top);
  if (time == top) return full_;
  if (time >= end) return last;
  return move(full_, last, (time - top) / (end - top));
}

}  // namespace troupe::mp
