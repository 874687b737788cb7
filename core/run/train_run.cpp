// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/work.h"
#include "edit/predict.h"
#include "partition/independent.h"
#include "run/agree.h"
#include "run/compare_kernels.h"
#include "run/driven.h"
#include "run/pass.h"
#include "run/probe.h"
#include "run/recent.h"
#include "run/replicas.h"
#include "run/rounds.h"
#include "run/run_states.h"
#include "run/step_builder.h"
#include "run/step_result.h"
#include "run/step_runner.h"
#include "run/telling.h"
#include "run/variant.h"

namespace orrery {
namespace {

using Clock = std::chrono::steady_clock;

class TrainRun : public Run {
 public:
  explicit TrainRun(RunSpec spec)
      : spec_(std::move(spec)), builder_(spec_), runtime_(Runtime::get()) {
    sort_parameters(spec_);
    for (auto& s : spec_.params) s->trained = true;
    states_.emplace(spec_, ranks());
    runner_.emplace(spec_, *states_, rank(), ranks(), telling_, runtime_);
  }
  ~TrainRun() override { runtime_.observers().end(spec_.told_as); }

  std::shared_ptr<StepResult> step(const BatchFields& batch) override {
    if (!spec_.local) runtime_.begin_run();
    const Observers::Scope told = runtime_.observe(spec_.local ? "" : spec_.told_as);
    runtime_.settle(driven_.get());
    telling_.begin(steps_ + 1, spec_.local || driven_);
    // Not of the first step, which may turn out to be a driver's.
    const bool shows_gradients = telling_.wants_tensors() && !variants_.empty();
    const ProbeScope scope(shows_gradients ? gradients() : std::vector<std::string>{});
    Variant* variant = variant_for(batch, Purpose::training);
    if (variant && !spec_.local) telling_.describe(spec_, *variant, microbatches_);
    auto result = variant ? train(*variant, batch) : drive(batch);
    if (!spec_.local)
      telling_.end(steps_, spec_, variant, batch, last_scalars_, *result, counters_);
    return result;
  }

  std::shared_ptr<StepResult> evaluate(const BatchFields& batch) override {
    runtime_.settle();
    Variant& variant = *variant_for(batch, Purpose::evaluation);
    const auto scalars = scalars_of(steps_, batch);
    variant.make_copies();
    return runner_->run(variant, batch, scalars, steps_, Purpose::evaluation);
  }

  std::shared_ptr<StepResult> evaluate_all(const Batches& next) override {
    runtime_.settle();
    Pass pass;
    std::shared_ptr<StepResult> result;
    while (const std::optional<BatchFields> batch = next()) {
      if (pass.batches() == 1) check_parts(*batch);
      Variant& variant = *variant_for(*batch, Purpose::pass);
      auto scalars = scalars_of(steps_, *batch);
      scalars[kContinues] = pass.batches() > 0;
      variant.make_copies();
      result = runner_->run(variant, *batch, scalars, steps_, Purpose::pass);
      pass.add(over_batches_.at(&variant), *result, spec_.line);
    }
    if (!result) fail(ORR_INVALID, "{}: run:eval: there is no sample to evaluate", spec_.line);
    pass.finish(*result);
    return result;
  }

  int64_t steps_done() const override { return steps_; }

  bool in_step() const override { return !driven_; }

  Counters counters() override {
    Counters now = counters_;
    if (driven_) add_driven(now);
    now.arena_bytes = runtime_.arena().bytes();
    return now;
  }

  void save(const std::string& directory, const std::string& extra, const SaveHow& how) override {
    waiting_for_checkpoint([&] {
      runtime_.settle();
      states_->throw_together(runner_->failed(), "run:save");
      if (ranks() > 1 && !driven_) compare_replicas(states_->all(), spec_.line);
      SaveHow now = how;
      now.beside &=
          ranks() == 1 || (!independent_ && !driven_);  // else they do not meet at each step
      counters_.checkpoint_bytes =
          states_->save(directory,
                        {steps_, microbatches_ ? microbatches_ : saved_microbatches_,
                         runtime_options().seed, extra, spec_.fast_sums},
                        alike(), !driven_, now);
    });
  }

