// SPDX-License-Identifier: Apache-2.0
//
// Ranks that meet without our launcher, here as threads: who is let in, who is not, who is seen to
// end. On one host they meet at a name, between hosts at an address, and the same is asked of both.
#include "launch/meeting.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <map>
#include <random>

#include "base/error.h"
#include "base/work.h"
#include "launch/connection.h"
#include "launch/socket.h"
#include "launch/token.h"
#include "launch/wire.h"

namespace orrery {
namespace {

constexpr int64_t second = 1000000000;
const std::string token = "the token of this test";

// A port of loopback that was free a moment ago, for each job.
std::string port_of(const std::string& job) {
  static std::map<std::string, std::string> known;
  std::string& port = known[job];
  if (port.empty()) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof any;
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&any), bytes), 0);
    getsockname(fd, reinterpret_cast<sockaddr*>(&any), &bytes);
    close(fd);
    port = std::to_string(ntohs(any.sin_port));
  }
  return port;
}

World world_of(int rank, int size, const std::string& job) {
  World w;
  w.rank = w.local_rank = rank;
  w.size = w.local_size = size;
  w.source = "a test";
  w.job = job + " " + std::to_string(getpid());
  w.address = "127.0.0.1";
  w.port = port_of(job);
  return w;
}

// Where the ranks meet: on one host, or between hosts.
class Meeting : public testing::TestWithParam<bool> {
 protected:
  bool afar() const { return GetParam(); }
  Endpoint place_of(const World& world) const {
    return afar() ? Endpoint{world.address, std::stoi(world.port)} : Endpoint{meeting_place(world)};
  }
  std::string token_here() const { return afar() ? token : ""; }
  std::unique_ptr<Store> meet_at(const World& world, int64_t deadline) const {
    return meet(world, place_of(world), token_here(), deadline);
  }
  std::future<std::unique_ptr<Store>> join(int rank, int size, const std::string& job) const {
    return std::async(std::launch::async, [this, world = world_of(rank, size, job)] {
      return meet_at(world, 20 * second);
    });
  }
  std::string refusal(int code, int rank, int size, const std::string& job,
                      int64_t deadline = 20 * second) const {
    try {
      meet_at(world_of(rank, size, job), deadline);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), code) << e.what();
      return e.what();
    }
    ADD_FAILURE() << "was let in";
    return "";
  }
  // At the door, where nothing has been said yet but the challenge.
  int visit(const std::string& job, std::string* nonce = nullptr) const {
    const int fd = connect_to(place_of(world_of(1, 2, job)), 5000);
    char challenge[sizeof(wire::Frame) + nonce_bytes];
    pollfd ready{fd, POLLIN, 0};
    EXPECT_EQ(poll(&ready, 1, 5000), 1);
    EXPECT_EQ(recv(fd, challenge, sizeof challenge, MSG_WAITALL),
              static_cast<ssize_t>(sizeof challenge));
    if (nonce) nonce->assign(challenge + sizeof(wire::Frame), nonce_bytes);
    return fd;
  }
};

std::string packet_of(wire::Kind kind, uint32_t rank, const std::string& key,
                      const std::string& value) {
  const wire::Frame frame{kind, rank, static_cast<uint32_t>(key.size()),
                          static_cast<uint32_t>(value.size())};
  return std::string(reinterpret_cast<const char*>(&frame), sizeof frame) + key + value;
}

// What comes back: the kind of a message, or 0 when the door is closed or nothing comes.
uint32_t answer_at(int fd, int milliseconds) {
  char answer[1024];
  pollfd ready{fd, POLLIN, 0};
  if (poll(&ready, 1, milliseconds) <= 0) return 0;
  const ssize_t n = recv(fd, answer, sizeof answer, MSG_DONTWAIT);
  if (n < static_cast<ssize_t>(sizeof(wire::Frame))) return 0;
  wire::Frame frame;
  std::memcpy(&frame, answer, sizeof frame);
  return frame.kind;
}

