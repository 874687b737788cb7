// SPDX-License-Identifier: Apache-2.0
//
// Memory of states. Three ranks, a parameter w f32[3072] that is sharded: rank 1's program wants
// the elements [1024, 2048) of it.
//
//   bind_states   gives rank 1 memory for 1,024 elements with their initial values; the ranks tell
//                 one another who has which elements
//   read_state    gathers the 3,072 elements on every rank: each sends its own
//   write_state   is given 3,072 elements on every rank, and each keeps its own
//
// States that get memory at the same time share one block of it, or one file.
#include "run/states.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "partition/localize.h"
#include "plugin/host.h"
#include "program/elements.h"
#include "run/profile.h"
#include "run/run.h"
#include "run/runtime.h"
#include "store/spill_file.h"

namespace orrery {
namespace {

constexpr uint64_t kLeast = 64;  // bytes of a file
using States = std::vector<std::shared_ptr<State>>;

uint64_t bytes_of(const State& s) { return s.part.type(s.type).bytes(); }
orr_buffer buffer_of(const State& s) { return {s.memory.get(), s.offset, bytes_of(s)}; }
uint64_t aligned(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

// Gives these states one block of memory, or one file.
void allocate_block(const States& fresh, Tier tier, const std::string& directory) {
  const uint64_t alignment = Runtime::get().device().alignment();
  uint64_t bytes = 0;
  for (auto& s : fresh) s->offset = bytes, bytes += aligned(bytes_of(*s), alignment);
  if (fresh.empty()) return;
  if (tier == Tier::disk) {
    auto file = spill_file(directory, bytes);
    for (auto& s : fresh) s->file = file;
  } else {
    auto block = memory_of(tier, bytes);
    for (auto& s : fresh) s->memory = block;
  }
}

// Gives memory to the states that have none, and returns these. Of a flat buffer all states have
// memory or none.
States allocate_missing(const States& states, const std::vector<FlatBuffer>& rows,
                        const RowMemory& allocate_row, const std::string& directory) {
  States fresh;
  for (const FlatBuffer& row : rows) {
    if (row.states.front()->memory) continue;
    auto memory = allocate_row(row);
    for (size_t i = 0; i < row.states.size(); ++i)
      row.states[i]->memory = memory, row.states[i]->offset = row.offsets[i];
    fresh.insert(fresh.end(), row.states.begin(), row.states.end());
  }
  std::map<Tier, States> by_tier;
  for (auto& s : states)
    if (!s->lies_somewhere() && std::find(fresh.begin(), fresh.end(), s) == fresh.end()) {
      fresh.push_back(s);
      by_tier[s->tier].push_back(s);
    }
  for (auto& [tier, those] : by_tier) allocate_block(those, tier, directory);
  return fresh;
}

// A part with all elements as Part{}, so that equal parts compare equal.
Part usual_form(const Part& part, const Type& whole) {
  return part.dims.empty() && part.begin == 0 && part.end == whole.elements() ? Part{} : part;
}

// Every rank tells the others which parts it has of these states: sets State::parts. Programs of
// other ranks may have the states in another order, so they are sorted by name. Of a part the ranks
// exchange begin, end and the number of cut dims; of each of these its index, the number of its
// ranges, and these.
void exchange_parts(std::vector<std::shared_ptr<State>> states) {
  std::stable_sort(states.begin(), states.end(),
                   [](auto& a, auto& b) { return a->name < b->name; });
  std::vector<int64_t> numbers;
  for (auto& s : states) {
    const Part& p = s->part;
    numbers.insert(numbers.end(), {p.begin, p.end, static_cast<int64_t>(p.dims.size())});
    for (auto& [dim, ranges] : p.dims) {
      numbers.insert(numbers.end(), {dim, static_cast<int64_t>(ranges.size())});
      for (auto& [lo, hi] : ranges) numbers.insert(numbers.end(), {lo, hi});
    }
  }
  HostTensor mine = HostTensor::make({ORR_I64, {static_cast<int64_t>(numbers.size())}});
  std::copy(numbers.begin(), numbers.end(), mine.data<int64_t>());
  HostTensor all = world_allgather(mine, "the ranks' parts of states");
  const int64_t* at = all.data<int64_t>();
  for (int r = 0; r < world_info().size; ++r)
    for (auto& s : states) {
      Part p{{}, at[0], at[1]};
      int64_t dims = at[2];
      for (at += 3; dims-- > 0;) {
        Part::Ranges& ranges = p.dims[static_cast<int32_t>(at[0])];
        int64_t n = at[1];
        for (at += 2; n-- > 0; at += 2) ranges.emplace_back(at[0], at[1]);
      }
      s->parts.push_back(std::move(p));
    }
  for (auto& s : states)
    if (std::all_of(s->parts.begin(), s->parts.end(), [](const Part& p) { return p.is_whole(); }))
      s->parts.clear();
}

Part part_of(const State& s, int rank) {
  return s.parts.empty() ? Part{} : s.parts[static_cast<size_t>(rank)];
}

// The ranks that send their parts when the value that a coordinate has of a state is gathered: the
// lowest rank that has each part, or the first one that has the whole.
std::vector<int> senders_of(const State& s, int32_t coordinate) {
  std::vector<int> found;
  std::vector<Part> sent;
  for (int r = 0; r < world_info().size; ++r) {
    if (!s.coordinate_of.empty() && s.coordinate_of[static_cast<size_t>(r)] != coordinate) continue;
    const Part part = part_of(s, r);
    if (part.is_whole()) return {r};
    if (part.type(s.type).elements() == 0) continue;
    if (std::find(sent.begin(), sent.end(), part) != sent.end()) continue;
    found.push_back(r), sent.push_back(part);
  }
  return found;
}

// The whole value that a coordinate has of a state, gathered on all ranks. Collective.
HostTensor gathered(const State& s, int32_t coordinate) {
  std::vector<int> from = senders_of(s, coordinate);
  bool sends = std::find(from.begin(), from.end(), world_info().rank) != from.end();
  HostTensor mine = HostTensor::make({ORR_U8, {sends ? static_cast<int64_t>(bytes_of(s)) : 0}});
  if (sends) read_part(s, mine.bytes->data());
  HostTensor all = world_allgather(mine, "state '" + s.name + "'"),
             whole = HostTensor::make(s.type);
  const std::byte* at = all.bytes->data();
  for (int rank : from) {
    const Part part = part_of(s, rank);
    put_part(whole, part, at);
    at += part.type(s.type).bytes();
  }
  return whole;
}

// Makes one value of those of all coordinates, by the rule State::leave.
HostTensor combined(const State& s, const std::vector<HostTensor>& values) {
  if (s.leave == Leave::refuse)
    fail(ORR_FAILED,
         "{}'{}' has a value of its own on each of {} ranks of axis '{}', and none for another "
         "number of ranks: go on with as many",
         s.site.prefix(), s.name, values.size(), s.varying);
  if (s.leave == Leave::first || values.size() == 1) return values.front();
  HostTensor one = HostTensor::make(values.front().type);
  const auto bytes = static_cast<size_t>(orr_dtype_bytes(s.type.dtype));
  const double factor = s.leave == Leave::mean ? 1.0 / static_cast<double>(values.size()) : 1.0;
  for (size_t at = 0; at < one.bytes->size(); at += bytes) {
    double sum = 0;
    for (const HostTensor& v : values) sum += read_element(s.type.dtype, v.bytes->data() + at);
    write_element(s.type.dtype, one.bytes->data() + at, sum * factor);
  }
  return one;
}

// Whether a state has memory for another part, or in another tier, than is wanted now. Throws Error
// if a compiled program uses that memory.
bool must_move(const State& s, const Part& wanted, Tier tier, int world) {
  bool fits = wanted == s.part && tier == s.tier && (world > 1 || s.parts.empty());
  if (s.bound && !fits)
    fail(ORR_INVALID,
         "{}'{}' is held {} by a program that was compiled before, and this one wants {}; compile "
         "the training step first, and read such states with orrery.func or run:eval",
         s.site.prefix(), s.name,
         s.parts.empty() ? s.tier == Tier::device ? "whole" : "in another tier" : "in parts",
         wanted.is_whole() ? "the whole here" : "a part");
  return s.lies_somewhere() && !fits;
}

// Notes in every varying state which coordinate's value each rank of the mesh has. Returns those
// that a checkpoint has given a value when that was not known: each rank must read its own value
// again.
States set_coordinates(const StateParts& parts, const Mesh& mesh) {
  States loaded;
  for (auto& [s, part, tier] : parts) {
    if (mesh.size_of(s->varying) == 1) continue;  // another program's mesh has the coordinates
    if (s->coordinate_of.empty() && is_as_loaded(*s)) loaded.push_back(s);
    s->coordinate_of.clear();
    for (int r = 0; r < mesh.world; ++r) s->coordinate_of.push_back(mesh.coordinate(s->varying, r));
  }
  return loaded;
}

// The states of flat buffers that do not lie one after another, or may still move. All ranks find
// the same ones.
States to_lay_out(const std::vector<FlatBuffer>& flat_buffers) {
  States found;
  for (const FlatBuffer& row : flat_buffers)
    if (!row.states.front()->bound || !row.is_laid_out())
      found.insert(found.end(), row.states.begin(), row.states.end());
  return found;
}

// Values of states that get other memory.
using Moving = std::vector<std::pair<std::shared_ptr<State>, HostTensor>>;

// Sets the values of states with new memory: what they had before, or their initial ones.
void fill_new(const States& fresh, const Moving& moving) {
  for (auto& s : fresh) {
    auto moved = std::find_if(moving.begin(), moving.end(), [&](auto& m) { return m.first == s; });
    if (moved == moving.end())
      set_initial(s);
    else
      fill_state(*s, moved->second);
  }
}

}  // namespace

std::shared_ptr<const orr_memory> memory_of(Tier tier, uint64_t bytes) {
  Profile::Timer timer(Profile::get().once("memory of states"));
  const Device& device = Runtime::get().device();
  const char* what = "memory for parameters and states";
  return tier == Tier::device ? device.memory(bytes, what) : device.pinned(bytes, what);
}

std::shared_ptr<SpillFile> spill_file(const std::string& directory, uint64_t bytes) {
  const std::string& run = runtime_options().run_directory;
  const std::string place = !directory.empty() ? directory
                            : !run.empty()     ? run
                                               : std::filesystem::temp_directory_path().string();
  return std::make_shared<SpillFile>(place, std::max(bytes, kLeast));
}

std::byte* state_address(const State& state) {
  return static_cast<std::byte*>(state.memory->host) + state.offset;
}

void read_part(const State& state, std::byte* to) {
  if (state.file)
    state.file->read(to, bytes_of(state), state.offset);
  else
    Runtime::get().device().read(to, buffer_of(state));
}

const std::byte* part_in_memory(const State& state, std::vector<std::byte>& copy) {
  if (!state.file && state.memory->host) return state_address(state);
  copy.resize(bytes_of(state));
  read_part(state, copy.data());
  return copy.data();
}

void write_part(const State& state, const std::byte* from) {
  if (state.file)
    state.file->write(from, bytes_of(state), state.offset);
  else
    Runtime::get().device().write(buffer_of(state), from);
}

void materialize(const std::vector<std::shared_ptr<State>>& states) {
  for (auto& s : allocate_missing(states, {}, {}, "")) set_initial(s);
}

void bind_states(const StateParts& parts, const std::vector<FlatBuffer>& flat_buffers, int world,
                 const RowMemory& allocate, const std::string& directory, const Mesh* mesh) {
  States states, unknown;
  Moving moving;
  const States unordered = to_lay_out(flat_buffers);
  for (auto& [s, part, tier] : parts) {
    const Part wanted = usual_form(part, s->type);
    const bool joins =
        s->lies_somewhere() && std::find(unordered.begin(), unordered.end(), s) != unordered.end();
    if (must_move(*s, wanted, tier, world) || joins) {
      moving.push_back({s, read_state(*s)});
      s->memory.reset(), s->file.reset();
    }
    // Which ranks have a constant from an earlier program depends on when garbage was collected, so
    // parts of constants are not exchanged: every rank makes its part by itself.
    if (!s->bound && !s->constant) unknown.push_back(s);
    s->part = wanted, s->tier = tier, s->bound = true;
    states.push_back(s);
  }
  States loaded;
  if (mesh) loaded = set_coordinates(parts, *mesh);  // after `moving` was read as it was before
  if (world > 1 && !unknown.empty()) exchange_parts(unknown);
  fill_new(allocate_missing(states, flat_buffers, allocate, directory), moving);
  for (auto& s : loaded) s->initial.read(*s);
}

bool is_in_parts(const State& state) {
  return !state.parts.empty() || (state.constant && !state.part.is_whole());
}

HostTensor read_state(State& state) {
  if (state.constant) return state.initial.tensor;
  Runtime::get().settle();
  if (!state.lies_somewhere()) fail(ORR_FAILED, "state '{}' has no value yet", state.name);
  if (!state.coordinate_of.empty()) {
    std::vector<HostTensor> values;
    for (int32_t c = 0; c < coordinates_of(state); ++c) values.push_back(read_of(state, c));
    return combined(state, values);
  }
  if (!state.parts.empty()) return gathered(state, 0);
  HostTensor out = HostTensor::make(state.type);
  read_part(state, out.bytes->data());
  return out;
}

HostTensor read_of(State& state, int32_t coordinate) {
  Runtime::get().settle();
  if (!state.coordinate_of.empty()) return gathered(state, coordinate);
  return read_state(state);
}

int32_t coordinates_of(const State& state) {
  const auto& of = state.coordinate_of;
  return of.empty() ? 1 : 1 + *std::max_element(of.begin(), of.end());
}

bool is_as_loaded(const State& state) {
  const Initial& initial = state.initial;
  return initial.kind == Initial::stored && initial.read && initial.read_as == state.version;
}

void write_stored(State& state, int32_t values, const StoredPart& read) {
  const auto& of = state.coordinate_of;
  const int32_t me = of.empty() ? 0 : of[static_cast<size_t>(world_info().rank)];
  const auto part_of_value = [&](int32_t coordinate) {
    HostTensor part = HostTensor::make(state.part.type(state.type));
    read(coordinate, state.part, part.bytes->data());
    return part;
  };
  HostTensor part;
  if (values == coordinates_of(state)) {
    part = part_of_value(me);
  } else {
    std::vector<HostTensor> each;
    for (int32_t c = 0; c < values; ++c) each.push_back(part_of_value(c));
    part = combined(state, each);
    // If the value is the sum of all coordinates' values, the first coordinate gets all of it.
    if (state.leave == Leave::sum && me > 0) part = HostTensor::make(part.type);
  }
  write_part(state, part.bytes->data());
  ++state.version;
}

void make_copy(State& copy) {
  State& of = *copy.copy_of;
  HostTensor value = read_of(of, 0), rounded = HostTensor::make(copy.type);
  const auto& coordinates = of.coordinate_of;
  for (int32_t c = 1; c < coordinates_of(of); ++c)
    if (HostTensor other = read_of(of, c); coordinates[static_cast<size_t>(world_info().rank)] == c)
      value = other;
  const auto from = static_cast<size_t>(orr_dtype_bytes(of.type.dtype)),
             to = static_cast<size_t>(orr_dtype_bytes(copy.type.dtype));
  for (size_t i = 0; i < static_cast<size_t>(of.type.elements()); ++i)
    write_element(copy.type.dtype, rounded.bytes->data() + i * to,
                  read_element(of.type.dtype, value.bytes->data() + i * from));
  fill_state(copy, rounded);
  copy.version = of.version;
}

void fill_state(State& state, const HostTensor& value) {
  Runtime::get().settle();
  if (value.type != state.type)
    fail(ORR_INVALID, "state '{}' is {}, the value given {}", state.name, to_string(state.type),
         to_string(value.type));
  if (!state.lies_somewhere()) fail(ORR_FAILED, "state '{}' has no memory yet", state.name);
  if (state.file || !state.memory->host) {
    std::vector<std::byte> part(bytes_of(state));
    take_part(value, state.part, part.data());
    write_part(state, part.data());
  } else {
    take_part(value, state.part, state_address(state));
  }
}

void write_state(State& state, const HostTensor& value) {
  fill_state(state, value);
  ++state.version;
}

}  // namespace orrery
