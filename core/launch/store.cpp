// SPDX-License-Identifier: Apache-2.0
#include "launch/store.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "base/text.h"
#include "launch/boot.h"
#include "launch/meeting.h"
#include "launch/token.h"
#include "launch/wire.h"
#include "plugin/host.h"
#include "plugin/registry.h"

namespace orrery {
namespace {

// The name of a job of one process. It holds that of our launcher's job, by which the launcher
// finds what is left in shared memory, and the process's number, because a program that the rank
// starts has the same variables.
std::string lone_job() {
  const char* job = std::getenv(wire::job_variable);
  return fmt::format("{}-{}", job ? job : "job", getpid());
}

// The store of a world of one rank, in which a key without a value will never get one. It also
// stands for the missing store of ranks on several hosts that cannot meet: some comm plugins need
// none (MPI forms its own world); for the others `put` and `get` throw what is missing.
class LoneStore : public Store {
 public:
  explicit LoneStore(std::string lack = "") : lack_(std::move(lack)) {}
  void put(const std::string& key, const std::string& value) override {
    check_shared();
    table_[key] = value;
  }
  std::string get(const std::string& key, int64_t) override {
    check_shared();
    auto found = table_.find(key);
    if (found == table_.end()) fail(ORR_DEADLINE, "no rank has put '{}' into the store", key);
    return found->second;
  }
  bool is_shared() const override { return lack_.empty(); }
  int dead(int) const override { return 0; }
  void blame(const Error& why) override {
    std::lock_guard lock(mutex_);
    if (!blamed_) blamed_ = why;
  }
  std::optional<Error> blamed() override {
    std::lock_guard lock(mutex_);
    return blamed_;
  }
  std::optional<WorkAnswer> ask(int) override { return std::nullopt; }
  void report(const std::string&) override {}
  const std::string& job() const override { return job_; }