TEST_P(Meeting, RanksShareATableAndSeeWhoEnds) {
  auto last = join(2, 3, "table"), middle = join(1, 3, "table"), first = join(0, 3, "table");
  auto zero = first.get(), one = middle.get(), two = last.get();
  const std::string large(60000, 'x');
  one->put("key", "value");
  one->put("large", large);
  EXPECT_EQ(zero->get("key", second), "value");
  EXPECT_EQ(two->get("key", second), "value");
  EXPECT_EQ(two->get("large", second), large);
  EXPECT_EQ(zero->get("address/1", second), "127.0.0.1");
  EXPECT_FALSE(two->dead(0) || two->dead(1));
  one.reset();
  EXPECT_THROW(two->get("never", 20 * second), Error);
  EXPECT_TRUE(two->dead(1));
  EXPECT_THROW(zero->get("never", 20 * second), Error);
  EXPECT_TRUE(zero->dead(1));
  zero.reset();
  while (!two->dead(0)) sched_yield();
}

TEST_P(Meeting, WhoComesLateLearnsWhoHasEnded) {
  auto middle = join(1, 3, "late"), first = join(0, 3, "late");
  auto zero = first.get();
  middle.get().reset();
  EXPECT_THROW(zero->get("never", 20 * second), Error);
  auto two = join(2, 3, "late").get();
  EXPECT_THROW(two->get("never", 20 * second), Error);
  EXPECT_TRUE(two->dead(1));
}

TEST_P(Meeting, RanksThatDoNotBelongTogetherAreTold) {
  auto others = join(1, 2, "pairs");
  auto zero = join(0, 2, "pairs").get();
  auto one = others.get();
  EXPECT_NE(
      refusal(ORR_INVALID, 2, 3, "pairs").find("rank 0 is one of 2 ranks and rank 2 one of 3"),
      std::string::npos);
  EXPECT_NE(refusal(ORR_INVALID, 1, 2, "pairs").find("there are two ranks 1"), std::string::npos);
  EXPECT_NE(refusal(ORR_UNAVAILABLE, 0, 2, "pairs").find("MASTER_PORT"), std::string::npos);
}

TEST_P(Meeting, ARankZeroThatNeverComesIsADeadline) {
  const std::string why = refusal(ORR_DEADLINE, 1, 2, "alone", second / 10);
  const std::string place = afar() ? "127.0.0.1:" + port_of("alone") : "orrery-";
  EXPECT_NE(why.find("rank 1 of 2 (a test) waits for rank 0 at '" + place), std::string::npos)
      << why;
}

// Whatever is said at the door, nothing breaks, nobody gets in, and the true rank still does.
TEST_P(Meeting, NoiseAtTheDoorHarmsNobody) {
  auto first = join(0, 2, "noise");
  auto zero = first.get();
  std::mt19937 random(20240607);
  for (int i = 0; i < 1000; ++i) {
    const std::string key(random() % 4 ? 0 : random() % 100, 'k');
    std::string packet = packet_of(wire::join, random() % 3, key, std::to_string(random() % 4 + 3));
    for (uint32_t k = random() % 6; k > 0; --k)
      packet[random() % packet.size()] = static_cast<char>(random());
    if (random() % 4 == 0) packet.resize(random() % 600 + 1, 'x');
    const int fd = visit("noise");
    ASSERT_GE(fd, 0);
    send(fd, packet.data(), packet.size(), MSG_NOSIGNAL);
    if (i % 8 == 0)
      shutdown(fd, SHUT_WR);  // nothing more will come, though a message may be half said
    const uint32_t answer = i % 8 ? answer_at(fd, 2) : 0;  // some do not wait
    EXPECT_TRUE(answer == 0 || answer == wire::refuse) << answer;
    close(fd);
  }
  auto one = join(1, 2, "noise").get();
  one->put("key", "value");
  EXPECT_EQ(zero->get("key", 5 * second), "value");
}

