// SPDX-License-Identifier: Apache-2.0
#include "run/run_states.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "run/agree.h"
#include "run/checkpoint_shard.h"
#include "run/counts.h"
#include "run/replicas.h"
#include "run/run.h"
#include "run/runtime.h"
#include "run/states.h"

namespace orrery {
namespace {

// The checkpoints that are being written, of all runs. A run may be gone before its own is.
std::vector<std::shared_ptr<Saving>>& savings() {
  static std::vector<std::shared_ptr<Saving>> all;
  return all;
}

// The parameters that the run which trains them has loaded.
std::vector<std::weak_ptr<State>>& loaded_by_their_runs() {
  static std::vector<std::weak_ptr<State>> all;
  return all;
}

// The name that a checkpoint gives to the value of one of n coordinates: "w@0", "w@1"; "w" if there
// is only one.
std::string name_of(const std::string& state, int32_t n, int32_t coordinate) {
  return n == 1 ? state : fmt::format("{}@{}", state, coordinate);
}

// Throws Error, "LINE: WHERE two tensors named ...: REMEDY", if two states have the same name.
void refuse_equal_names(const std::vector<std::shared_ptr<State>>& states,
                        const std::function<std::string(const State&)>& name_of,
                        const std::string& line, const char* where, const char* remedy) {
  std::map<std::string, const State*> by_name;
  for (auto& s : states) {
    const std::string name = name_of(*s);
    if (auto [at, fresh] = by_name.try_emplace(name, s.get()); !fresh)
      fail(ORR_INVALID, "{}: {} two tensors named '{}', made at {} and {}: {}", line, where, name,
           at->second->site.line, s->site.line, remedy);
  }
}

std::string own_name(const State& s) { return s.name; }

}  // namespace

void sort_parameters(RunSpec& spec) {
  refuse_equal_names(spec.params, own_name, spec.line, "params has",
                     "put their modules into a table, params = {a = ..., b = ...}");
  std::vector<size_t> order(spec.params.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return natural_less(spec.params[a]->name, spec.params[b]->name);
  });
  StateList params, gradients;
  for (size_t i : order) {
    params.push_back(spec.params[i]);
    if (!spec.gradients.empty()) gradients.push_back(spec.gradients[i]);
  }
  spec.params = std::move(params), spec.gradients = std::move(gradients);
}

void RunStates::remember_model() {
  for (auto& s : spec_.params) remember(s);
  for (auto& s : spec_.states) remember(s);
}

void RunStates::remember_of_script() {
  if (pending_.empty() || !spec_.script_states) return;
  const auto states = spec_.script_states();
  std::map<std::string, int> named;
  for (auto& s : states) ++named[s->name];
  for (auto& s : states)
    if (pending_.count(s->name) && (s->role == Role::state || named[s->name] == 1)) remember(s);
}

bool RunStates::is_left_to_its_run(const std::shared_ptr<State>& s) const {
  const auto& mine = spec_.params;
  if (std::find(mine.begin(), mine.end(), s) != mine.end()) return false;
  const auto& theirs = loaded_by_their_runs();
  return std::any_of(theirs.begin(), theirs.end(), [&](auto& each) { return each.lock() == s; });
}

void RunStates::remember(const std::shared_ptr<State>& s) {
  if (s->constant || s->passing) return;
  if (std::find(known_.begin(), known_.end(), s) != known_.end()) return;
  known_.push_back(s);
  names_[s.get()] = s->name;
  auto loaded = pending_.find(s->name);
  if (loaded == pending_.end()) {
    if (was_not_counted(s)) begin_at_loaded_step(*s);
    return;
  }
  if (const Type& type = loaded->second.type; type != s->type)
    fail(ORR_FAILED, "the checkpoint's '{}' is {}, this run wants {}", s->name, to_string(type),
         to_string(s->type));
  if (!is_left_to_its_run(s)) begin_with(s, loaded->second);
  pending_.erase(loaded);
}

const std::string& RunStates::saved_name(const State& s) const {
  const auto found = names_.find(&s);
  return found == names_.end() ? s.name : found->second;
}