 private:
  void check_shared() const {
    if (!is_shared()) fail(ORR_UNAVAILABLE, "{}", lack_);
  }
  const std::string lack_, job_ = lone_job();
  std::map<std::string, std::string> table_;
  std::mutex mutex_;
  std::optional<Error> blamed_;
};

std::string lack_of(const World& w) {
  const std::string all = fmt::format("MASTER_ADDR, MASTER_PORT and {}", token_variable);
  const std::vector<std::string> plugins = Registry::get().names(kind_boot);
  return fmt::format(
      "{} has put {} of {} ranks on this host, and {}: start them with 'orrery run --hosts FILE "
      "...', give all ranks {}, set ORRERY_BOOT to a plugin by which they meet (found: {}), or use "
      "a comm plugin that forms its own world",
      w.source, w.local_size, w.size,
      w.address.empty() ? "nothing says where they meet"
                        : "they share no secret to know each other by",
      w.address.empty() ? all : fmt::format("the same {}", token_variable),
      plugins.empty() ? "none" : join(plugins, ", "));
}

// Why no rank answers, if rank 0 has served the store and is dead: "rank 0 died", or the rank that
// has ended before it; else "".
std::string why_gone(const Store& store, int ranks) {
  int first = 0;
  if (store.dead(first) <= wire::max_ranks) return "";
  for (int r = 1; r < ranks; ++r)
    if (const int at = store.dead(r); at && at < store.dead(first)) first = r;
  return fmt::format("rank {} died", first);
}

// Opens the store between hosts, if they can meet.
std::unique_ptr<Store> open_afar(const World& world, std::unique_ptr<Store> launcher) {
  const char* token = std::getenv(token_variable);
  if (world.address.empty() || !token || !*token)
    return std::make_unique<LoneStore>(lack_of(world));
  return meet(world, {world.address, port_number(world.port)}, token, deadline_ns(),
              std::move(launcher));
}

}  // namespace

std::unique_ptr<Store> Store::open(const World& world) {
  if (world.size == 1) return std::make_unique<LoneStore>();
  if (world.size > wire::max_ranks)
    fail(ORR_INVALID, "{} has started {} ranks: a job has at most {}", world.source, world.size,
         wire::max_ranks);
  std::unique_ptr<Store> launcher;
  if (const char* place = std::getenv(wire::store_variable))
    launcher = meet_launcher(world, place, deadline_ns());
  if (!world.boot.empty()) return meet_by_boot(world, std::move(launcher));
  if (world.local_size != world.size) return open_afar(world, std::move(launcher));
  if (launcher) return launcher;
  if (world.job.empty())
    fail(ORR_UNAVAILABLE,
         "{} says that this is rank {} of {}, but not of which job: set MASTER_ADDR and "
         "MASTER_PORT, or "
         "start the ranks with 'orrery run -n {} ...'",
         world.source, world.rank, world.size, world.size);
  return meet(world, {meeting_place(world)}, "", deadline_ns());
}

// The rank's answer says how many deadlines its work may take. A line about it is printed after one
// deadline, two, four and so on.
int Store::at_work(int rank, int64_t waited_ns, std::string& what) {
  const std::optional<WorkAnswer> answer = ask(rank);
  if (!answer) {
    what = why_gone(*this, world_.size);
    return 0;
  }
  what = answer->text;
  if (answer->deadlines == WorkAnswer::waits) return 3;
  if (waited_ns >= answer->deadlines * deadline_ns()) return 1;
  if (waited_ns < deadline_ns()) return 2;
  int64_t last = said_after_;
  if (waited_ns < last) last = 0;  // a new wait has begun
  if (waited_ns >= 2 * last) {
    said_after_ = waited_ns;
    fmt::print(stderr, "orrery: waiting for rank {} for {:.0f} s: it is {}\n", rank,
               static_cast<double>(waited_ns) * 1e-9, what);
  }
  return 2;
}

// A rank that does not answer is named before one that takes long, which may be waiting for the
// former. A rank that takes long with work of its own is named before one that is still forming the
// world, which only waits as this rank does.
Store::Verdict Store::judge(const World& world, int64_t waited_ns) {
  const auto seconds = [](int64_t ns) { return static_cast<double>(ns) * 1e-9; };
  Verdict verdict;
  std::optional<Error> together;
  for (int r = 0; r < world.size; ++r) {
    if (r == world.rank) continue;
    std::string what;
    const int answer = at_work(r, waited_ns, what);
    if (answer == 0 && dead(r))
      return {Error(ORR_RETRY, fmt::format("rank {} died while the world was forming", r))};
    if (answer == 0)
      return {Error(ORR_DEADLINE, fmt::format("rank {} has not answered for {:g} s while the world "
                                              "was forming",
                                              r, seconds(deadline_ns())))};
    verdict.busy |= answer == 2;
    if (answer >= 2 || what.empty()) continue;
    if (what.starts_with(forming_work))
      together = Error(ORR_DEADLINE, fmt::format("the world has not formed for {:g} s, though all "
                                                 "ranks answer; rank {} is {}",
                                                 seconds(waited_ns), r, what));
    else if (!verdict.blame)
      verdict.blame =
          Error(ORR_DEADLINE, fmt::format("rank {} has not answered for {:g} s while the world was "
                                          "forming; it is {}",
                                          r, seconds(waited_ns), what));
  }
  if (!verdict.blame) verdict.blame = together;
  if (verdict.busy) verdict.blame.reset();
  return verdict;
}

// Waits for a key beyond the deadline, as long as all ranks answer and one is busy with work of its
// own: it may still put the key.
std::string Store::get_patiently(const std::string& key, int64_t deadline_ns) {
  for (int64_t waited = deadline_ns;; waited += deadline_ns) {
    try {
      return get(key, deadline_ns);
    } catch (const Error& e) {
      if (e.code() != ORR_DEADLINE) throw;
      const Verdict verdict = judge(world_, waited);
      if (verdict.blame) throw *verdict.blame;
      if (!verdict.busy) throw;
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
  boot.blame = [](void* self, int32_t code, const char* why) {
    static_cast<Store*>(self)->blame(Error(code, why));
  };
  boot.blamed = [](void* self, char* why, uint64_t capacity) {
    const std::optional<Error> told = static_cast<Store*>(self)->blamed();
    if (told && capacity > 0) why[std::string(told->what()).copy(why, capacity - 1)] = 0;
    return told ? int32_t{told->code()} : 0;
  };
  boot.waits = [](void*, int32_t begins) { note_wait(begins != 0); };
  return boot;
}

}  // namespace orrery
