// SPDX-License-Identifier: Apache-2.0
//
// Lanes of WorldComm: groups do not hold up each other, share one simulated link, and end together.
#include <gtest/gtest.h>

#include <chrono>

#include "base/error.h"
#include "comm/world_comm.h"
#include "ranks.h"

namespace orrery {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Memory of n floats, and operations on it.
struct Buffer {
  explicit Buffer(size_t n) : values(n, 1.0f) {
    memory.host = values.data(), memory.bytes = n * sizeof(float);
  }

  orr_coll op(int32_t op, int peer = 0) {
    orr_coll c{};
    c.size = sizeof c, c.op = op, c.dtype = ORR_F32, c.redop = ORR_RED_SUM, c.root_or_peer = peer;
    c.count = static_cast<int64_t>(values.size()), c.name = "tensor", c.where = "here";
    if (op != ORR_COLL_RECV) c.send = {&memory, 0, memory.bytes};
    if (op != ORR_COLL_SEND) c.recv = {&memory, 0, memory.bytes};
    return c;
  }

  std::vector<float> values;
  orr_memory memory{};
};

// Rank 0 posts a receive first. What it receives is sent only after the sum of another group. With
// the argument "one", all groups share a lane, and the ranks wait for each other.
const ranks::Body apart("apart", [](const std::string& lanes) {
  WorldComm comm(detect(), "local");
  const int messages = comm.split(0, comm.rank(), lanes != "one");
  const int sums = comm.split(0, comm.rank(), lanes != "one");
  Buffer message(10), sum(10);
  const auto received = comm.rank() == 0 ? comm.submit({message.op(ORR_COLL_RECV, 1)}, messages)
                                         : WorldComm::Ticket{};
  comm.wait(comm.submit({sum.op(ORR_COLL_ALL_REDUCE)}, sums));
  if (comm.rank() == 0) {
    comm.wait(received);
    return message.values[9] == 2 && sum.values[9] == 2 ? 0 : 1;
  }
  comm.wait(comm.submit({sum.op(ORR_COLL_SEND, 0)}, messages));
  return 0;
});

TEST(Lanes, DoNotHoldUpEachOther) {
  const auto outcome = ranks::run(2, "apart", "", {"ORRERY_DEADLINE=60"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_NE(ranks::run(2, "apart", "one", {"ORRERY_DEADLINE=1"}).code, 0);
}

// Four messages of 1 MB on two lanes over a link of 10 MB/s.
const ranks::Body link("link", [](const std::string&) {
  WorldComm comm(detect(), "local", 10'000'000);
  const int groups[] = {comm.split(0, comm.rank(), true), comm.split(0, comm.rank(), true)};
  Buffer buffers[] = {Buffer(250'000), Buffer(250'000)};
  const int32_t op = comm.rank() == 0 ? ORR_COLL_SEND : ORR_COLL_RECV;
  const auto begin = Clock::now();
  for (int i = 0; i < 4; ++i) comm.submit({buffers[i % 2].op(op, 1 - comm.rank())}, groups[i % 2]);
  comm.drain();
  return seconds_since(begin) < 0.4;
});

TEST(Lanes, ShareOneLink) {
  const auto outcome = ranks::run(2, "link", "", {"ORRERY_DEADLINE=60"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
}

// Both ranks wait for each other's messages on one lane, when work on another lane of rank 0 fails.
const ranks::Body together("together", [](const std::string&) {
  WorldComm comm(detect(), "local");
  const int fails = comm.split(0, comm.rank(), true), waits = comm.split(0, comm.rank(), true);
  Buffer x(10);
  const auto waiting = comm.submit({x.op(ORR_COLL_RECV, 1 - comm.rank())}, waits);
  if (comm.rank() == 0)
    comm.submit([](const WorldComm::Post&) { fail(ORR_FAILED, "the first error"); }, fails);
  comm.wait(waiting);
  return 0;
});

TEST(Lanes, EndTogether) {
  const auto outcome = ranks::run(2, "together", "", {"ORRERY_DEADLINE=60"});
  EXPECT_LT(outcome.seconds, 30);
  EXPECT_NE(outcome.output.find("rank 0: the first error"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("rank 0 aborted: the first error"), std::string::npos)
      << outcome.output;
}

}  // namespace
}  // namespace orrery
