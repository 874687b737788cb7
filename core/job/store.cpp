// SPDX-License-Identifier: Apache-2.0
#include "job/store.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>

#include "base/error.h"
#include "job/meeting.h"
#include "job/socket_store.h"
#include "job/token.h"
#include "job/wire.h"
#include "plugin/host.h"

namespace orrery {
namespace {

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

// Ranks on several hosts that have nowhere to meet: some comm plugins need no store (MPI forms its
// own world), and the others say what it would take.
class DistantStore : public MemoryStore {
 public:
  explicit DistantStore(const World& world) : world_(world) {}
  void put(const std::string&, const std::string&) override { refuse(); }
  std::string get(const std::string&, int64_t) override { refuse(); }

 private:
  [[noreturn]] void refuse() const {
    fail(ORR_UNAVAILABLE,
         "{} has put {} of {} ranks on this host, and {}: start them with 'orrery run --hosts FILE "
         "...', give all "
         "ranks {}, or use a comm plugin that forms its own world",
         world_.source, world_.local_size, world_.size,
         world_.address.empty() ? "nothing says where they meet"
                                : "they share no secret to know each other by",
         world_.address.empty() ? fmt::format("MASTER_ADDR, MASTER_PORT and {}", token_variable)
                                : fmt::format("the same {}", token_variable));
  }
  World world_;
};

// A store between hosts whose launcher hears the sentence, too, that the rank ends with.
class ReportingStore : public Store {
 public:
  ReportingStore(std::unique_ptr<Store> store, std::unique_ptr<Store> launcher)
      : store_(std::move(store)), launcher_(std::move(launcher)) {}
  void put(const std::string& key, const std::string& value) override { store_->put(key, value); }
  std::string get(const std::string& key, int64_t deadline_ns) override {
    return store_->get(key, deadline_ns);
  }
  bool dead(int rank) const override { return store_->dead(rank); }
  void report(const std::string& error) override { launcher_->report(error); }
  const std::string& job() const override { return store_->job(); }

 private:
  std::unique_ptr<Store> store_, launcher_;
};

std::unique_ptr<Store> open_afar(const World& world) {
  const char* token = std::getenv(token_variable);
  if (world.address.empty() || !token || !*token) return std::make_unique<DistantStore>(world);
  return meet_afar(world, token, deadline_ns());
}

int descriptor(const char* variable) {
  const char* text = std::getenv(variable);
  const int fd = text ? std::atoi(text) : -1;
  return fd >= 0 && fcntl(fd, F_GETFD) >= 0 ? fd : -1;
}

}  // namespace

std::unique_ptr<Store> Store::open(const World& world) {
  if (world.size == 1) return std::make_unique<MemoryStore>();
  if (world.size > wire::max_ranks)
    fail(ORR_INVALID, "{} has started {} ranks: a job has at most {}", world.source, world.size,
         wire::max_ranks);
  const int socket = descriptor(wire::store_variable), board = descriptor(wire::board_variable);
  if (socket >= 0 && board >= 0) {
    const char* job = std::getenv(wire::job_variable);
    auto launcher = std::make_unique<SocketStore>(SocketStore::Server::launcher,
                                                  std::make_unique<Connection>(socket), board,
                                                  world.size, job ? job : "");
    if (world.local_size == world.size) return launcher;
    return std::make_unique<ReportingStore>(open_afar(world), std::move(launcher));
  }
  if (world.local_size != world.size) return open_afar(world);
  if (world.job.empty())
    fail(ORR_UNAVAILABLE,
         "{} says that this is rank {} of {}, but not of which job: set MASTER_ADDR and "
         "MASTER_PORT, or "
         "start the ranks with 'orrery run -n {} ...'",
         world.source, world.rank, world.size, world.size);
  return meet(world, deadline_ns());
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
    return guarded([&] {
      static_cast<Store*>(self)->put(key, std::string(static_cast<const char*>(value), bytes));
    });
  };
  boot.get = [](void* self, const char* key, void* value, uint64_t capacity, uint64_t* bytes,
                int64_t deadline) {
    return guarded([&] {
      const std::string got = static_cast<Store*>(self)->get(key, deadline);
      if (got.size() > capacity)
        fail(ORR_INVALID, "store: '{}' holds {} bytes, more than the {} asked for", key, got.size(),
             capacity);
      std::memcpy(value, got.data(), got.size());
      *bytes = got.size();
    });
  };
  boot.dead = [](void* self, int32_t rank) {
    return int32_t{static_cast<Store*>(self)->dead(rank)};
  };
  return boot;
}

}  // namespace orrery
