// SPDX-License-Identifier: Apache-2.0
#include "job/store.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "job/wire.h"
#include "plugin/host.h"

namespace orrery {
namespace {

using Clock = std::chrono::steady_clock;

// A world of one: what is not there will never come.
class MemoryStore : public Store {
 public:
  void put(const std::string& key, const std::string& value) override { table_[key] = value; }
  std::string get(const std::string& key, int64_t) override {
    auto found = table_.find(key);
    if (found == table_.end()) fail(ORR_DEADLINE, "no rank has put '{}' into the store", key);
    return found->second;
  }
  bool dead(int) const override { return false; }
  void report(const std::string&) override {}
  const std::string& job() const override { return job_; }

 private:
  std::map<std::string, std::string> table_;
  std::string job_ = "job-" + std::to_string(getpid());
};

class LauncherStore : public Store {
 public:
  LauncherStore(int socket, int board, int size) : socket_(socket), size_(size) {
    fcntl(socket, F_SETFD, FD_CLOEXEC);
    void* page = mmap(nullptr, sizeof(wire::Board), PROT_READ, MAP_SHARED, board, 0);
    close(board);
    if (page == MAP_FAILED)
      fail(ORR_FAILED, "cannot read the launcher's page: {}", std::strerror(errno));
    board_ = static_cast<const wire::Board*>(page);
    if (const char* job = std::getenv(wire::job_variable)) job_ = job;
  }
  ~LauncherStore() override {
    munmap(const_cast<wire::Board*>(board_), sizeof(wire::Board));
    close(socket_);
  }

  void put(const std::string& key, const std::string& value) override {
    std::lock_guard lock(mutex_);
    send(wire::put, key, value);
  }

  std::string get(const std::string& key, int64_t deadline_ns) override {
    std::lock_guard lock(mutex_);
    const uint32_t id = send(wire::get, key, "");
    const auto end = Clock::now() + std::chrono::nanoseconds(deadline_ns);
    std::string value;
    for (;;) {
      const int gone = first_dead();  // before looking: its last words may still be on the way
      if (receive(id, value)) return value;
      if (gone >= 0) fail(ORR_RETRY, "rank {} died while the job was forming", gone);
      if (Clock::now() > end)
        fail(ORR_DEADLINE, "no rank has put '{}' into the store for {:g} s", key,
             static_cast<double>(deadline_ns) * 1e-9);
    }
  }

  bool dead(int rank) const override {
    return rank >= 0 && rank < size_ && board_->ended[rank].load(std::memory_order_acquire) != 0;
  }

  void report(const std::string& error) override {
    std::lock_guard lock(mutex_);
    send(wire::report, "", error.substr(0, wire::max_message / 2));
  }

  const std::string& job() const override { return job_; }

 private:
  int first_dead() const {
    for (int r = 0; r < size_; ++r)
      if (dead(r)) return r;
    return -1;
  }

  uint32_t send(wire::Kind kind, const std::string& key, const std::string& value) {
    wire::Frame frame{kind, ++last_id_, static_cast<uint32_t>(key.size()),
                      static_cast<uint32_t>(value.size())};
    std::string packet(reinterpret_cast<char*>(&frame), sizeof frame);
    packet += key;
    packet += value;
    if (packet.size() > wire::max_message)
      fail(ORR_INVALID, "store: the value of '{}' is larger than {} bytes", key, wire::max_message);
    if (::send(socket_, packet.data(), packet.size(), MSG_NOSIGNAL) < 0)
      fail(ORR_RETRY, "the launcher is gone: {}", std::strerror(errno));
    return last_id_;
  }

  // The answer to question `id`, if it comes soon; answers to questions given up are dropped.
  bool receive(uint32_t id, std::string& value) {
    pollfd ready{socket_, POLLIN, 0};
    if (poll(&ready, 1, 20) <= 0) return false;
    std::vector<char> packet(wire::max_message);
    const ssize_t n = recv(socket_, packet.data(), packet.size(), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (n < static_cast<ssize_t>(sizeof(wire::Frame))) fail(ORR_RETRY, "the launcher is gone");
    wire::Frame frame;
    std::memcpy(&frame, packet.data(), sizeof frame);
    if (frame.kind != wire::value || frame.id != id) return false;
    value.assign(packet.data() + sizeof frame, packet.data() + n);
    return true;
  }

  std::mutex mutex_;
  int socket_, size_;
  const wire::Board* board_ = nullptr;
  uint32_t last_id_ = 0;
  std::string job_;
};

int descriptor(const char* variable) {
  const char* text = std::getenv(variable);
  const int fd = text ? std::atoi(text) : -1;
  return fd >= 0 && fcntl(fd, F_GETFD) >= 0 ? fd : -1;
}

template <class F>
orr_status* guard(F&& body) {
  try {
    body();
    return nullptr;
  } catch (const Error& e) {
    return host_table().error(e.code(), e.what());
  } catch (const std::exception& e) {
    return host_table().error(ORR_FAILED, e.what());
  }
}

}  // namespace

std::unique_ptr<Store> Store::open(const World& world) {
  if (world.size == 1) return std::make_unique<MemoryStore>();
  const int socket = descriptor(wire::store_variable), board = descriptor(wire::board_variable);
  if (socket < 0 || board < 0 || world.size > wire::max_ranks)
    fail(ORR_UNAVAILABLE,
         "{} says that this is rank {} of {}, but there is no store for the ranks to meet at: start "
         "them with 'orrery run -n {} ...'",
         world.source, world.rank, world.size, world.size);
  return std::make_unique<LauncherStore>(socket, board, world.size);
}

orr_comm_boot Store::boot(const World& world) {
  orr_comm_boot boot{};
  boot.size = sizeof boot;
  boot.rank = world.rank;
  boot.world_size = world.size;
  boot.local_rank = world.local_rank;
  boot.local_size = world.local_size;
  boot.deadline_ns = deadline_ns();
  boot.job = job().c_str();
  boot.store = this;
  boot.put = [](void* self, const char* key, const void* value, uint64_t bytes) {
    return guard([&] {
      static_cast<Store*>(self)->put(key, std::string(static_cast<const char*>(value), bytes));
    });
  };
  boot.get = [](void* self, const char* key, void* value, uint64_t capacity, uint64_t* bytes,
                int64_t deadline) {
    return guard([&] {
      const std::string got = static_cast<Store*>(self)->get(key, deadline);
      if (got.size() > capacity)
        fail(ORR_INVALID, "store: '{}' holds {} bytes, more than the {} asked for", key, got.size(),
             capacity);
      std::memcpy(value, got.data(), got.size());
      *bytes = got.size();
    });
  };
  boot.dead = [](void* self, int32_t rank) { return int32_t{static_cast<Store*>(self)->dead(rank)}; };
  return boot;
}

}  // namespace orrery