  void finish_save() override {
    waiting_for_checkpoint([&] {
      if (Saving* saving = states_->saving()) saving->finish();
    });
  }

  std::string load(const std::string& directory) override {
    finish_save();
    runtime_.settle();
    const CheckpointFacts facts = states_->load(directory);
    steps_ = facts.step, saved_microbatches_ = facts.microbatches;
    runner_->forget();
    compared_ = false;
    runtime_options().seed = facts.seed;
    return facts.extra;
  }

  void use(std::vector<StrategyUse> stack, int64_t microbatches) override {
    if (!variants_.empty() || driven_)
      fail(ORR_INVALID, "{}: the stack cannot change after the first step", spec_.line);
    spec_.strategies = std::move(stack), spec_.microbatches = microbatches;
  }

  PlanSource plan_source(const BatchFields& batch) override {
    int world =
        runtime_options().plan_only && !spec_.local ? runtime_options().plan_ranks : ranks();
    auto drawn = [this, batch](const std::vector<StrategyUse>& stack, int ranks,
                               int64_t microbatches) {
      return build_step(batch, true, ranks, stack, microbatches);
    };
    return {drawn, strategies(), runtime_.kernels(), world};
  }

 private:
  int ranks() const { return spec_.local ? 1 : runtime_.world().size; }
  int rank() const { return spec_.local ? 0 : runtime_.world().rank; }
  uint64_t sent_so_far() const { return runtime_.has_comm() ? runtime_.comm().bytes_sent() : 0; }

  // Once for each kind of batches.
  void check_parts(const BatchFields& batch) {
    std::string key = shape_key(batch, Purpose::pass);
    if (parts_checked_.count(key)) return;
    refuse_parts(spec_, batch);
    parts_checked_.insert(std::move(key));
  }

  // The gradients that a step can be asked for, by name.
  std::vector<std::string> gradients() const {
    std::vector<std::string> names;
    for (auto& param : spec_.params)
      if (!param->frozen) names.push_back(kGradientOf + param->name);
    return names;
  }

  // Calls `work`, during which the script waits for a checkpoint.
  void waiting_for_checkpoint(const std::function<void()>& work) {
    struct Count {
      double& seconds;
      Clock::time_point begin = Clock::now();
      ~Count() { seconds += std::chrono::duration<double>(Clock::now() - begin).count(); }
    } count{counters_.checkpoint_seconds};
    work();
  }

  std::set<const State*> alike() const { return rounds_.alike_after(steps_); }

  std::shared_ptr<StepResult> train(Variant& variant, const BatchFields& batch) {
    const auto scalars = last_scalars_ = scalars_of(steps_ + 1, batch);
    variant.make_copies();
    const uint64_t sent = sent_so_far(), copied = runtime_.copies().bytes_moved();
    auto result = runner_->run(variant, batch, scalars, steps_ + 1, Purpose::training);
    ++steps_, ++counters_.steps;
    rounds_.run_after(steps_, spec_, counters_);
    counters_.bytes_sent += sent_so_far() - sent;
    counters_.bytes_copied += runtime_.copies().bytes_moved() - copied;
    counters_.planned_arena_bytes =
        std::max(counters_.planned_arena_bytes, variant.plan().arena_bytes);
    counters_.planned_bytes_copied += variant.plan().bytes_copied();
    counters_.predicted_bytes_sent += predicted_[&variant];
    return result;
  }

  // Takes this rank's next step under a driver, while other ranks take theirs.
  std::shared_ptr<StepResult> drive(const BatchFields& batch) {
    const bool idle = !driven_->has_samples(batch);  // then it has no loss
    auto result = runner_->result_of(driven_->step(shape_key(batch, Purpose::training), batch,
                                                   steps_ + 1, spec_.scalars(steps_ + 1)),
                                     steps_ + 1, idle);
    ++steps_, ++counters_.steps;
    return result;
  }

  void add_driven(Counters& now) {
    runtime_.settle();
    now.bytes_sent += driven_->sent();
    now.planned_arena_bytes = std::max(now.planned_arena_bytes, driven_->arena_bytes());
    now.predicted_bytes_sent += driven_->predicted();
  }

