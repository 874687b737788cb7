// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/error.h"
#include "lower/average.h"
#include "lower/lower.h"
#include "run/agree.h"
#include "run/drawing.h"
#include "run/plan_text.h"
#include "run/predict.h"
#include "run/profile.h"
#include "run/served.h"
#include "run/variant.h"
#include "store/checkpoint.h"

namespace orrery {
namespace {

using Clock = std::chrono::steady_clock;

class Result : public StepResult {
 public:
  explicit Result(std::map<std::string, double> values) : values_(std::move(values)) {}

  double get(const std::string& name) override {
    auto at = values_.find(name);
    if (at != values_.end()) return at->second;
    std::string known;
    for (auto& [each, value] : values_) known += (known.empty() ? "" : ", ") + each;
    fail(ORR_INVALID, "step {} has no value '{}'; it has {}", step, name, known);
  }
  std::vector<std::string> names() const override {
    std::vector<std::string> found;
    for (auto& [name, value] : values_) found.push_back(name);
    return found;
  }

 private:
  std::map<std::string, double> values_;
};

constexpr int kMostSkipped = 50;  // one after another

class TrainRun : public Run {
 public:
  explicit TrainRun(RunSpec spec)
      : spec_(std::move(spec)), drawing_(spec_), runtime_(Runtime::get()) {
    std::sort(spec_.params.begin(), spec_.params.end(),
              [](auto& a, auto& b) { return natural_less(a->name, b->name); });
  }

  std::shared_ptr<StepResult> step(const BatchFields& batch) override {
    if (runtime_options().plan_only) {
      std::fputs(plan(batch).c_str(), stdout);
      throw PlanDone{};
    }
    if (!spec_.local) runtime_.begin_run();
    runtime_.settle(served_.get());
    auto begin = Clock::now();
    Variant* variant = variant_for(batch, true);
    auto result = variant ? train(*variant, batch) : serve(batch);
    if (!spec_.local) {
      double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
      for (const std::string& name : result->names())
        runtime_.observers().metric(steps_, name, result->get(name));
      runtime_.observers().step_end(steps_, seconds);
    }
    return result;
  }

  std::shared_ptr<StepResult> evaluate(const BatchFields& batch) override {
    runtime_.settle();
    Variant& variant = *variant_for(batch, false);
    return run_variant(variant, batch, scalars_of(steps_), steps_, true);
  }

  int64_t steps_done() const override { return steps_; }

  bool in_step() const override { return !served_; }

  Counters counters() override {
    Counters now = counters_;
    if (served_) add_served(now);
    now.arena_bytes = runtime_.arena().bytes();
    return now;
  }

  // Rank 0 writes, one tensor at a time; the others give it their parts, then wait for the outcome.
  void save(const std::string& directory, const std::string& extra) override {
    runtime_.settle();
    if (averaging_.every > 0 && steps_ % averaging_.every)
      fail(ORR_INVALID,
           "step {} lies between two averages of strategy.{}: save after a multiple of {} steps",
           steps_, averaging_.cause, averaging_.every);
    std::string error;
    size_t read = 0;
    std::vector<NamedTensor> tensors;
    for (auto& s : all_states())
      tensors.push_back({s->name, s->role == Role::param, {s->type, [&read, s] {
                                                             ++read;
                                                             return read_state(*s);
                                                           }}});
    sort_for_checkpoint(tensors);
    if (rank() == 0) {
      try {
        save_checkpoint(directory, {steps_, microbatches_, runtime_options().seed, extra}, tensors);
      } catch (const Error& e) {
        error = e.what();
      }
    }
    if (ranks() > 1)  // all that rank 0 could not write, too: the others are waiting
      while (read < tensors.size()) tensors[read].tensor.read();
    if (ranks() > 1) error = text_of_rank_0(error, spec_.line);
    if (!error.empty()) throw Error(ORR_FAILED, error);
  }

  std::string load(const std::string& directory) override {
    runtime_.settle();
    LoadedCheckpoint c = load_checkpoint(directory);
    for (auto& s : spec_.params) remember(s);
    for (auto& s : known_states_) {
      auto found = c.tensors.find(s->name);
      if (found == c.tensors.end())
        fail(ORR_FAILED, "checkpoint '{}' has no tensor '{}' {}", directory, s->name,
             to_string(s->type));
      if (found->second.type != s->type)
        fail(ORR_FAILED,
             "checkpoint '{}': '{}' is {}, but {} here; load it into the model that was saved",
             directory, s->name, to_string(found->second.type), to_string(s->type));
    }
    for (auto& s : known_states_) {
      auto found = c.tensors.find(s->name);
      s->lies_somewhere() ? write_state(*s, found->second) : begin_with(s, found->second);
      c.tensors.erase(found);
    }
    pending_ = std::move(c.tensors);  // optimizer states, until the first step makes them
    steps_ = c.facts.step, saved_microbatches_ = c.facts.microbatches;
    skipped_ = HUGE_VAL;  // the next step tells
    runtime_options().seed = c.facts.seed;
    return c.facts.extra;
  }

