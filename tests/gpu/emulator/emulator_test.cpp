// SPDX-License-Identifier: Apache-2.0
//
// The emulator sees what it is there to see: each kernel here but the first breaks a rule.
#include <gtest/gtest.h>

#include <stdexcept>

// The words come first.
#include "emulator/words.h"

#include "device/mma.h"

namespace orr_cuda {
namespace {

struct ReverseArgs {
  int* out;
  bool waits;
};

// out[i] = the number that thread 63 - i wrote.
void reverse(const ReverseArgs& a) {
  int* shared = reinterpret_cast<int*>(dynamic_shared());
  const int i = int(threadIdx.x);
  shared[i] = i;
  if (a.waits) __syncthreads();
  a.out[i] = shared[63 - i];
}

void half_barrier(const ReverseArgs&) {
  if (threadIdx.x < 32) __syncthreads();
  if (threadIdx.x >= 32) __syncwarp(threadIdx.x == 40 ? 0x100u : 0xffffffffu);
}

void foreign_mask(const ReverseArgs& a) { a.out[0] = __shfl_sync(0x1u, 1, 0); }

struct CopyArgs {
  const int* from;
  int* out;
  bool waits;
};

void copied(const CopyArgs& a) {
  int* shared = reinterpret_cast<int*>(dynamic_shared());
  copy_async(shared, a.from, true);
  if (a.waits) wait_copies();
  a.out[0] = shared[3];
}

// Two batches of a copy each, of which the first is waited for.
void copied_in_batches(const CopyArgs& a) {
  int* shared = reinterpret_cast<int*>(dynamic_shared());
  copy_async(shared, a.from, true);
  end_copies();
  copy_async(shared + 4, a.from, true);
  end_copies();
  wait_copies_but<1>();
  a.out[0] = shared[3], a.out[1] = shared[7];
}

ORR_KERNEL(reverse, 64, ReverseArgs, reverse)
ORR_KERNEL(half_barrier, 64, ReverseArgs, half_barrier)
ORR_KERNEL(foreign_mask, 64, ReverseArgs, foreign_mask)
ORR_KERNEL(copied, 1, CopyArgs, copied)
ORR_KERNEL(copied_in_batches, 1, CopyArgs, copied_in_batches)

template <class Args>
void launch(const char* name, unsigned threads, size_t shared, Args args) {
  void* arguments[] = {&args};
  emulator::run(*emulator::find(name), dim3(2), dim3(threads), shared, arguments);
}

bool is_reversed(bool waits, uint64_t seed) {
  int out[64];
  emulator::set_order(seed);
  launch("reverse", 64, sizeof out, ReverseArgs{out, waits});
  bool right = true;
  for (int i = 0; i < 64; ++i) right = right && out[i] == 63 - i;
  return right;
}

TEST(Emulator, ShowsAMissingBarrier) {
  for (uint64_t seed : {0, 1, 2, 3}) {
    EXPECT_TRUE(is_reversed(true, seed));
    EXPECT_FALSE(is_reversed(false, seed));
  }
}

TEST(Emulator, ReportsWhatCannotRun) {
  int out[64];
  const ReverseArgs args{out, true};
  EXPECT_THROW(launch("half_barrier", 64, 0, args), std::runtime_error) << "threads wait for ever";
  EXPECT_THROW(launch("foreign_mask", 64, 0, args), std::runtime_error) << "outside of the mask";
  EXPECT_THROW(launch("reverse", 65, 512, args), std::runtime_error) << "too many threads";
  EXPECT_THROW(launch("reverse", 64, 228 << 10, args), std::runtime_error) << "too much memory";
  EXPECT_TRUE(is_reversed(true, 0)) << "after faults";
}

TEST(Emulator, LandsCopiesWhenTheyAreWaitedFor) {
  alignas(16) const int from[4] = {1, 2, 3, 4};
  int out = 0;
  emulator::set_order(0);
  launch("copied", 1, 16, CopyArgs{from, &out, true});
  EXPECT_EQ(out, 4);
  launch("copied", 1, 16, CopyArgs{from, &out, false});
  EXPECT_EQ(out, -1) << "rubbish";
}

TEST(Emulator, LandsBatchesOfCopiesInTheirOrder) {
  alignas(16) const int from[4] = {1, 2, 3, 4};
  int out[2] = {};
  emulator::set_order(0);
  launch("copied_in_batches", 1, 32, CopyArgs{from, out, true});
  EXPECT_EQ(out[0], 4);
  EXPECT_EQ(out[1], -1) << "rubbish";
}

}  // namespace
}  // namespace orr_cuda