bool RunStates::was_not_counted(const std::shared_ptr<State>& s) const {
  const auto of = counted_by(s);
  return of && loaded_names_.count(saved_name(*of)) && !loaded_names_.count(saved_name(*s));
}

void RunStates::begin_at_loaded_step(State& count) const {
  HostTensor value = HostTensor::make(count.type);
  *value.data<float>() = static_cast<float>(loaded_step_);
  if (!count.lies_somewhere()) {
    count.initial = Initial::of_data(value);
    ++count.version;
    return;
  }
  Runtime::get().settle();
  write_state(count, value);
}

// Gives a state its loaded value. If it has no memory yet, its part is not known: the value becomes
// its initial value, which is read when there is a part. The values of several coordinates are read
// as one until a program says which coordinate this rank has, and then again.
void RunStates::begin_with(const std::shared_ptr<State>& s, const Loaded& loaded) {
  s->initial = {};
  s->initial.kind = Initial::stored;
  s->initial.read = [loaded](State& state) {
    write_stored(state, static_cast<int32_t>(loaded.tensors.size()),
                 [&](int32_t c, const Part& part, std::byte* to) {
                   loaded.from->read(loaded.tensors[static_cast<size_t>(c)], part, to);
                 });
    state.initial.read_as = state.version;
  };
  std::erase_if(loaded_, [&](auto& one) { return one.first == s; });
  loaded_.push_back({s, loaded});
  if (!s->lies_somewhere()) {
    ++s->version;
    return;
  }
  Runtime::get().settle();
  s->initial.read(*s);
}

// Whether the state stands for values of several coordinates, none of which is this rank's yet. One
// process has only their one value.
bool RunStates::stands_for_several(const State& s, const Loaded& loaded) const {
  return ranks_ > 1 && loaded.tensors.size() > 1 && s.coordinate_of.empty() && is_as_loaded(s);
}

const RunStates::Loaded* RunStates::several(const State& s) const {
  for (auto& [state, loaded] : loaded_)
    if (state.get() == &s && stands_for_several(s, loaded)) return &loaded;
  return nullptr;
}

void RunStates::forget_loaded() {
  std::erase_if(loaded_, [this](auto& one) {
    auto& [s, loaded] = one;
    if (!s->lies_somewhere() || stands_for_several(*s, loaded)) return false;
    s->initial.read = nullptr;
    return true;
  });
}

const std::vector<std::shared_ptr<State>>& RunStates::all() {
  remember_model();
  if (spec_.script_states)
    for (auto& s : spec_.script_states())
      if (s->version > 0 && spec_.kept_by_script(s)) remember(s);
  materialize(known_);
  refuse_equal_names(
      known_, [this](const State& s) { return saved_name(s); }, spec_.line,
      "a checkpoint would have",
      "put their modules into one table, orrery.parameters{a = ..., b = ...}, or "
      "give the buffers names");
  return known_;
}

uint64_t RunStates::save(const std::string& directory, const CheckpointFacts& facts,
                         const std::set<const State*>& alike, bool compared, const SaveHow& how) {
  if (saving()) saving_->finish();
  CheckpointShard shard({directory, facts, {}, {}, spec_.line, ranks_}, compared, how.beside);
  const auto& states = all();
  throw_together(error_of([&] {
                   for (auto& s : states) {
                     if (several(*s)) continue;
                     const int32_t n = alike.count(s.get()) ? 1 : coordinates_of(*s);
                     for (int32_t c = 0; c < n; ++c) shard.add(name_of(saved_name(*s), n, c), s, c);
                   }
                 }),
                 "run:save");
  const auto again = [&](const Loaded& loaded) {
    for (const std::string& name : loaded.tensors) shard.add(name, loaded.from);
  };
  for (auto& s : states)
    if (const Loaded* loaded = several(*s)) again(*loaded);
  for (auto& [state, loaded] : pending_) again(loaded);  // loaded, and not in use yet
  const uint64_t copied = shard.copied();
  saving_ = std::make_shared<Saving>(std::move(shard).contents(), how);
  std::erase_if(savings(), [](auto& one) { return one->done(); });
  if (saving()) savings().push_back(saving_);
  return copied;
}

