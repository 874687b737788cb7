// SPDX-License-Identifier: Apache-2.0
//
// Sums over ranks by kernels of a device, one launch for each part of the tree: the bits of the
// host's sums, for as many operands as take one part and several. The device is the host, with the
// reference's kernels.
#include "run/device_sum.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "conformance/comm/model.h"

namespace orrery {
namespace {

struct Memory {
  explicit Memory(size_t size)
      : bytes(size), memory{sizeof memory, ORR_TIER_HOST, size, bytes.data(), bytes.data(), "",
                            nullptr} {}
  std::vector<char> bytes;
  orr_memory memory;
};

// A sum of `count` elements over ranks with `leaves` leaves each, in place.
struct Sum {
  Sum(int ranks, int leaves, int32_t dtype, int64_t count) : first(static_cast<size_t>(ranks) + 1) {
    for (size_t r = 0; r < first.size(); ++r) first[r] = static_cast<int64_t>(r) * leaves;
    c.size = sizeof c, c.op = ORR_COLL_TREE_ALL_REDUCE, c.dtype = dtype, c.redop = ORR_RED_SUM;
    c.count = count, c.leaf_first = first.data();
  }
  std::vector<int64_t> first;
  orr_coll c{};
};

// Puts numbers where the messages of a round would leave operands, folds, and compares.
void fold_round(const SpotFold& fold, DeviceSum& sum, const orr_coll& c, int ranks,
                const orr_buffer& scratch) {
  const int64_t bytes = fold.elements * orr_dtype_bytes(c.dtype);
  std::vector<std::vector<char>> copies;
  std::vector<const char*> operands;
  const auto at = [&](const Spot& s) {
    const orr_buffer b = buffer_at(s, bytes, c, scratch);
    return static_cast<char*>(orr_buffer_host(&b));
  };
  for (size_t i = 0; i < fold.in.size(); ++i) {
    const comm_suite::Bytes numbers = comm_suite::numbers(c.dtype, i, fold.elements);
    std::memcpy(at(fold.in[i]), numbers.data(), numbers.size());
    copies.emplace_back(numbers.begin(), numbers.end());
  }
  for (const std::vector<char>& copy : copies) operands.push_back(copy.data());
  std::vector<char> wanted(static_cast<size_t>(bytes));
  orr::Folding(c, ranks).run(operands, {wanted.data()}, fold.elements);
  sum.fold(fold, c, scratch);
  EXPECT_EQ(std::memcmp(at(fold.out), wanted.data(), wanted.size()), 0)
      << fmt::format("{} ranks, dtype {}, {} elements", ranks, c.dtype, fold.elements);
}

void expect_the_hosts_bits(int ranks, int leaves, int32_t dtype, int64_t count) {
  for (int rank : {0, ranks / 2, ranks - 1}) {
    Sum s(ranks, leaves, dtype, count);
    const orr::FoldOrder order(s.c, ranks);
    const auto unit = static_cast<size_t>(orr_dtype_bytes(dtype));
    Memory own(static_cast<size_t>(order.most_owned() * count) * unit);
    s.c.send = s.c.recv = {&own.memory, 0, own.bytes.size()};
    const auto sum = DeviceSum::make(s.c, rank, ranks, {"reference"});
    ASSERT_TRUE(sum) << ranks;
    Memory scratch(sum->scratch());
    int folds = 0;
    for (const Composition::Round& round : sum->composition().rounds)
      if (round.fold) {
        ++folds;
        fold_round(*round.fold, *sum, s.c, ranks, {&scratch.memory, 0, scratch.bytes.size()});
      }
    EXPECT_GT(folds, 0);
  }
}

// Of one round, where every rank adds all, and of several, where each adds its share.
TEST(DeviceSum, HasTheHostsBits) {
  for (int32_t dtype : {ORR_F32, ORR_BF16, ORR_F64})
    for (int ranks : {2, 3, 64, 65, 100, 200})
      for (int leaves : {1, 3})
        for (int64_t count : {33, 30000}) expect_the_hosts_bits(ranks, leaves, dtype, count);
}

// Nobody launches more operands than a kernel takes, and each operand once.
TEST(SumParts, HaveAllOperandsOnce) {
  for (int ranks : {2, 64, 65, 130, 1000}) {
    Sum s(ranks, 3, ORR_F32, 1);
    const orr::FoldOrder order(s.c, ranks);
    for (int rank : {0, ranks - 1}) {
      std::vector<int> read(static_cast<size_t>(order.operands()));
      const std::vector<SumPart> parts = parts_of(order, rank, 64);
      for (const SumPart& part : parts) {
        EXPECT_LE(part.in.size(), 64u);
        EXPECT_EQ(part.sums.size() + 1, part.in.size());
        for (int i : part.in) ++read[static_cast<size_t>(i)];
        if (part.onto == kNone) continue;
        EXPECT_TRUE(part.onto < order.first(rank) || part.onto >= order.first(rank + 1));
        --read[static_cast<size_t>(part.onto)];  // what it holds now is read once more
      }
      EXPECT_EQ(read, std::vector<int>(read.size(), 1)) << ranks;
      EXPECT_EQ(parts.back().onto, kNone);
    }
  }
}

}  // namespace
}  // namespace orrery
