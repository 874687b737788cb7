// SPDX-License-Identifier: Apache-2.0
//
// `null` stands for a rank of a world that is not there: own data lands where it belongs, and the
// traffic is counted as if peers had been sent to.
#include <gtest/gtest.h>

#include <numeric>

#include "check/comm/peer.h"

namespace comm_suite {
namespace {

class Null : public testing::Test {
 protected:
  const orr_comm_api& api = orrery::Registry::get().comm("null");
  orr_comm* comm = nullptr;
  std::vector<float> in = std::vector<float>(8), out = std::vector<float>(8, -1);
  orr_memory in_memory{}, out_memory{};

  void SetUp() override {
    orr_comm_boot boot{};
    boot.size = sizeof boot;
    boot.rank = 2;
    boot.world_size = 4;
    check(api.world(api.self, &boot, &comm));
    std::iota(in.begin(), in.end(), 1.0f);
    in_memory.host = in.data();
    out_memory.host = out.data();
  }
  void TearDown() override { api.destroy(comm); }

  void post(orr_coll c) {
    c.send = {&in_memory, 0, 32};
    c.recv = {&out_memory, 0, 32};
    orr_work* work = nullptr;
    check(api.post(comm, &c, 1, &work));
    check(api.wait(comm, work));
  }
};

TEST_F(Null, ReductionsKeepTheOwnElements) {
  orr_coll c = Peer::make(ORR_COLL_ALL_REDUCE);
  c.count = 8;
  post(c);
  EXPECT_EQ(out, in);
  EXPECT_EQ(api.bytes_sent(comm), 4u * 8);  // 8 elements fit in the first share, which is not ours
  const int64_t counts[] = {1, 2, 3, 2};
  c = Peer::make(ORR_COLL_REDUCE_SCATTER);
  c.counts = counts;
  post(c);
  EXPECT_EQ(std::vector<float>(out.begin(), out.begin() + 3), (std::vector<float>{4, 5, 6}));
  EXPECT_EQ(api.bytes_sent(comm), 4u * (8 + 5));
}

TEST_F(Null, MovementPutsTheOwnPieceInPlace) {
  const int64_t counts[] = {1, 2, 3, 2};
  orr_coll c = Peer::make(ORR_COLL_ALL_GATHER);
  c.counts = counts;
  post(c);
  EXPECT_EQ(std::vector<float>(out.begin() + 2, out.begin() + 7),
            (std::vector<float>{-1, 1, 2, 3, -1}));
  EXPECT_EQ(api.bytes_sent(comm), 4u * 3 * 3);
}

TEST_F(Null, SplitSaysWhyNot) {
  orr_comm* child = nullptr;
  EXPECT_THROW(check(api.split(comm, 0, 0, &child)), orrery::Error);
}

}  // namespace
}  // namespace comm_suite