void finish_saves() {
  for (auto& one : std::exchange(savings(), {})) one->finish();
}

void end_saves() noexcept {
  for (auto& one : std::exchange(savings(), {}))
    if (one->alone())
      if (const std::string error = error_of([&] { one->finish(); }); !error.empty())
        fmt::print(stderr, "orrery: {}\n", error);
}

// The step of the newest checkpoint before `step` in a directory of several that all ranks see; -1:
// there is none. Collective.
int64_t RunStates::newest_before(int64_t step, const std::string& directory) const {
  int64_t found = -1;
  if (std::filesystem::exists(directory + "/checkpoint.json")) return found;  // of one only
  for (const InSeries& one : checkpoints_in(directory))
    if (one.complete && one.step < step) found = one.step;
  if (ranks_ == 1) return found;
  for (uint64_t other : numbers_of_all({static_cast<uint64_t>(found)}, "run:load", spec_.line))
    found = std::min(found, static_cast<int64_t>(other));
  return found;
}

// Gives a damaged checkpoint another name, so that no save or load takes it for one of the series.
void RunStates::skip(const std::string& path, const std::string& next,
                     const std::string& why) const {
  if (ranks_ > 1 && world_info().rank > 0) return;
  std::string name = path + ".damaged";
  for (int n = 2; std::filesystem::exists(name); ++n) name = fmt::format("{}.damaged-{}", path, n);
  std::error_code error;
  std::filesystem::rename(path, name, error);
  fmt::print(stderr, "orrery: a damaged checkpoint is skipped{}; going on from {}: {}\n",
             error ? "" : ", and is now " + name, next, why);
}

// Opens it, or says what is wrong, and whether that is damage: no rank has any other reason.
// Collective.
RunStates::Opened RunStates::try_open(const std::string& path) const {
  Opened opened;
  uint64_t reason = 0;  // 1: damage, 2: another
  opened.error = error_of([&] {
    throw_together(error_of([&] {
                     try {
                       opened.checkpoint = std::make_shared<const Checkpoint>(path);
                     } catch (const DamagedCheckpoint&) {
                       reason = 1;
                       throw;
                     } catch (...) {
                       reason = 2;
                       throw;
                     }
                   }),
                   "run:load");
  });
  if (opened.error.empty()) return opened;
  const auto reasons =
      ranks_ > 1 ? numbers_of_all({reason}, "run:load", spec_.line) : std::vector{reason};
  opened.damaged = std::ranges::find(reasons, uint64_t{2}) == reasons.end();
  return opened;
}

// Opens it, the newest if the directory has several. Where that is damaged on any rank, and
// RuntimeOptions::fallback is set, all ranks open the one before. Collective.
std::shared_ptr<const Checkpoint> RunStates::open(const std::string& directory) const {
  std::string path = directory;
  for (int64_t step = -1;;) {
    const auto [checkpoint, error, damaged] = try_open(path);
    if (error.empty()) return checkpoint;
    if (step < 0) step = newest_before(INT64_MAX, directory);
    const int64_t older = step < 0 ? -1 : newest_before(step, directory);
    const bool fallback = runtime_options().fallback;
    if (older < 0 || (!damaged && !fallback)) throw Error(ORR_FAILED, error);
    if (!damaged)
      throw Error(ORR_FAILED,
                  error +
                      "; it is not known to be damaged, so that --fallback does not pass it "
                      "over: to go on from an older one, give this one another name");
    if (!fallback)
      throw Error(ORR_FAILED, error + "; `orrery run --fallback` goes on from the newest good one");
    path = series_path(directory, older);
    skip(series_path(directory, step), path, error);
    step = older;
  }
}