  std::string plan(const BatchFields& batch) override {
    int world =
        runtime_options().plan_only && !spec_.local ? runtime_options().plan_ranks : ranks();
    auto drawn = [&](const std::vector<StrategyUse>& stack, int ranks) {
      Blueprint b = draw(batch, true, ranks, stack);
      return b.spread.serving.on() ? Served::worker(b) : b;
    };
    return plan_text({drawn, strategies(), runtime_.kernels(), world});
  }

 private:
  int ranks() const { return spec_.local ? 1 : runtime_.world().size; }
  int rank() const { return spec_.local ? 0 : runtime_.world().rank; }
  uint64_t sent_so_far() const { return runtime_.has_comm() ? runtime_.comm().bytes_sent() : 0; }

  std::shared_ptr<StepResult> train(Variant& variant, const BatchFields& batch) {
    const auto scalars = scalars_of(steps_ + 1);
    const uint64_t sent = sent_so_far(), copied = runtime_.copies().bytes_moved();
    auto result = run_variant(variant, batch, scalars, steps_ + 1, false);
    ++steps_, ++counters_.steps;
    if (averaging_.every > 0 && steps_ % averaging_.every == 0) average();
    counters_.bytes_sent += sent_so_far() - sent;
    counters_.bytes_copied += runtime_.copies().bytes_moved() - copied;
    counters_.planned_arena_bytes =
        std::max(counters_.planned_arena_bytes, variant.plan().arena_bytes);
    counters_.planned_bytes_copied += variant.plan().bytes_copied();
    counters_.predicted_bytes_sent += predicted_.at(&variant);
    return result;
  }

  // This rank's own next step, while others are at theirs.
  std::shared_ptr<StepResult> serve(const BatchFields& batch) {
    const std::string key = shape_key(batch, true);
    const bool idle = served_->samples(key, batch) == 0;  // it has no loss of its own
    auto result = result_of(served_->step(key, batch, steps_ + 1, spec_.scalars(steps_ + 1)),
                            steps_ + 1, idle);
    ++steps_, ++counters_.steps;
    return result;
  }

  void add_served(Counters& now) {
    runtime_.settle();
    now.bytes_sent += served_->sent();
    now.planned_arena_bytes = std::max(now.planned_arena_bytes, served_->arena_bytes());
    for (const StrategyUse& use : spec_.strategies)
      if (use.name == served_->strategy())
        for (auto& [bytes, times] : served_->messages())
          now.predicted_bytes_sent += times * predicted_message(use, bytes);
  }

  // Collective, unless ranks train alone and meet only now and then.
  std::map<std::string, double> scalars_of(int64_t step) const {
    std::map<std::string, double> own =
        spec_.scalars ? spec_.scalars(step) : std::map<std::string, double>{};
    const bool together = ranks() > 1 && averaging_.every == 0;
    return together && !own.empty() ? numbers_of_rank_0(std::move(own), spec_.line) : own;
  }

  std::shared_ptr<StepResult> run_variant(Variant& variant, const BatchFields& batch,
                                          const std::map<std::string, double>& scalars,
                                          int64_t step, bool evaluation) {
    variant.set_scalars(scalars, step);
    variant.set_batch(batch);
    variant.run();
    return result_of(variant.fetch_scalars(), step, evaluation);
  }

  std::shared_ptr<StepResult> result_of(std::map<std::string, double> values, int64_t step,
                                        bool evaluation) {
    auto result = std::make_shared<Result>(std::move(values));
    result->step = step;
    double loss = result->get("loss");
    if (drawing_.scales_loss() && !evaluation)
      count_skipped(*result);
    else if (!std::isfinite(loss) && !evaluation)
      fail(ORR_FAILED,
           "{}the loss of step {} is {}: lower the learning rate, clip gradients, or look "
           "for a division by zero or a logarithm of zero in the model",
           spec_.line.empty() ? "" : spec_.line + ": ", step, loss);
    return result;
  }

  // A step that was taken back is no failure, but a run of nothing else is.
  void count_skipped(Result& result) {
    const double skipped = result.get("skipped_steps");
    in_a_row_ = skipped > skipped_ ? in_a_row_ + 1 : 0;
    skipped_ = skipped;
    if (in_a_row_ < kMostSkipped) return;
    fail(ORR_FAILED,
         "{}the loss or the gradients of the last {} steps up to {} are not finite, the last with "
         "a loss "
         "scale of {}: lower the learning rate, keep the module that overflows in f32, or look for "
         "a division by "
         "zero in the model",
         spec_.line.empty() ? "" : spec_.line + ": ", kMostSkipped, result.step,
         result.get("loss_scale"));
  }

  std::vector<StrategyUse> strategies() const {
    return spec_.local ? std::vector<StrategyUse>{} : spec_.strategies;
  }

