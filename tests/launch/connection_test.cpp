// SPDX-License-Identifier: Apache-2.0
#include "launch/connection.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

namespace orrery {
namespace {

// A rank reports its error and ends while an answer to it is still unread: the kernel says "reset"
// behind what the rank has sent.
TEST(Connection, GivesWhatAPeerHasSentBeforeItEndedWithMessagesUnread) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  Connection server(ends[0]);
  {
    Connection rank(ends[1]);
    server.send(wire::blame, 0, "", "rank 3");
    rank.send(wire::report, 1, "", "rank 3 has not answered");
  }
  Message message;
  ASSERT_TRUE(server.receive(message));
  EXPECT_EQ(message.value, "rank 3 has not answered");
  EXPECT_FALSE(server.receive(message));
  EXPECT_TRUE(server.at_end());
}

}  // namespace
}  // namespace orrery
