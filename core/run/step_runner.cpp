// SPDX-License-Identifier: Apache-2.0
#include "run/step_runner.h"

#include <cmath>
#include <exception>

#include "base/error.h"
#include "run/replicas.h"
#include "run/watched.h"

namespace orrery {
namespace {

// Whether the norm of all gradients shows that they are finite. A strategy that skips steps has
// checked that itself.
bool has_finite_norm(StepResult& result) {
  if (has_value(result, kSkippedSteps)) return true;
  return has_value(result, "grad_norm") && std::isfinite(result.get("grad_norm"));
}

}  // namespace

std::shared_ptr<StepResult> StepRunner::run(Variant& variant, const BatchFields& batch,
                                            const std::map<std::string, double>& scalars,
                                            int64_t step, Purpose purpose) {
  const auto set = [&] {
    variant.set_scalars(scalars, step);
    Spans::run(telling_.data_mark(), [&] { variant.set_batch(batch); });
  };
  if (purpose != Purpose::training) {
    set();
    variant.run();
    return fetched(variant, step, purpose);
  }
  const bool twice = is_verified(step);
  if (!twice) set();
  try {
    if (twice)
      verify(variant, set, step);
    else
      variant.run(telling_.spans());
    auto result = fetched(variant, step, purpose);
    if (!has_finite_norm(*result)) check_parameters(variant, step);
    return result;
  } catch (const std::exception& e) {
    failed_ = fmt::format(
        "step {} has failed ({}), and the parameters may hold half of it: run:load a checkpoint "
        "before going on",
        step, e.what());
    throw;
  }
}

bool StepRunner::is_verified(int64_t step) const {
  const int64_t every = runtime_options().verify;
  return every > 0 && step % every == 0 && !spec_.local;
}

// Ranks that hold the same part of a state must hold the same value before the step.
void StepRunner::verify(Variant& variant, const std::function<void()>& set, int64_t step) {
  telling_.leave_out_spans();  // they would be those of two computations
  if (ranks_ > 1) try {
      compare_replicas(states_.known(), fmt::format("{}: before step {}", spec_.line, step),
                       "memory of one of them has failed; go on from the last checkpoint");
    } catch (const Error& e) {
      throw Error(kMiscomputed, e.what());
    }
  variant.run_twice(set, spec_.line, step, ranks_);
}

// What is watched belongs to one batch, and is no result of a pass over several.
std::shared_ptr<StepResult> StepRunner::fetched(Variant& variant, int64_t step, Purpose purpose) {
  const bool evaluation = purpose != Purpose::training;
  auto tensors = variant.fetch_tensors(false);
  std::map<std::string, double> values =
      take_watched(tensors, fmt::format("{}{} {}", spec_.told_as.empty() ? "" : spec_.told_as + " ",
                                        evaluation ? "evaluation after step" : "step", step));
  if (purpose == Purpose::pass) values.clear();
  values.merge(variant.fetch_scalars());
  auto result = result_of(std::move(values), step, evaluation);
  for (auto& [name, tensor] : tensors) result->tensors[name] = tensor;
  return result;
}

void StepRunner::check_parameters(Variant& variant, int64_t step) {
  auto& check = checks_[&variant];
  if (!check) check = std::make_unique<FiniteCheck>(variant, rank_, runtime_);
  if (const std::string complaint = check->complaint(); !complaint.empty())
    fail(ORR_FAILED,
         "{}after step {} {}, of a gradient that was not finite or too large a step: lower the "
         "learning rate, clip gradients, or look for a division by zero or a root of zero in the "
         "model",
         spec_.line.empty() ? "" : spec_.line + ": ", step, complaint);
}

std::shared_ptr<StepResult> StepRunner::result_of(std::map<std::string, double> values,
                                                  int64_t step, bool evaluation) {
  auto result = step_result(std::move(values), step);
  if (!evaluation) loss_check_.expect_good(*result, spec_.line);
  return result;
}

}  // namespace orrery
