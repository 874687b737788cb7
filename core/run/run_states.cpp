// SPDX-License-Identifier: Apache-2.0
#include "run/run_states.h"

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "run/agree.h"
#include "run/replicas.h"
#include "run/run.h"

namespace orrery {
namespace {

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

// Throws Error if a parameter has a value that is not finite, or another state has a NaN; a mask
// may hold -inf.
void check_finite(const State& s, const HostTensor& value, int64_t step) {
  const std::string where = not_finite(value, s.role != Role::param || s.frozen);
  if (!where.empty())
    fail(ORR_FAILED,
         "after step {} '{}' holds {}: it is not saved; load an earlier checkpoint, lower the "
         "learning rate or clip gradients",
         step, s.name, where);
}

// The name that a checkpoint gives to the value of one of n coordinates: "w@0", "w@1"; "w" if there
// is only one.
std::string name_of(const std::string& state, int32_t n, int32_t coordinate) {
  return n == 1 ? state : fmt::format("{}@{}", state, coordinate);
}

// Groups the tensors of a checkpoint by state: one value, or one for each coordinate.
std::map<std::string, std::vector<HostTensor>> by_state(std::map<std::string, HostTensor> tensors,
                                                        const std::string& directory) {
  std::map<std::string, std::vector<HostTensor>> values;
  for (auto& [name, value] : tensors) {
    const size_t at = name.rfind('@');
    const std::string state = name.substr(0, at);
    if (at == std::string::npos || name.substr(at + 1) != "0") {
      if (at == std::string::npos || !tensors.count(state + "@0")) values[name] = {value};
      continue;
    }
    for (int32_t c = 0; tensors.count(name_of(state, 2, c)); ++c)
      values[state].push_back(tensors.at(name_of(state, 2, c)));
    for (const HostTensor& each : values[state])
      if (each.type != value.type)
        fail(ORR_FAILED, "checkpoint '{}': the ranks' values of '{}' are {} and {}", directory,
             state, to_string(value.type), to_string(each.type));
  }
  return values;
}

int32_t coordinates_of(const State& s) {
  const auto& of = s.coordinate_of;
  return of.empty() ? 1 : 1 + *std::max_element(of.begin(), of.end());
}

}  // namespace

void refuse_equal_names(const std::vector<std::shared_ptr<State>>& states, const std::string& line,
                        const char* where, const char* remedy) {
  std::map<std::string, const State*> by_name;
  for (auto& s : states)
    if (auto [at, fresh] = by_name.try_emplace(s->name, s.get()); !fresh)
      fail(ORR_INVALID, "{}: {} two tensors named '{}', made at {} and {}: {}", line, where,
           s->name, at->second->site.line, s->site.line, remedy);
}

void RunStates::remember_model() {
  for (auto& s : spec_.params) remember(s);
  for (auto& s : spec_.states) remember(s);
}

void RunStates::remember_buffers() {
  if (pending_.empty() || !spec_.buffers) return;
  for (auto& s : spec_.buffers())
    if (pending_.count(s->name)) remember(s);
}

void RunStates::remember(const std::shared_ptr<State>& s) {
  if (s->constant || s->passing) return;
  if (std::find(known_.begin(), known_.end(), s) != known_.end()) return;
  known_.push_back(s);
  auto loaded = pending_.find(s->name);
  if (loaded == pending_.end()) return;
  if (const Type& type = loaded->second.front().type; type != s->type)
    fail(ORR_FAILED, "the checkpoint's '{}' is {}, this run wants {}", s->name, to_string(type),
         to_string(s->type));
  begin_with(s, loaded->second);
  pending_.erase(loaded);
}

// Gives a state its loaded value. If it has no memory yet, its part is not known: the value becomes
// its initial value.
void RunStates::begin_with(const std::shared_ptr<State>& s, const std::vector<HostTensor>& values) {
  if (s->lies_somewhere()) return write_each(*s, values);
  s->initial = {};
  s->initial.kind = Initial::data, s->initial.each = values;
  ++s->version;
  loaded_.push_back(s);
}

void RunStates::forget_loaded() {
  for (auto& s : loaded_)
    if (s->lies_somewhere()) s->initial.each.clear();
  std::erase_if(loaded_, [](auto& s) { return s->lies_somewhere(); });
}

const std::vector<std::shared_ptr<State>>& RunStates::all() {
  remember_model();
  if (spec_.buffers)
    for (auto& s : spec_.buffers())
      if (s->version > 0) remember(s);
  materialize(known_);
  refuse_equal_names(known_, spec_.line, "a checkpoint would have",
                     "put their modules into one table, orrery.parameters{a = ..., b = ...}, or "
                     "give the buffers names");
  return known_;
}

// Rank 0 writes, one tensor at a time. The other ranks send it their parts, and then wait for the
// outcome.
void RunStates::save(const std::string& directory, const CheckpointFacts& facts,
                     const std::set<const State*>& alike) {
  bool writing = world_info().rank == 0 || ranks_ == 1;
  size_t read = 0;
  std::vector<NamedTensor> tensors;
  const auto add = [&](const State& s, int32_t n, int32_t c, std::function<HostTensor()> value) {
    tensors.push_back({name_of(s.name, n, c), s.role == Role::param, {s.type, [&, value] {
                                                                        ++read;
                                                                        return value();
                                                                      }}});
  };
  for (auto& s : all()) {
    const int32_t n = alike.count(s.get()) ? 1 : coordinates_of(*s);
    for (int32_t c = 0; c < n; ++c)
      add(*s, n, c, [&, s, c] {
        HostTensor value = read_of(*s, c);
        if (writing) check_finite(*s, value, facts.step);
        return value;
      });
  }
  for (auto& [name, values] : pending_) {  // loaded, and not in use yet
    State s;
    s.name = name, s.type = values.front().type, s.role = Role::state;
    const auto n = static_cast<int32_t>(values.size());
    for (int32_t c = 0; c < n; ++c)
      add(s, n, c, [value = values[static_cast<size_t>(c)]] { return value; });
  }
  sort_for_checkpoint(tensors);
  std::string error;
  if (writing) error = error_of([&] { save_checkpoint(directory, facts, tensors); });
  writing = false;
  if (ranks_ > 1)  // even if rank 0 could not write: the others are waiting
    while (read < tensors.size()) tensors[read].tensor.read();
  throw_together(error, "run:save");
}

CheckpointFacts RunStates::load(const std::string& directory) {
  LoadedCheckpoint c;
  std::map<std::string, std::vector<HostTensor>> values;
  throw_together(error_of([&] {
                   c = load_checkpoint(directory);
                   values = by_state(std::move(c.tensors), directory);
                   check_fits(values, directory);
                 }),
                 "run:load");
  if (ranks_ > 1) compare_loaded(c, directory);
  for (auto& s : known_) {
    auto found = values.find(s->name);
    begin_with(s, found->second);
    values.erase(found);
  }
  pending_ = std::move(values);
  remember_buffers();
  return c.facts;
}

void RunStates::check_fits(const std::map<std::string, std::vector<HostTensor>>& values,
                           const std::string& directory) {
  remember_model();
  for (auto& s : known_) {
    auto found = values.find(s->name);
    if (found == values.end())
      fail(ORR_FAILED, "checkpoint '{}' has no tensor '{}' {}", directory, s->name,
           to_string(s->type));
    if (const Type& type = found->second.front().type; type != s->type)
      fail(ORR_FAILED,
           "checkpoint '{}': '{}' is {}, but {} here; load it into the model that was saved",
           directory, s->name, to_string(type), to_string(s->type));
  }
}

void RunStates::compare_loaded(const LoadedCheckpoint& c, const std::string& directory) const {
  const auto all =
      numbers_of_all({c.digest, static_cast<uint64_t>(c.facts.step)}, "run:load", spec_.line);
  for (size_t r = 1; 2 * r < all.size(); ++r)
    if (all[2 * r] != all[0])
      fail(ORR_FAILED,
           "checkpoint '{}': rank 0 has read one of step {} and rank {} another, of step {}; give "
           "all ranks the same one, while nobody saves there",
           directory, all[1], r, all[2 * r + 1]);
}

void RunStates::throw_together(const std::string& error, const char* what) const {
  if (ranks_ > 1) fail_together(error, what, spec_.line);
  if (!error.empty()) throw Error(ORR_FAILED, error);
}

}  // namespace orrery