void RunStates::tell_other_sums(const std::string& directory) const {
  if (ranks_ > 1 && world_info().rank > 0) return;
  const auto name = [](bool fast) { return fast ? "fast" : "canonical"; };
  fmt::print(stderr,
             "orrery: {}: the run that saved it had reduce = \"{}\", this one has \"{}\": from "
             "here on the bits are not those that it would have had\n",
             directory, name(!spec_.fast_sums), name(spec_.fast_sums));
}

CheckpointFacts RunStates::load(const std::string& directory) {
  std::shared_ptr<const Checkpoint> c;
  LoadedByName values;
  c = open(directory);
  throw_together(error_of([&] {
                   values = by_state(c);
                   loaded_names_.clear(), loaded_step_ = c->facts().step;
                   for (auto& [name, loaded] : values) loaded_names_.insert(name);
                   check_fits(values, c->directory());
                 }),
                 "run:load");
  if (ranks_ > 1) compare_loaded(*c);
  for (auto& s : known_) {
    auto found = values.find(saved_name(*s));
    if (found == values.end()) {
      begin_at_loaded_step(*s);
      continue;
    }
    if (!is_left_to_its_run(s)) begin_with(s, found->second);
    values.erase(found);
  }
  pending_ = std::move(values);
  remember_of_script();
  forget_loaded();
  auto& theirs = loaded_by_their_runs();
  std::erase_if(theirs, [](auto& each) { return each.expired(); });
  theirs.insert(theirs.end(), spec_.params.begin(), spec_.params.end());
  if (c->facts().fast_sums != spec_.fast_sums) tell_other_sums(directory);
  return c->facts();
}

// Groups the tensors of a checkpoint by state: one value, or one for each coordinate.
RunStates::LoadedByName RunStates::by_state(const std::shared_ptr<const Checkpoint>& from) {
  LoadedByName values;
  const TensorTypes& tensors = from->tensors();
  for (auto& [name, type] : tensors) {
    const size_t at = name.rfind('@');
    const std::string state = name.substr(0, at);
    if (at == std::string::npos || name.substr(at + 1) != "0") {
      if (at == std::string::npos || !tensors.count(state + "@0"))
        values[name] = {type, {name}, from};
      continue;
    }
    Loaded& loaded = values[state] = {type, {}, from};
    for (int32_t c = 0; tensors.count(name_of(state, 2, c)); ++c) {
      const std::string each = name_of(state, 2, c);
      loaded.tensors.push_back(each);
      if (tensors.at(each) != type)
        fail(ORR_FAILED, "checkpoint '{}': the ranks' values of '{}' are {} and {}",
             from->directory(), state, to_string(type), to_string(tensors.at(each)));
    }
  }
  return values;
}

void RunStates::check_fits(const LoadedByName& values, const std::string& directory) {
  remember_model();
  for (auto& s : known_) {
    auto found = values.find(saved_name(*s));
    if (found == values.end() && was_not_counted(s)) continue;
    if (found == values.end())
      fail(ORR_FAILED, "checkpoint '{}' has no tensor '{}' {}", directory, saved_name(*s),
           to_string(s->type));
    if (const Type& type = found->second.type; type != s->type)
      fail(ORR_FAILED,
           "checkpoint '{}': '{}' is {}, but {} here; load it into the model that was saved",
           directory, saved_name(*s), to_string(type), to_string(s->type));
  }
}

void RunStates::compare_loaded(const Checkpoint& c) const {
  const auto all =
      numbers_of_all({c.digest(), static_cast<uint64_t>(c.facts().step)}, "run:load", spec_.line);
  for (size_t r = 1; 2 * r < all.size(); ++r)
    if (all[2 * r] != all[0])
      fail(ORR_FAILED,
           "checkpoint '{}': rank 0 has read one of step {} and rank {} another, of step {}; give "
           "all ranks the same one, while nobody saves there",
           c.directory(), all[1], r, all[2 * r + 1]);
}

void RunStates::throw_together(const std::string& error, const char* what) const {
  if (ranks_ > 1) fail_together(error, what, spec_.line);
  if (!error.empty()) throw Error(ORR_FAILED, error);
}

}  // namespace orrery