  Blueprint draw(const BatchFields& batch, bool training, int world,
                 const std::vector<StrategyUse>& stack) {
    Blueprint b = drawing_.draw(batch, training, world, stack, saved_microbatches_);
    b.spread.one_memory = runtime_.shares_memory(world);
    microbatches_ = b.microbatches;
    return b;
  }

  static std::string shape_key(const BatchFields& batch, bool training) {
    std::string key = training ? "train" : "eval";
    for (auto& [name, field] : batch) key += " " + name + to_string(field.type);
    return key;
  }

  // The compiled step; null if this rank is served, and takes it in its own time.
  Variant* variant_for(const BatchFields& batch, bool training) {
    const std::string key = shape_key(batch, training);
    if (served_ && training) {
      if (!served_->knows(key)) served_->add(key, draw(batch, true, ranks(), strategies()));
      return nullptr;
    }
    auto& found = variants_[key];
    if (found) return found.get();
    Blueprint b = draw(batch, training, ranks(), strategies());
    if (ranks() > 1) compare_across_ranks(b, spec_.line);
    for (auto& s : states_of(b.program)) remember(s);
    if (training && b.spread.serving.on()) {
      make_served(b, key);
      return nullptr;
    }
    found = std::make_unique<Variant>(b, rank(), runtime_);
    forget_loaded();
    predict(*found);
    if (training && b.spread.averaging.every > 0 && !average_) make_average(*found, b.spread);
    return found.get();
  }

  void make_served(const Blueprint& b, const std::string& key) {
    std::vector<std::string> scalars;
    for (auto& [name, value] : spec_.scalars(steps_ + 1)) scalars.push_back(name);
    const Serving& how = b.spread.serving;
    const std::string heading = fmt::format(
        "program {:016x} microbatches {} ranks {} idle {} servers {} push {} pull {} bound {}",
        program_digest(b), b.microbatches, ranks(), b.spread.idle, how.servers, how.push, how.pull,
        how.bound);
    served_ = std::make_shared<Served>(b, std::move(scalars), heading, runtime_);
    served_->add(key, b);
    forget_loaded();
  }

  void predict(const Variant& variant) {
    uint64_t& bytes = predicted_[&variant];
    if (!spec_.local)
      for (const Prediction& p : predictions(variant.plan(), spec_.strategies, rank()))
        bytes += p.predicted;
  }

  void average() {
    average_->run();
    counters_.planned_bytes_copied += average_->plan().bytes_copied();
    counters_.predicted_bytes_sent += predicted_.at(average_.get());
  }

  // What ranks that train alone run when they meet.
  void make_average(const Variant& trained, const Spread& spread) {
    averaging_ = spread.averaging;
    Blueprint b;
    b.program = averaging_program(trained.plan().local.program, spread);
    b.spread = spread, b.spread.batch_axis.clear(), b.spread.tensor = {};
    average_ = std::make_unique<Variant>(b, rank(), runtime_);
    predict(*average_);
  }

  void remember(const std::shared_ptr<State>& s) {
    if (std::find(known_states_.begin(), known_states_.end(), s) != known_states_.end()) return;
    known_states_.push_back(s);
    auto loaded = pending_.find(s->name);
    if (loaded == pending_.end()) return;
    if (loaded->second.type != s->type)
      fail(ORR_FAILED, "the checkpoint's '{}' is {}, this run wants {}", s->name,
           to_string(loaded->second.type), to_string(s->type));
    begin_with(s, loaded->second);
    pending_.erase(loaded);
  }

  // Its part is not known yet.
  void begin_with(const std::shared_ptr<State>& s, const HostTensor& value) {
    s->initial = {Initial::data, 0, 0, value};
    loaded_.push_back(s);
  }

  // What a checkpoint gave lies in the states' memory now.
  void forget_loaded() {
    for (auto& s : loaded_)
      if (s->lies_somewhere()) s->initial.tensor = {};
    std::erase_if(loaded_, [](auto& s) { return s->lies_somewhere(); });
  }

  std::vector<std::shared_ptr<State>> all_states() {
    for (auto& s : spec_.params) remember(s);
    materialize(known_states_);
    return known_states_;
  }

  RunSpec spec_;
  Drawing drawing_;
  Runtime& runtime_;
  std::map<std::string, std::unique_ptr<Variant>> variants_;
  std::unique_ptr<Variant> average_;
  std::shared_ptr<Served> served_;
  Averaging averaging_;
  std::vector<std::shared_ptr<State>> known_states_, loaded_;
  std::map<std::string, HostTensor> pending_;
  int64_t steps_ = 0, microbatches_ = 0, saved_microbatches_ = 0;
  double skipped_ = 0;  // steps that changed nothing, in all
  int in_a_row_ = 0;
  Counters counters_;
  std::map<const Variant*, uint64_t> predicted_;  // bytes a step
};

}  // namespace

std::unique_ptr<Run> Run::make(RunSpec spec) { return std::make_unique<TrainRun>(std::move(spec)); }

}  // namespace orrery
