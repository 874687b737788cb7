// SPDX-License-Identifier: Apache-2.0
//
// Where states live on this rank, and which part of each. [main thread]
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "program/state.h"

namespace orrery {

struct Held;
struct Mesh;
struct FlatBuffer;
using HeldParts = std::vector<Held>;

// Gives every state the part that a program over `world` ranks wants of it and binds it there:
// memory, and its initial value if it has none. Throws Error if another program holds another part.
// A state that is only read and written so far moves, also into a row of `neighbours`. Collective
// if world > 1: the ranks tell one another their parts, so that the whole can be read.
// A new row lies in what `allocate` gives it, zeroed.
using RowMemory = std::function<std::shared_ptr<const orr_memory>(const FlatBuffer&)>;
// States of Tier::disk lie in a file in `directory`; "": that of the run, or the system's for
// temporary files.
void hold(const HeldParts& parts, const std::vector<FlatBuffer>& flat_buffers, int world,
          const RowMemory& allocate = {}, const std::string& directory = "");

// Zeroed memory for tensors of a tier that is not the disk, and a file of zeros in `directory` (see
// hold), for what waits there.
std::shared_ptr<const orr_memory> memory_of(Tier tier, uint64_t bytes);
std::shared_ptr<SpillFile> spill_file(const std::string& directory, uint64_t bytes);

// REQUIRES: the state has memory, which the host reaches.
std::byte* state_address(const State& state);
// Says which coordinates' values of states that vary the ranks of the spread have; before `hold`.
void set_coordinates(const HeldParts& parts, const Mesh& mesh);

// What this rank has of the state, to and from ordinary memory. REQUIRES: it lies somewhere.
void read_part(const State& state, std::byte* to);
void write_part(const State& state, const std::byte* from);
// Gives a compute copy the value that its parameter has now. Collective where that lies in pieces.
void make_copy(State& copy);
// REQUIRES: the state lies somewhere, zeroed.
void set_initial(const std::shared_ptr<State>& state);

}  // namespace orrery