// A crowd that says nothing takes no place from a rank that has yet to speak, or that is in.
TEST_P(Meeting, ASilentCrowdPushesNobodyOut) {
  auto others = join(1, 3, "crowd"), first = join(0, 3, "crowd");
  auto zero = first.get(), one = others.get();
  std::string nonce, own(nonce_bytes, 'n');
  const int slow = visit("crowd", &nonce);
  std::vector<int> crowd;
  for (int i = 0; i < 64 + 3 - 1; ++i) crowd.push_back(visit("crowd"));
  crowd.push_back(connect_to(place_of(world_of(1, 3, "crowd")), 5000));
  const std::string key = own + proof(token_here(), join_text(nonce, own, 2, "3"));
  const std::string packet = packet_of(wire::join, 2, key, "3");
  send(slow, packet.data(), packet.size(), MSG_NOSIGNAL);
  EXPECT_EQ(answer_at(slow, 5000), wire::welcome);
  one->put("key", "value");
  EXPECT_EQ(zero->get("key", 5 * second), "value");
  crowd.push_back(slow);
  for (int fd : crowd) close(fd);
}

// Whose end came first is told, whatever its number.
TEST_P(Meeting, TheFirstToEndIsNamed) {
  auto last = join(2, 3, "order"), middle = join(1, 3, "order"), first = join(0, 3, "order");
  auto zero = first.get(), one = middle.get(), two = last.get();
  one.reset();
  while (!zero->dead(1)) sched_yield();
  zero.reset();
  while (!two->dead(0)) sched_yield();
  try {
    two->get("never", 20 * second);
    FAIL() << "there is no such key";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "rank 1 died while the job was forming");
  }
}

// The question reaches the rank's process while its main thread is elsewhere.
TEST_P(Meeting, ARankSaysWhatItIsAt) {
  auto others = join(1, 3, "work"), first = join(0, 3, "work");
  auto zero = first.get(), one = others.get();
  const Work work("saving a checkpoint", 7);
  const auto answer = zero->ask(1);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->deadlines, 7);
  EXPECT_EQ(answer->text.rfind("saving a checkpoint for ", 0), 0u) << answer->text;
  EXPECT_FALSE(zero->ask(2)) << "it has not come";
  std::string what;
  EXPECT_EQ(zero->at_work(1, 0, what), 2);
  EXPECT_EQ(zero->at_work(1, 7 * deadline_ns(), what), 1);
  EXPECT_EQ(zero->at_work(2, 0, what), 0);
  zero->blame(Error(ORR_DEADLINE, "rank 2 is late"));
  zero->blame(Error(ORR_RETRY, "a second thought"));
  while (!one->blamed()) sched_yield();
  EXPECT_STREQ(one->blamed()->what(), "rank 2 is late");
}

INSTANTIATE_TEST_SUITE_P(Places, Meeting, testing::Bool(), [](const auto& info) {
  return info.param ? "BetweenHosts" : "OnOneHost";
});

// Those who have no token, another, or only what they have heard of an earlier meeting.
class MeetingAfar : public Meeting {};
INSTANTIATE_TEST_SUITE_P(Places, MeetingAfar, testing::Values(true));

TEST_P(MeetingAfar, WithoutTheTokenNobodyGetsIn) {
  auto zero = join(0, 2, "token").get();
  std::string nonce, old_nonce, own(nonce_bytes, 'n');
  close(visit("token", &old_nonce));
  const auto knock = [&](const std::string& with, bool replay, uint32_t rank) {
    const int fd = visit("token", &nonce);
    const std::string key = own + proof(with, join_text(replay ? old_nonce : nonce, own, 1, "2"));
    const std::string packet = packet_of(wire::join, rank, key, "2");
    send(fd, packet.data(), packet.size(), MSG_NOSIGNAL);
    const uint32_t answer = answer_at(fd, 5000);
    close(fd);
    return answer;
  };
  EXPECT_EQ(knock("", false, 1), wire::refuse);
  EXPECT_EQ(knock("another token", false, 1), wire::refuse);
  EXPECT_EQ(knock(token, true, 1), wire::refuse);
  EXPECT_EQ(knock(token, false, 0), wire::refuse);
  EXPECT_EQ(knock(token, false, 1), wire::welcome);
}

