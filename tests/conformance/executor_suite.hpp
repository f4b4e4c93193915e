#pragma once

#include <functional>
#include <memory>

#include "troupe/model_parallel/executor.hpp"

/// What every StageExecutor must do, whatever it computes with. Each function is one test case;
/// they use only layers that all executors know (linear, tanh, relu, identity, loss.mse).

namespace troupe::mp::conformance {

using ExecutorFactory = std::function<std::unique_ptr<StageExecutor>()>;

void completes_calls_once_and_in_order(const ExecutorFactory& create);
void evaluation_keeps_nothing(const ExecutorFactory& create);
void gradients_accumulate_until_the_update(const ExecutorFactory& create);
void interleaving_changes_nothing(const ExecutorFactory& create);
void absent_gradients_are_accepted(const ExecutorFactory& create);
void input_gradients_exist_where_they_are_wanted(const ExecutorFactory& create);
void only_a_prediction_may_lack_targets(const ExecutorFactory& create);
void the_fingerprint_names_libraries_and_device(const ExecutorFactory& create);
void state_is_exported_in_order(const ExecutorFactory& create);
void imported_state_is_used(const ExecutorFactory& create);
void unfit_state_is_refused_by_name(const ExecutorFactory& create);
void imported_types_are_converted_or_refused_by_name(const ExecutorFactory& create);
void discarding_forgets_a_step(const ExecutorFactory& create);
void frozen_weights_do_not_change(const ExecutorFactory& create);
void initial_state_does_not_depend_on_the_cut(const ExecutorFactory& create);
void trained_state_does_not_depend_on_the_cut(const ExecutorFactory& create);
void tied_weights_do_not_depend_on_the_cut(const ExecutorFactory& create);
void tied_weights_count_once(const ExecutorFactory& create);
void a_tied_gradient_accumulates_until_the_update(const ExecutorFactory& create);
void a_skipped_update_changes_nothing(const ExecutorFactory& create);
void recomputing_changes_no_bit_and_keeps_less(const ExecutorFactory& create);
void wire_types_apply_without_a_cut(const ExecutorFactory& create);
void mixed_precision_does_not_depend_on_the_cut(const ExecutorFactory& create);
void the_loss_scale_reaches_the_gradients(const ExecutorFactory& create);

}  // namespace troupe::mp::conformance

/// Registers all cases as a test suite; `factory` is an ExecutorFactory or converts to one.
#define TROUPE_EXECUTOR_CONFORMANCE(suite, factory)                              \
  BOOST_AUTO_TEST_SUITE(suite)                                                   \
  TROUPE_EXECUTOR_CASE(completes_calls_once_and_in_order, factory)               \
  TROUPE_EXECUTOR_CASE(evaluation_keeps_nothing, factory)                        \
  TROUPE_EXECUTOR_CASE(gradients_accumulate_until_the_update, factory)           \
  TROUPE_EXECUTOR_CASE(interleaving_changes_nothing, factory)                    \
  TROUPE_EXECUTOR_CASE(absent_gradients_are_accepted, factory)                   \
  TROUPE_EXECUTOR_CASE(input_gradients_exist_where_they_are_wanted, factory)     \
  TROUPE_EXECUTOR_CASE(only_a_prediction_may_lack_targets, factory)              \
  TROUPE_EXECUTOR_CASE(the_fingerprint_names_libraries_and_device, factory)      \
  TROUPE_EXECUTOR_CASE(state_is_exported_in_order, factory)                      \
  TROUPE_EXECUTOR_CASE(imported_state_is_used, factory)                          \
  TROUPE_EXECUTOR_CASE(unfit_state_is_refused_by_name, factory)                  \
  TROUPE_EXECUTOR_CASE(imported_types_are_converted_or_refused_by_name, factory) \
  TROUPE_EXECUTOR_CASE(discarding_forgets_a_step, factory)                       \
  TROUPE_EXECUTOR_CASE(frozen_weights_do_not_change, factory)                    \
  TROUPE_EXECUTOR_CASE(initial_state_does_not_depend_on_the_cut, factory)        \
  TROUPE_EXECUTOR_CASE(trained_state_does_not_depend_on_the_cut, factory)        \
  TROUPE_EXECUTOR_CASE(tied_weights_do_not_depend_on_the_cut, factory)           \
  TROUPE_EXECUTOR_CASE(tied_weights_count_once, factory)                         \
  TROUPE_EXECUTOR_CASE(a_tied_gradient_accumulates_until_the_update, factory)    \
  TROUPE_EXECUTOR_CASE(a_skipped_update_changes_nothing, factory)                \
  TROUPE_EXECUTOR_CASE(recomputing_changes_no_bit_and_keeps_less, factory)       \
  TROUPE_EXECUTOR_CASE(wire_types_apply_without_a_cut, factory)                  \
  TROUPE_EXECUTOR_CASE(mixed_precision_does_not_depend_on_the_cut, factory)      \
  TROUPE_EXECUTOR_CASE(the_loss_scale_reaches_the_gradients, factory)            \
  BOOST_AUTO_TEST_SUITE_END()

#define TROUPE_EXECUTOR_CASE(name, factory) \
  BOOST_AUTO_TEST_CASE(name) { ::troupe::mp::conformance::name(factory); }