  // The numbers of a step, on which ranks that take steps together agree. Collective, unless ranks
  // train apart.
  std::map<std::string, double> scalars_of(int64_t step, const BatchFields& batch) {
    StepAgreement agreed;
    if (spec_.scalars) agreed.numbers = spec_.scalars(step);
    agreed.saving = states_->saving() && states_->saving()->writing();
    if (ranks() > 1 && !independent_) {
      agreed.written = !compared_ || any_written(states_->known());
      agree(agreed, step, batch);
      if (agreed.written) compare_all();
    }
    if (!runner_->failed().empty()) throw Error(ORR_FAILED, runner_->failed());
    if (!agreed.saving && states_->saving()) finish_save();
    return agreed.numbers;
  }

  void agree(StepAgreement& agreed, int64_t step, const BatchFields& batch) {
    agreed.failed = !runner_->failed().empty();
    agreed.step = step, agreed.seed = runtime_options().seed;
    agree_on_step(agreed, batch, spec_.line);
    if (agreed.failed) fail_together(runner_->failed(), "a step", spec_.line);
    agreed_ = agreed.numbers;
  }

  // Before a program is made for batches of new shapes: other ranks, whose batches have known ones,
  // are about to agree on a step.
  void agree_on_new(const BatchFields& batch, Purpose purpose) {
    if (!agreed_ || independent_) return;
    StepAgreement agreed;
    agreed.numbers = *agreed_;
    agree(agreed, purpose == Purpose::training ? steps_ + 1 : steps_, batch);
  }

  void compare_all() {
    compare_replicas(states_->known(), spec_.line);
    compared_ = true;
  }

  std::vector<StrategyUse> strategies() const {
    return spec_.local ? std::vector<StrategyUse>{} : spec_.strategies;
  }

  Blueprint build_step(const BatchFields& batch, bool training, int world,
                       const std::vector<StrategyUse>& stack, int64_t microbatches = 0,
                       OverBatches* over = nullptr) {
    const Work work("compiling", Work::of_engine);
    if (!microbatches) microbatches = spec_.microbatches ? spec_.microbatches : saved_microbatches_;
    Blueprint b = over ? builder_.build_pass(batch, world, stack, microbatches, *over)
                       : builder_.build(batch, training, world, stack, microbatches);
    if (!spec_.microbatches) check_saved_microbatches(b);
    microbatches_ = b.microbatches;
    return b;
  }

  // Another number than the checkpoint's would change the bits of what comes without a word.
  void check_saved_microbatches(const Blueprint& b) const {
    const int ranks = b.mesh.least_microbatches();
    if (saved_microbatches_ == 0 || b.microbatches >= ranks) return;
    fail(ORR_INVALID,
         "{}: the checkpoint's steps have {} microbatch{}, too few to deal to {} ranks: write "
         "microbatches = {}, or a multiple of it, in the options of orrery.compile; the last bits "
         "of results will differ from those of a run that went on as before",
         spec_.line, saved_microbatches_, saved_microbatches_ == 1 ? "" : "es", ranks, ranks);
  }

  // What distinguishes the programs of a run.
  std::string shape_key(const BatchFields& batch, Purpose purpose) const {
    std::string key = purpose == Purpose::training ? "train" + frozen()
                      : purpose == Purpose::pass   ? "pass"
                                                   : "eval";
    for (auto& [name, field] : batch) key += " " + name + to_string(field.type);
    for (const std::string& name : probed()) key += "\n" + name;
    return key;
  }

  // The parameters that are frozen now.
  std::string frozen() const {
    std::string names;
    for (auto& s : spec_.params)
      if (s->frozen) names += "\nfrozen " + s->name;
    return names;
  }

  // Programs between steps and those of a driver are made once, for what is trained then.
  void check_frozen() const {
    if (frozen_then_ && *frozen_then_ != frozen())
      fail(ORR_INVALID,
           "{}: parameters were frozen or thawed after the first step, which the programs that run "
           "between the steps of strategy.{} were made for: do it before the first step",
           spec_.line, between_);
  }

