// SPDX-License-Identifier: Apache-2.0
#include "run/variant.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "lower/lower.h"
#include "run/profile.h"
#include "run/states.h"

namespace orrery {
namespace {

bool traces_training = false;

RankPlan lowered(const Blueprint& b, int rank, Runtime& runtime, SharedArena& arena) {
  LowerRequest request{&b.program, &b.mesh, b.microbatches, rank, runtime.kernels()};
  request.fuse = !runtime_options().check_nan;
  RankPlan plan = [&] {
    Profile::Timer timer(Profile::get().once("lowering"));
    return lower(request);
  }();
  arena.reserve(plan.arena_bytes);  // initial values are computed in it: fresh memory is slow
  runtime.form_groups(plan.mesh);
  bind_states(
      plan.local.parts, plan.local.flat_buffers, b.mesh.world,
      [&](const FlatBuffer& row) {
        return runtime.exchanged(row.room, runtime.group(plan.mesh, row.axis));
      },
      plan.mesh.offload.directory, &b.mesh);
  return plan;
}

}  // namespace

bool tracing_training() { return traces_training; }

bool trace_as(bool training) { return std::exchange(traces_training, training); }

TraceScope::TraceScope(bool training) { traces_training = training; }
TraceScope::~TraceScope() { traces_training = false; }

std::vector<std::shared_ptr<State>> states_of(const Program& p) {
  std::vector<std::shared_ptr<State>> states;
  for (const Value& v : p.values())
    if (v.state) states.push_back(v.state);
  return states;
}

Variant::Variant(const Blueprint& blueprint, int rank, Runtime& runtime)
    : Variant(blueprint, rank, runtime, runtime.arena()) {}

Variant::Variant(const Blueprint& blueprint, int rank, Runtime& runtime, SharedArena& arena)
    : executor_(lowered(blueprint, rank, runtime, arena), runtime, arena) {
  for (auto& [state, next] : blueprint.program.updates())
    updated_.push_back(blueprint.program.value(state).state);
  for (const StatePart& one : plan().local.parts)
    if (one.state->copy_of) copies_.push_back(one.state);
  std::sort(copies_.begin(), copies_.end(),  // in the same order on all ranks
            [](auto& a, auto& b) { return a->name < b->name; });
}

void Variant::make_copies() {
  for (auto& copy : copies_)
    if (copy->version != copy->copy_of->version) make_copy(*copy);
}

void Variant::run(Spans* spans) {
  spans ? executor_.run(*spans) : executor_.run();
  for (auto& state : updated_) ++state->version;
}

// The states of which this rank has a part.
std::vector<std::shared_ptr<State>> Variant::local_states() const {
  std::vector<std::shared_ptr<State>> found;
  for (const StatePart& one : plan().local.parts)
    if (one.state->lies_somewhere()) found.push_back(one.state);
  return found;
}

void Variant::run_twice(const std::function<void()>& set, const std::string& line, int64_t step,
                        int ranks) {
  Verification verification(plan(), Runtime::get().device(), local_states());
  executor_.verify(&verification);
  try {
    set();
    run();
    verification.begin_again();
    set();
    run();
  } catch (...) {
    executor_.verify(nullptr);
    throw;
  }
  executor_.verify(nullptr);
  verification.judge(line, step, ranks);
}

void Variant::set_scalars(const std::map<std::string, double>& scalars, int64_t step) {
  executor_.set_step(step);
  const Program& p = plan().local.program;
  for (size_t i = 0; i < p.values().size(); ++i) {
    const Value& v = p.values()[i];
    std::byte* to = v.role == Role::scalar ? executor_.address(static_cast<ValueId>(i)) : nullptr;
    if (!to) continue;
    if (v.name == "$row") {
      set_rows(reinterpret_cast<int64_t*>(to));
      continue;
    }
    int64_t whole = v.name == "$step" ? step : static_cast<int64_t>(runtime_options().seed);
    double real = 0;
    if (v.name != "$step" && v.name != "$seed") {
      auto given = scalars.find(v.name);
      if (given == scalars.end())
        fail(ORR_INVALID, "{}no value for the scalar '{}'", v.site.prefix(), v.name);
      real = given->second, whole = static_cast<int64_t>(real);
    }
    auto put = [&](auto x) { std::memcpy(to, &x, sizeof x); };
    if (v.type.dtype == ORR_I64)
      put(whole);
    else if (v.type.dtype == ORR_I32)
      put(static_cast<int32_t>(whole));
    else if (v.type.dtype == ORR_F64)
      put(real);
    else
      put(static_cast<float>(real));
  }
}

// Writes the index of the first sample of every microbatch.
void Variant::set_rows(int64_t* to) {
  const Microbatches& microbatches = plan().local.microbatches;
  for (int64_t s = 0; s < microbatches.calls(); ++s)
    to[s] = microbatches.first_row() + s * microbatches.rows;
}

void Variant::load_field(const BatchField& field, ValueId v) {
  std::byte* to = executor_.address(v);
  if (!to) return;  // the program does not read it
  const Microbatches& microbatches = plan().local.microbatches;
  int64_t batch = field.type.dims[0];
  int64_t begin = std::min(batch, microbatches.first_row());
  int64_t end =
      std::min(batch, microbatches.first_row() + microbatches.count() * microbatches.rows);
  uint64_t row = field.type.bytes() / static_cast<uint64_t>(batch);
  // Rows behind the last sample have weight 0, but ops compute with them: they repeat the last
  // sample.
  if (begin == end) field.load(batch - 1, batch, to);
  if (begin < end) field.load(begin, end, to);
  uint64_t used = static_cast<uint64_t>(std::max<int64_t>(end - begin, 1)) * row;
  uint64_t all = plan().local.program.type(v).bytes() * static_cast<uint64_t>(microbatches.calls());
  for (; used < all; used += row) std::memcpy(to + used, to + used - row, row);
}

void Variant::load_whole(const BatchField& field, ValueId v) {
  if (std::byte* to = executor_.address(v)) field.load(0, field.type.dims[0], to);
}

// Writes of(i) for each sample i of the rank, and for the rows that pad the last microbatch.
template <class T>
void Variant::load_each(ValueId v, const std::function<T(int64_t sample)>& of) {
  auto* to = reinterpret_cast<T*>(executor_.address(v));
  if (!to) return;
  const Microbatches& microbatches = plan().local.microbatches;
  int64_t begin = microbatches.first_row(), n = microbatches.count() * microbatches.rows;
  for (int64_t i = 0; i < n; ++i) to[i] = of(begin + i);
}

void Variant::set_batch(const BatchFields& batch) {
  const Program& p = plan().local.program;
  for (size_t i = 0; i < p.values().size(); ++i) {
    const Value& v = p.values()[i];
    if (v.role == Role::whole_batch) load_whole(batch.at(v.name), static_cast<ValueId>(i));
    if (v.role != Role::batch) continue;
    const int64_t samples = batch.begin()->second.type.dims[0];
    if (v.name == "$weight")
      load_each<float>(static_cast<ValueId>(i),
                       [&](int64_t sample) { return sample < samples ? 1.0f : 0.0f; });
    else if (v.name == "$place")
      load_each<int64_t>(static_cast<ValueId>(i),
                         [&](int64_t sample) { return sample < samples ? sample : 0; });
    else
      load_field(batch.at(v.name), static_cast<ValueId>(i));
  }
}

void Variant::set_inputs(const std::vector<HostTensor>& inputs) {
  const Program& p = plan().local.program;
  for (size_t i = 0; i < p.values().size(); ++i) {
    const Value& v = p.values()[i];
    std::byte* to = v.role == Role::input ? executor_.address(static_cast<ValueId>(i)) : nullptr;
    if (!to) continue;
    const HostTensor& from = inputs.at(static_cast<size_t>(std::stoul(v.name)));
    std::memcpy(to, from.bytes->data(), from.type.bytes());
  }
}

std::map<std::string, double> Variant::fetch_scalars() const {
  std::map<std::string, double> found;
  for (auto& [name, id] : plan().local.program.outputs())
    if (plan().local.program.type(id).dims.empty()) found[name] = executor_.scalar(id);
  return found;
}

std::vector<std::pair<std::string, HostTensor>> Variant::fetch_tensors(bool with_scalars) const {
  std::vector<std::pair<std::string, HostTensor>> found;
  for (auto& [name, id] : plan().local.program.outputs()) {
    if (!with_scalars && plan().local.program.type(id).dims.empty()) continue;
    const Place& at = plan().places[static_cast<size_t>(id)];
    HostTensor t = HostTensor::make(plan().local.program.type(id));
    if (!at.layout.is_contiguous()) fail(ORR_FAILED, "output '{}' is not contiguous", name);
    std::memcpy(t.bytes->data(), executor_.address(id), t.type.bytes());
    found.emplace_back(name, t);
  }
  return found;
}

}  // namespace orrery
