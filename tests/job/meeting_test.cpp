// SPDX-License-Identifier: Apache-2.0
//
// Ranks that meet without our launcher, here as threads: who is let in, who is not, who is seen to end.
#include "job/meeting.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <random>

#include "base/error.h"
#include "job/local_socket.h"
#include "job/wire.h"

namespace orrery {
namespace {

constexpr int64_t second = 1000000000;

World world_of(int rank, int size, const std::string& job) {
  World w;
  w.rank = w.local_rank = rank;
  w.size = w.local_size = size;
  w.source = "a test";
  w.job = job + " " + std::to_string(getpid());
  return w;
}

std::future<std::unique_ptr<Store>> join(int rank, int size, const std::string& job, int64_t deadline = 20 * second) {
  return std::async(std::launch::async, [=] { return meet(world_of(rank, size, job), deadline); });
}

std::string refusal(int code, int rank, int size, const std::string& job, int64_t deadline = 20 * second) {
  try {
    meet(world_of(rank, size, job), deadline);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "was let in";
  return "";
}

std::string packet_of(wire::Kind kind, uint32_t rank, const std::string& value) {
  const wire::Frame frame{kind, rank, 0, static_cast<uint32_t>(value.size())};
  return std::string(reinterpret_cast<const char*>(&frame), sizeof frame) + value;
}

TEST(Meeting, RanksShareATableAndSeeWhoEnds) {
  auto last = join(2, 3, "table"), middle = join(1, 3, "table"), first = join(0, 3, "table");
  auto zero = first.get(), one = middle.get(), two = last.get();
  one->put("key", "value");
  EXPECT_EQ(zero->get("key", second), "value");
  EXPECT_EQ(two->get("key", second), "value");
  EXPECT_FALSE(two->dead(0) || two->dead(1));
  one.reset();
  EXPECT_THROW(two->get("never", 20 * second), Error);
  EXPECT_TRUE(two->dead(1) && zero->dead(1));
  zero.reset();
  EXPECT_TRUE(two->dead(0));
}

TEST(Meeting, RanksThatDoNotBelongTogetherAreTold) {
  auto others = join(1, 2, "pairs");
  auto zero = join(0, 2, "pairs").get();
  auto one = others.get();
  EXPECT_NE(refusal(ORR_INVALID, 2, 3, "pairs").find("rank 0 is one of 2 ranks and rank 2 one of 3"),
            std::string::npos);
  EXPECT_NE(refusal(ORR_INVALID, 1, 2, "pairs").find("there are two ranks 1"), std::string::npos);
  EXPECT_NE(refusal(ORR_UNAVAILABLE, 0, 2, "pairs").find("MASTER_PORT"), std::string::npos);
}

TEST(Meeting, ARankZeroThatNeverComesIsADeadline) {
  const std::string why = refusal(ORR_DEADLINE, 1, 2, "alone", second / 10);
  EXPECT_NE(why.find("rank 1 of 2 (a test) waits for rank 0 at 'orrery-"), std::string::npos) << why;
}

// Whatever is said at the door, nothing breaks, nobody gets in, and the true rank still does.
TEST(Meeting, NoiseAtTheDoorHarmsNobody) {
  auto first = join(0, 2, "noise");
  auto zero = first.get();
  const std::string place = meeting_place(world_of(0, 2, "noise"));
  std::mt19937 random(20240607);
  for (int i = 0; i < 1000; ++i) {
    std::string packet = packet_of(wire::join, random() % 3, std::to_string(random() % 4 + 3));
    for (uint32_t k = random() % 6; k > 0; --k) packet[random() % packet.size()] = static_cast<char>(random());
    if (random() % 4 == 0) packet.resize(random() % 600 + 1, 'x');
    const int fd = connect_to(place);
    ASSERT_GE(fd, 0);
    send(fd, packet.data(), packet.size(), MSG_NOSIGNAL);
    char answer[1024];
    const ssize_t n = i % 8 ? recv(fd, answer, sizeof answer, 0) : 0;  // some do not wait
    if (n >= static_cast<ssize_t>(sizeof(wire::Frame))) {
      wire::Frame frame;
      std::memcpy(&frame, answer, sizeof frame);
      EXPECT_EQ(frame.kind, wire::refuse);
    }
    close(fd);
  }
  auto one = join(1, 2, "noise").get();
  one->put("key", "value");
  EXPECT_EQ(zero->get("key", 5 * second), "value");
}

TEST(Meeting, AnotherUserIsShownTheDoor) {
  if (geteuid() != 0) GTEST_SKIP() << "becoming another user needs root";
  auto zero = join(0, 2, "door").get();
  const std::string place = meeting_place(world_of(0, 2, "door"));
  const pid_t stranger = fork();
  if (stranger == 0) {
    char answer[64];
    const int fd = setuid(65534) == 0 ? connect_to(place) : -1;
    const std::string hello = packet_of(wire::join, 1, "2");
    send(fd, hello.data(), hello.size(), MSG_NOSIGNAL);
    _exit(fd >= 0 && recv(fd, answer, sizeof answer, 0) <= 0 ? 0 : 1);
  }
  int status = 1;
  waitpid(stranger, &status, 0);
  EXPECT_EQ(status, 0);
  join(1, 2, "door").get()->put("key", "value");
  EXPECT_EQ(zero->get("key", 5 * second), "value");
}

}  // namespace
}  // namespace orrery