  // The compiled step or evaluation for batches of these shapes; null if a driver runs the step.
  Variant* variant_for(const BatchFields& batch, Purpose purpose) {
    std::string key = shape_key(batch, purpose);
    const bool training = purpose == Purpose::training;
    if (training) check_frozen();
    const std::set<const State*> same = alike();
    if (!training && independent_)
      for (const State* s : same) key += " " + s->name;
    if (driven_ && training) {
      if (!driven_->knows(key)) driven_->add(key, build_step(batch, true, ranks(), strategies()));
      return nullptr;
    }
    if (Variant* found = variants_.find(key)) return found;
    agree_on_new(batch, purpose);
    OverBatches over;
    Blueprint b = build_step(batch, training, ranks(), strategies(), 0,
                             purpose == Purpose::pass ? &over : nullptr);
    tell_remarks();
    if (!training && independent_) read_one_value(b.program, same);
    if (ranks() > 1) compare_across_ranks(b, batch, spec_.line);
    states_->remember_of_script();
    for (auto& s : states_of(b.program)) states_->remember(s);
    if (training) states_->tell_unused();
    if (training && b.asked.driving.on()) {
      make_driven(b, key);
      return nullptr;
    }
    Variant& made = variants_.add(key, std::make_unique<Variant>(b, rank(), runtime_));
    over_batches_[&made] = std::move(over);
    runner_->made(made);
    states_->forget_loaded();
    if (!spec_.local) predicted_[&made] = predicted_bytes(made.plan(), spec_.strategies, rank());
    if (training && rounds_.empty()) {
      independent_ = b.mesh.size_of(b.mesh.independent_axis) > 1;
      if (!b.asked.periodic.empty())
        frozen_then_ = frozen(), between_ = b.asked.periodic.back().origin;
      rounds_.make(b, spec_, rank(), *states_);
    }
    if (ranks() > 1 && training) {
      compare_kernels(made.plan(), spec_.line);
      compare_all();
    }
    return &made;
  }

  // Each once, however many shapes batches have.
  void tell_remarks() {
    for (const std::string& remark : builder_.remarks())
      if (!remark.empty() && rank() == 0 && told_.insert(remark).second)
        fmt::print(stderr, "orrery: {}: {}\n", spec_.line, remark);
  }

  void make_driven(const Blueprint& b, const std::string& key) {
    refuse_undrivable(b, spec_.line);
    std::vector<std::string> scalars;
    for (auto& [name, value] : spec_.scalars(steps_ + 1)) scalars.push_back(name);
    for (const Beside& one : b.asked.driving.programs)
      for (auto& s : states_of(*one.program)) states_->remember(s);
    driven_ = std::make_shared<Driven>(b, std::move(scalars), runtime_, spec_.told_as);
    frozen_then_ = frozen(), between_ = b.asked.driving.origin;
    driven_->add(key, b);
    states_->forget_loaded();
  }

  RunSpec spec_;
  StepBuilder builder_;
  Runtime& runtime_;
  Recent variants_;
  Rounds rounds_;
  bool independent_ = false;  // ranks train apart, and exchange only in periodic programs
  std::optional<std::string> frozen_then_;  // what was frozen when programs between steps were made
  std::string between_;                     // the strategy that has them
  std::set<std::string> told_;              // remarks
  std::shared_ptr<Driven> driven_;
  std::optional<RunStates> states_;
  int64_t steps_ = 0, microbatches_ = 0, saved_microbatches_ = 0;
  std::map<std::string, double> last_scalars_;
  std::optional<std::map<std::string, double>> agreed_;  // the numbers of the last agreement
  Telling telling_;
  std::optional<StepRunner> runner_;
  bool compared_ = false;  // the ranks have compared their states since they began or were loaded
  Counters counters_;
  std::map<const Variant*, OverBatches> over_batches_;
  std::set<std::string> parts_checked_;  // kinds of batches of which passes may have several
  std::map<const Variant*, uint64_t> predicted_;  // bytes that a step sends
};

}  // namespace

std::unique_ptr<Run> Run::make(RunSpec spec) { return std::make_unique<TrainRun>(std::move(spec)); }

}  // namespace orrery
