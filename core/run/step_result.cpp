// SPDX-License-Identifier: Apache-2.0
#include "run/step_result.h"

#include <algorithm>

#include "base/error.h"

namespace orrery {
namespace {

constexpr int kMostSkipped = 50;  // one after another

class Result : public StepResult {
 public:
  explicit Result(std::map<std::string, double> values) : values_(std::move(values)) {}

  double get(const std::string& name) override {
    auto at = values_.find(name);
    if (at != values_.end()) return at->second;
    std::string known;
    for (auto& [each, value] : values_) known += (known.empty() ? "" : ", ") + each;
    fail(ORR_INVALID, "step {} has no value '{}'; it has {}{}", step, name, known,
         name == "grad_norm" ? "; compile with grad_norm = true" : "");
  }
  std::vector<std::string> names() const override {
    std::vector<std::string> found;
    for (auto& [name, value] : values_) found.push_back(name);
    return found;
  }

 private:
  std::map<std::string, double> values_;
};

}  // namespace

std::shared_ptr<StepResult> step_result(std::map<std::string, double> values, int64_t step) {
  auto result = std::make_shared<Result>(std::move(values));
  result->step = step;
  return result;
}

bool has_value(const StepResult& result, const std::string& name) {
  const std::vector<std::string> names = result.names();
  return std::count(names.begin(), names.end(), name) > 0;
}

void LossCheck::expect_good(StepResult& result, const std::string& line) {
  const std::string prefix = line.empty() ? "" : line + ": ";
  const double loss = result.get("loss");
  if (has_value(result, kSkippedSteps)) return count_skipped(result, prefix);
  if (std::isnan(loss))
    fail(ORR_FAILED,
         "{}the loss of step {} is nan: look for a mean over nothing (a batch in which every label "
         "is ignored or every weight is 0), another division by zero, or a logarithm of zero; if "
         "there is none, lower the learning rate or clip gradients",
         prefix, result.step);
  if (!std::isfinite(loss))
    fail(ORR_FAILED,
         "{}the loss of step {} is {}: lower the learning rate, clip gradients, or look "
         "for a division by zero or a logarithm of zero in the model",
         prefix, result.step, loss);
}

// A skipped step is no failure, but too many of them one after another are.
void LossCheck::count_skipped(StepResult& result, const std::string& prefix) {
  const double skipped = result.get(kSkippedSteps);
  in_a_row_ = skipped > skipped_ ? in_a_row_ + 1 : 0;
  skipped_ = skipped;
  if (in_a_row_ < kMostSkipped) return;
  std::string told;
  for (const std::string& name : result.names())
    if (name != kSkippedSteps)
      told += fmt::format("{}{} {}", told.empty() ? "" : ", ", name, result.get(name));
  fail(ORR_FAILED,
       "{}the loss or the gradients of the last {} steps up to {} are not finite, so that none has "
       "changed anything ({}): lower the learning rate, keep the module that overflows in f32, or "
       "look for a division by zero in the model",
       prefix, kMostSkipped, result.step, told);
}

}  // namespace orrery
