// SPDX-License-Identifier: Apache-2.0
//
// Channels of messages: each pair of neighbours and direction has one, and on a channel no rank is
// in two pairs.
#include "lower/channel.h"

#include <gtest/gtest.h>

#include <set>

namespace orrery {
namespace {

Mesh pipeline(int size) {
  Mesh mesh;
  mesh.world = 2 * size, mesh.axes = {{"pipe", size, ""}, {"data", 2, ""}};
  return mesh;
}

Exchange message(int32_t op, int peer) {
  Exchange e;
  e.op = op, e.axis = "pipe", e.root_or_peer = peer;
  return e;
}

TEST(Channels, PairNeighbours) {
  for (int size = 2; size < 10; ++size) {
    const std::vector<MessageChannel> all = message_channels(size);
    for (size_t channel = 0; channel < all.size(); ++channel) {
      std::set<int> seen;
      for (int c = 0; c < size; ++c) {
        if (all[channel].sender(c) != c) continue;
        const int to = all[channel].receiver(c);
        EXPECT_EQ(all[channel].sender(to), c);
        EXPECT_TRUE(seen.insert(c).second && seen.insert(to).second) << size << " " << channel;
      }
    }
  }
}

TEST(Channels, BothRanksOfAMessageAgree) {
  for (int size = 2; size < 10; ++size) {
    const Mesh mesh = pipeline(size);
    for (int from = 0; from < size; ++from)
      for (int to = 0; to < size; ++to) {
        if (from == to) continue;
        const int sends = channel_of(message(ORR_COLL_SEND, to), mesh, 2 * from + 1);
        EXPECT_EQ(sends, channel_of(message(ORR_COLL_RECV, from), mesh, 2 * to + 1));
        const bool neighbours = (from + 1) % size == to || (to + 1) % size == from;
        EXPECT_EQ(sends > 0, neighbours) << size << ": " << from << " to " << to;
        EXPECT_LE(sends, size == 2 ? 2 : size % 2 ? 6 : 4);
      }
  }
}

TEST(Channels, SumsAndOneLaneHaveTheAxisAlone) {
  Mesh mesh = pipeline(4);
  EXPECT_EQ(channel_of(message(ORR_COLL_ALL_REDUCE, 1), mesh, 0), 0);
  EXPECT_GT(channel_of(message(ORR_COLL_SEND, 1), mesh, 0), 0);
  mesh.one_lane = true;
  EXPECT_EQ(channel_of(message(ORR_COLL_SEND, 1), mesh, 0), 0);
}

}  // namespace
}  // namespace orrery
