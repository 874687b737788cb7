// SPDX-License-Identifier: Apache-2.0
//
// The memory of states on this rank, and which part of each state it has. [main thread]
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
// Gives every state memory for the part that a program over `world` ranks wants, with its initial
// value if it has no value yet, and binds it: from now on it stays where it is. Throws Error if a
// program that was compiled before has bound another part. A state that is not bound yet may move,
// also into one of `flat_buffers`. Collective if world > 1: the ranks tell one another their parts,
// so that the whole can be read. States of Tier::disk lie in a file in `directory`; "": the run's
// directory, or the system's for temporary files. Varying states are told which coordinate of
// `mesh` each rank is.
void bind_states(const StateParts& parts, const std::vector<FlatBuffer>& flat_buffers, int world,
                 const RowMemory& allocate = {}, const std::string& directory = "",
                 const Mesh* mesh = nullptr);

// Zeroed memory for tensors of a tier other than disk, and a file of zeros in `directory` (see
// bind_states) for tensors of the tier disk.
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
// This rank's part in its own memory, if the host can access that, or else a copy of it in `copy`.
const std::byte* part_in_memory(const State& state, std::vector<std::byte>& copy);
// As write_state, but its version stays, because this is no change of the value: it is the state's
// first value, or the one that it had before it got other memory.
void fill_state(State& state, const HostTensor& value);
// Gives a compute copy the value that its parameter has now. Collective where that lies in pieces.
void make_copy(State& copy);
// REQUIRES: the state has memory or a file, zeroed.
void set_initial(const std::shared_ptr<State>& state);

}  // namespace orrery
