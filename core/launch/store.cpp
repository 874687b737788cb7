// SPDX-License-Identifier: Apache-2.0
#include "launch/store.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

#include "base/error.h"
#include "launch/meeting.h"
#include "launch/socket_store.h"
#include "launch/token.h"
#include "launch/wire.h"
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
  int dead(int) const override { return 0; }
  std::optional<WorkAnswer> ask(int) override { return std::nullopt; }
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
class ReportingStore : public ForwardingStore {
 public:
  ReportingStore(std::unique_ptr<Store> store, std::unique_ptr<Store> launcher)
      : ForwardingStore(std::move(store)), launcher_(std::move(launcher)) {}
  void report(const std::string& error) override { launcher_->report(error); }

 private:
  std::unique_ptr<Store> launcher_;
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

// The rank itself says how long its work may take; it is mentioned after one deadline, two, four.
int Store::at_work(int rank, int64_t waited_ns, std::string& what) {
  const std::optional<WorkAnswer> answer = ask(rank);
  if (!answer) return 0;
  what = answer->text;
  if (waited_ns >= answer->deadlines * deadline_ns()) return 1;
  if (waited_ns < deadline_ns()) return 2;
  int64_t last = said_after_;
  if (waited_ns < last) last = 0;  // another wait
  if (waited_ns >= 2 * last) {
    said_after_ = waited_ns;
    fmt::print(stderr, "orrery: waiting for rank {} for {:.0f} s: it is {}\n", rank,
               static_cast<double>(waited_ns) * 1e-9, what);
  }
  return 2;
}

// While all ranks answer, and one is at work of its own, what it is to put may still come.
std::string Store::get_patiently(const std::string& key, int64_t deadline_ns) {
  int busy = -1;
  for (int64_t waited = deadline_ns;; waited += deadline_ns) {
    try {
      return get(key, deadline_ns);
    } catch (const Error& e) {
      if (e.code() != ORR_DEADLINE) throw;
      const int before = std::exchange(busy, -1);
      std::string what, late;
      for (int r = 0; r < world_.size; ++r) {
        const int answer = r == world_.rank ? 1 : at_work(r, waited, what);
        if (answer == 0) throw;
        if (answer == 2) busy = r;
        if (r == before) late = what;
      }
      if (busy >= 0) continue;
      if (before < 0) throw;
      fail(ORR_DEADLINE,
           "rank {} has not answered for {:g} s while the world was forming; it is {}", before,
           static_cast<double>(waited) * 1e-9, late);
    }
  }
}

orr_comm_boot Store::boot(const World& world) {
  world_ = world;
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
      const std::string got = static_cast<Store*>(self)->get_patiently(key, deadline);
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
  boot.at_work = [](void* self, int32_t rank, int64_t waited_ns, char* what, uint64_t capacity) {
    std::string text;
    const int answer = static_cast<Store*>(self)->at_work(rank, waited_ns, text);
    if (capacity > 0) what[text.copy(what, capacity - 1)] = 0;
    return int32_t{answer};
  };
  return boot;
}

}  // namespace orrery