TEST_P(MeetingAfar, AnotherTokenIsNamed) {
  auto zero = join(0, 2, "wrong").get();
  try {
    const World world = world_of(1, 2, "wrong");
    meet(world, place_of(world), "another", 5 * second);
    FAIL() << "was let in";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("it has another ORRERY_TOKEN"), std::string::npos)
        << e.what();
  }
}

// Who sits at rank 0's place and lets everybody in does not get the ranks either.
TEST_P(MeetingAfar, AFalseRankZeroIsFoundOut) {
  const World world = world_of(1, 2, "false");
  const int door = listen_at(Endpoint{world.address, std::stoi(world.port)});
  auto impostor = std::async(std::launch::async, [door] {
    pollfd ready{door, POLLIN, 0};
    poll(&ready, 1, 5000);
    Connection rank(accept(door, nullptr, nullptr));
    rank.send(wire::challenge, 0, "", std::string(nonce_bytes, 'c'));
    Message hello;
    while (!rank.receive(hello) && !rank.at_end()) sched_yield();
    rank.send(wire::welcome, 0, std::string(proof_bytes, 'w'), "");
    EXPECT_EQ(hello.key.find(token), std::string::npos);
  });
  EXPECT_NE(refusal(ORR_UNAVAILABLE, 1, 2, "false").find("does not know this job's ORRERY_TOKEN"),
            std::string::npos);
  impostor.get();
  close(door);
}

TEST_P(MeetingAfar, AddressesThatCannotBeAreRefused) {
  const World world = world_of(0, 2, "address");
  const auto why = [&](const std::string& address, const std::string& port) {
    try {
      meet(world, {address, port_number(port)}, token, second / 10);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_NE(why("127.0.0.1", "70000").find("MASTER_PORT='70000' is no port"), std::string::npos);
  EXPECT_NE(why("192.0.2.1", "29500").find("MASTER_ADDR='192.0.2.1' is no address of the host"),
            std::string::npos);
  EXPECT_NE(why("0x7f000001", "29500").find("'0x7f000001' is this host alone to itself"),
            std::string::npos);
  EXPECT_NE(why("no-such-host.invalid", "29500").find("'no-such-host.invalid' is no host"),
            std::string::npos);
}

TEST(MeetingHere, AnotherUserIsShownTheDoor) {
  if (geteuid() != 0) GTEST_SKIP() << "becoming another user needs root";
  const Endpoint place{meeting_place(world_of(0, 2, "door"))};
  const auto come = [&](int rank) {
    return meet(world_of(rank, 2, "door"), place, "", 20 * second);
  };
  auto zero = come(0);
  const pid_t stranger = fork();
  if (stranger == 0) {
    char answer[64];
    const int fd = setuid(65534) == 0 ? connect_to(place, 5000) : -1;
    const std::string hello = packet_of(wire::join, 1, "", "2");
    send(fd, hello.data(), hello.size(), MSG_NOSIGNAL);
    pollfd ready{fd, POLLIN, 0};
    _exit(fd >= 0 && poll(&ready, 1, 5000) == 1 && recv(fd, answer, sizeof answer, 0) <= 0 ? 0 : 1);
  }
  int status = 1;
  waitpid(stranger, &status, 0);
  EXPECT_EQ(status, 0);
  come(1)->put("key", "value");
  EXPECT_EQ(zero->get("key", 5 * second), "value");
}

}  // namespace
}  // namespace orrery
