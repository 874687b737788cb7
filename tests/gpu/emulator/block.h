// SPDX-License-Identifier: Apache-2.0
//
// A CUDA block in one host thread. Every thread of the block is a fiber that runs until it waits:
// at a barrier, at a collective of its warp, or at its end. One warp runs as far as it can before
// the next one does, in an order that a seed decides. Shared memory is rubbish when a block begins,
// asynchronous copies land when they are waited for, or at once if the seed says so, and a wait
// that can never end is reported. Blocks run one after another.
#pragma once

#include <vector_types.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

namespace emulator {

struct Fiber {
  uint3 index{};
  int lane = 0, warp = 0;
  // The products of its warpgroup that it has not awaited, in batches; the last has not ended.
  std::deque<std::vector<std::function<void()>>> batches{1};
};

// Of the fiber that runs. REQUIRES: called by a kernel.
Fiber& self();
extern uint3 block_index;
extern dim3 block_extent, grid_extent;
extern char* dynamic_shared;
// Whether products for attention are those of warpgroups (sm_90a) or of warps (sm_80).
extern bool has_warpgroups;

// __syncthreads: waits for all threads of the block that have not ended.
void barrier();

// A collective of the lanes in `mask`: each gives `bytes` bytes, at most kShown, and gets the
// address of what lane `source` gave, good until its next collective. What the lanes give lies in
// order of lanes, kShown bytes apart.
constexpr int kShown = 64;
const void* exchange(unsigned mask, const void* value, size_t bytes, int source = 0);

// An asynchronous copy of 16 bytes, of which the first `bytes` are from `from` and the rest zeros.
void copy_async(void* to, const void* from, int bytes);
// Ends a batch of this thread's copies.
void end_copies();
// Lands the copies of this thread but those of the last `others` batches; -1: all.
void wait_copies(int others = -1);

using Body = void (*)(void** arguments);

struct Kernel {
  const char* name;
  int threads;
  size_t argument_bytes;
  Body body;
};
// Registers a kernel by its name. Made before main.
struct NamedKernel : Kernel {
  NamedKernel(const char* name, int threads, size_t argument_bytes, Body body);
};
// The kernel of this name, or null.
const Kernel* find(const std::string& name);

// The order of fibers and blocks from now on; 0: by number, copies late.
void set_order(uint64_t seed);

// Runs a whole grid. Throws std::runtime_error if the launch breaks a rule of CUDA's: too many
// threads or too much shared memory, threads that wait for ever, a lane outside of its mask.
// Launches of several host threads run one after another.
void run(const Kernel& kernel, dim3 grid, dim3 block, size_t shared_bytes, void** arguments);

}  // namespace emulator
