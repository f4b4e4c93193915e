#include <boost/test/unit_test.hpp>

#include <cmath>
#include <limits>

#include "core/bits.hpp"
#include "core/gradient_norm.hpp"
#include "core/run_progress.hpp"

namespace troupe::mp {
namespace {

v1::StepReport report(std::uint32_t stage, std::uint32_t first, std::vector<double> norms) {
  v1::StepReport report;
  report.set_stage(stage);
  report.set_first_parameter(first);
  report.set_finite(true);
  for (auto norm : norms) report.add_squared_norm_bits(bits_of(norm));
  return report;
}

v1::LossReport loss(double value, std::uint64_t counted, std::uint32_t samples) {
  v1::LossReport report;
  report.set_loss_bits(bits_of(value));
  report.set_counted(counted);
  report.set_samples(samples);
  report.set_correct(1);
  return report;
}

BOOST_AUTO_TEST_SUITE(gradient_norm)

BOOST_AUTO_TEST_CASE(the_sum_does_not_depend_on_the_cut_or_the_order_of_reports) {
  const std::vector<double> norms = {1e16, 1.0, 1.0, 1e-3};
  GradientNorm one(1);
  BOOST_TEST(one.add(report(0, 0, norms)).ok());
  GradientNorm two(2);
  BOOST_TEST(two.add(report(1, 3, {norms[3]})).ok());
  BOOST_TEST(!two.complete());
  BOOST_TEST(two.add(report(0, 0, {norms[0], norms[1], norms[2]})).ok());
  BOOST_TEST(two.complete());
  BOOST_TEST(one.norm() == two.norm());
}

BOOST_AUTO_TEST_CASE(a_stage_reports_once) {
  GradientNorm norm(2);
  BOOST_TEST(norm.add(report(0, 0, {1})).ok());
  BOOST_TEST(!norm.add(report(0, 0, {1})).ok());
  BOOST_TEST(!norm.add(report(2, 0, {1})).ok());
}

BOOST_AUTO_TEST_CASE(non_finite_gradients_are_found_by_parameter) {
  GradientNorm norm(2);
  BOOST_TEST(norm.add(report(0, 0, {1, 2})).ok());
  BOOST_TEST(norm.add(report(1, 2, {3, std::numeric_limits<double>::quiet_NaN()})).ok());
  BOOST_TEST(!norm.finite());
  BOOST_TEST(norm.first_non_finite().value() == 3u);
}

BOOST_AUTO_TEST_CASE(clipping_follows_torch) {
  BOOST_TEST(clip_factor(123, 0) == 1.0);
  BOOST_TEST(clip_factor(0.5, 1) == 1.0);
  BOOST_TEST(clip_factor(4, 1) == 1 / (4 + 1e-6));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(run_progress)

BOOST_AUTO_TEST_CASE(the_window_counts_until_all_stages_are_done) {
  RunProgress progress(2, 3, 2);
  BOOST_TEST(progress.admit().value() == 0u);
  BOOST_TEST(progress.admit().value() == 1u);
  BOOST_TEST(!progress.admit().has_value());
  BOOST_TEST(progress.stage_done(1, 0).ok());
  BOOST_TEST(!progress.admit().has_value());
  BOOST_TEST(progress.stage_done(0, 0).ok());
  BOOST_TEST(progress.admit().value() == 2u);
  BOOST_TEST(!progress.admit().has_value());
}

BOOST_AUTO_TEST_CASE(reports_that_cannot_be_are_errors) {
  RunProgress progress(1, 2, 2);
  BOOST_TEST(!progress.stage_done(0, 0).ok());
  progress.admit();
  BOOST_TEST(!progress.stage_done(1, 0).ok());
  BOOST_TEST(progress.stage_done(0, 0).ok());
  BOOST_TEST(!progress.stage_done(0, 0).ok());
  BOOST_TEST(!progress.add_loss(1, loss(1, 1, 1)).ok());
}

BOOST_AUTO_TEST_CASE(losses_are_weighted_and_summed_in_micro_batch_order) {
  const std::vector<v1::LossReport> losses = {loss(1e16, 3, 3), loss(1, 3, 3), loss(3, 2, 2)};
  RunProgress forward(1, 3, 3);
  RunProgress backward(1, 3, 3);
  for (int i = 0; i < 3; ++i) {
    forward.admit();
    backward.admit();
  }
  for (const std::uint32_t i : {0, 1, 2}) BOOST_TEST(forward.add_loss(i, losses[i]).ok());
  for (const std::uint32_t i : {2, 1, 0}) BOOST_TEST(backward.add_loss(i, losses[i]).ok());
  BOOST_TEST(forward.has_all_losses());
  BOOST_TEST(forward.loss_totals().loss == backward.loss_totals().loss);
  BOOST_TEST(forward.loss_totals().samples == 8u);
  BOOST_TEST(forward.loss_totals().correct == 3u);
}

BOOST_AUTO_TEST_CASE(losses_weigh_by_what_counts) {
  const auto totals_of = [](const std::vector<v1::LossReport>& losses) {
    RunProgress progress(1, static_cast<std::uint32_t>(losses.size()), 9);
    for (std::uint32_t i = 0; i < losses.size(); ++i) {
      progress.admit();
      BOOST_TEST(progress.add_loss(i, losses[i]).ok());
    }
    return progress.loss_totals();
  };
  auto totals = totals_of({loss(2, 6, 1), loss(0, 0, 1), loss(1, 2, 2)});
  BOOST_TEST(totals.loss == 14.0 / 8);
  BOOST_TEST(totals.counted == 8u);
  BOOST_TEST(totals.samples == 4u);
  BOOST_TEST(totals_of({loss(0, 0, 3)}).loss == 0.0);
  totals.add(totals_of({loss(0, 0, 3)}));
  BOOST_TEST(totals.loss == 14.0 / 8);
  totals.add(totals_of({loss(3, 2, 1)}));
  BOOST_TEST(totals.loss == 2.0);
  BOOST_TEST(totals.counted == 10u);
  BOOST_TEST(totals.samples == 8u);
  BOOST_TEST(totals.correct == 5u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe::mp
