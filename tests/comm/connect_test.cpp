// SPDX-License-Identifier: Apache-2.0
//
// How the ranks of several hosts get their connections in comm local, with strangers who come
// first.
#include "../../plugins/comm/local/connect.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <orrery/sdk/plugin.hpp>

#include <condition_variable>
#include <cstring>
#include <future>
#include <map>
#include <mutex>
#include <random>
#include <string>

namespace local {
namespace {

constexpr size_t nonce_bytes = 32, hello_bytes = 36;  // a hello: rank, proof

// What the core's store does, for threads.
struct Table {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::string> values{{"address/0", "127.0.0.1"}, {"address/1", "127.0.0.1"}};

  void put(const std::string& key, const std::string& value) {
    std::lock_guard lock(mutex);
    values[key] = value;
    changed.notify_all();
  }
  std::string get(const std::string& key) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return values.count(key) > 0; });
    return values[key];
  }
  orr_comm_boot boot(int rank) {
    orr_comm_boot b{};
    b.size = sizeof b;
    b.rank = rank;
    b.world_size = 2;
    b.deadline_ns = int64_t{20} * 1000000000;
    b.store = this;
    b.put = [](void* self, const char* key, const void* value, uint64_t bytes) -> orr_status* {
      static_cast<Table*>(self)->put(key, std::string(static_cast<const char*>(value), bytes));
      return nullptr;
    };
    b.get = [](void* self, const char* key, void* value, uint64_t, uint64_t* bytes,
               int64_t) -> orr_status* {
      const std::string got = static_cast<Table*>(self)->get(key);
      std::memcpy(value, got.data(), *bytes = got.size());
      return nullptr;
    };
    b.dead = [](void*, int32_t) { return 0; };
    return b;
  }
};

std::future<std::vector<int>> form(Table& table, int rank) {
  return std::async(std::launch::async, [&table, rank] {
    return connect_all(table.boot(rank), {0, 1}, "1");
  });
}

int visit(Table& table) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(static_cast<uint16_t>(std::stoi(table.get("comm.local/1/port/0"))));
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  return fd;
}

bool is_shut(int fd) {
  char byte;
  pollfd ready{fd, POLLIN, 0};
  return poll(&ready, 1, 5000) == 1 && recv(fd, &byte, 1, 0) <= 0;
}

bool joined(int a, int b) {
  char byte = 0;
  pollfd ready{b, POLLIN, 0};
  return send(a, "x", 1, 0) == 1 && poll(&ready, 1, 5000) == 1 && recv(b, &byte, 1, 0) == 1 &&
         byte == 'x';
}

TEST(Doors, StrangersGetNowhereAndRanksGetIn) {
  Table table;
  auto first = form(table, 0);
  std::mt19937 random(20240607);
  std::vector<int> silent;
  for (int i = 0; i < 1000; ++i) {
    const int fd = visit(table);
    std::string hello(random() % 3 ? hello_bytes : random() % 100 + 1, '\0');
    for (char& c : hello) c = static_cast<char>(random());
    const int32_t who = static_cast<int32_t>(random() % 3);
    if (hello.size() == hello_bytes) std::memcpy(hello.data(), &who, sizeof who);
    char nonce[nonce_bytes];
    EXPECT_EQ(recv(fd, nonce, sizeof nonce, MSG_WAITALL), static_cast<ssize_t>(sizeof nonce));
    if (i % 8 == 0) {
      silent.push_back(fd);
      continue;
    }
    send(fd, hello.data(), hello.size(), MSG_NOSIGNAL);
    EXPECT_TRUE(is_shut(fd)) << i;
    close(fd);
  }
  const std::vector<int> one = form(table, 1).get(), zero = first.get();
  EXPECT_TRUE(joined(zero[1], one[0]));
  EXPECT_TRUE(joined(one[0], zero[1]));
  for (int fd : silent) {
    EXPECT_TRUE(is_shut(fd));
    close(fd);
  }
  for (int fd : {zero[1], one[0]}) close(fd);
}

TEST(Doors, WhoHasListenedAndRefusesIsNamedAsDead) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof at;
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&at), bytes), 0);  // and never listens
  ASSERT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&at), &bytes), 0);
  Table table;
  table.put("comm.local/1/secret", std::string(32, 's'));
  table.put("comm.local/1/port/0", std::to_string(ntohs(at.sin_port)));
  try {
    form(table, 1).get();
    ADD_FAILURE() << "there is nobody to connect with";
  } catch (const orr::Error& e) {
    EXPECT_NE(std::string(e.what()).find("rank 0 died while forming communicators"),
              std::string::npos)
        << e.what();
  }
  close(fd);
}

}  // namespace
}  // namespace local
