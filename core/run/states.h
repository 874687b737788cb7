// SPDX-License-Identifier: Apache-2.0
//
// The memory of states on this rank, and which part of each state it holds. [main thread]
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "program/state.h"

namespace orrery {

struct StatePart;
struct Mesh;
struct FlatBuffer;
using StateParts = std::vector<StatePart>;

// Allocates zeroed memory for a new flat buffer.
using RowMemory = std::function<std::shared_ptr<const orr_memory>(const FlatBuffer&)>;
// Gives every state the part that a program over `world` ranks wants, in memory, with its initial
// value if it has no value yet, and binds it: it will not move any more. Throws Error if a program
// that was compiled before has bound another part. A state that is not bound yet may move, also
// into one of `flat_buffers`. Collective if world > 1: the ranks tell one another their parts, so
// that the whole can be read. States of Tier::disk lie in a file in `directory`; "": the run's
// directory, or the system's for temporary files. Varying states are told which coordinate of
// `mesh` each rank is.
void hold(const StateParts& parts, const std::vector<FlatBuffer>& flat_buffers, int world,
          const RowMemory& allocate = {}, const std::string& directory = "",
          const Mesh* mesh = nullptr);

// Zeroed memory for tensors of a tier other than disk, and a file of zeros in `directory` (see
// hold) for tensors of the tier disk.
std::shared_ptr<const orr_memory> memory_of(Tier tier, uint64_t bytes);
std::shared_ptr<SpillFile> spill_file(const std::string& directory, uint64_t bytes);

// REQUIRES: the state has memory that the host can access.
std::byte* state_address(const State& state);

// Copy this rank's part of the state to and from ordinary memory. REQUIRES: it has memory or a
// file.
void read_part(const State& state, std::byte* to);
void write_part(const State& state, const std::byte* from);
// Whether some rank has only a part of the state; of a constant, whether this one has.
bool is_in_parts(const State& state);
// This rank's part where it lies, if the host can access that, or a copy of it in `copy`.
const std::byte* part_in_memory(const State& state, std::vector<std::byte>& copy);
// As write_state, where the value is one that the state is to have had already: its first value, or
// the one that it has where it lies differently from now on. Its version stays, as it does on ranks
// without a part.
void fill_state(State& state, const HostTensor& value);
// Gives a compute copy the value that its parameter has now. Collective where that lies in pieces.
void make_copy(State& copy);
// REQUIRES: the state has memory or a file, zeroed.
void set_initial(const std::shared_ptr<State>& state);

}  // namespace orrery
