// SPDX-License-Identifier: Apache-2.0
//
// boot `pmix`: ranks of a launcher that serves PMIx, as Open MPI's mpirun and Slurm's
// `srun --mpi=pmix` do. What a rank puts is fetched from its host's daemon when another one asks
// for it; no rank waits for all.
#include <orrery/boot.h>
#include <pmix.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <future>
#include <memory>
#include <orrery/sdk/plugin.hpp>
#include <string>
#include <thread>

namespace {

using Clock = std::chrono::steady_clock;

void check(pmix_status_t status, const std::string& what) {
  if (status != PMIX_SUCCESS)
    throw orr::Error(ORR_FAILED, what + " of PMIx says " + PMIx_Error_string(status));
}

// The connection to this host's daemon. Launchers take a rank that has made one for crashed if it
// ends without closing it.
class Client {
 public:
  static Client& get() {
    static Client client;
    return client;
  }
  pmix_proc_t rank(pmix_rank_t rank) const {
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, me_.nspace, rank);
    return proc;
  }
  uint32_t own_rank() const { return me_.rank; }

  // A number that the launcher gives of a rank, or of the whole job.
  int32_t number(pmix_rank_t of, const char* key) const {
    const pmix_proc_t proc = rank(of);
    pmix_value_t* value = nullptr;
    if (const pmix_status_t status = PMIx_Get(&proc, key, nullptr, 0, &value))
      throw orr::Error(ORR_FAILED, std::string("PMIx does not tell ") + key + " (" +
                                       PMIx_Error_string(status) +
                                       "): its daemon serves one program of each rank, and not "
                                       "another one after it");
    const int32_t number =
        value->type == PMIX_UINT16 ? value->data.uint16 : static_cast<int32_t>(value->data.uint32);
    PMIX_VALUE_RELEASE(value);
    return number;
  }

 private:
  Client() { check(PMIx_Init(&me_, nullptr, 0), "PMIx_Init"); }
  ~Client() { PMIx_Finalize(nullptr, 0); }
  pmix_proc_t me_;
};

orr_status* started(void*, orr_boot_world* out) {
  return orr::guard([&] {
    if (!std::getenv("PMIX_NAMESPACE") || !std::getenv("PMIX_RANK")) {
      orr::copy_text(out->reason, "PMIX_NAMESPACE and PMIX_RANK are not set");
      return;
    }
    const Client& client = Client::get();
    out->rank = static_cast<int32_t>(client.own_rank());
    out->world_size = client.number(PMIX_RANK_WILDCARD, PMIX_JOB_SIZE);
    out->local_rank = client.number(client.own_rank(), PMIX_LOCAL_RANK);
    out->local_size = client.number(PMIX_RANK_WILDCARD, PMIX_LOCAL_SIZE);
    out->started = 1;
  });
}

std::string full(const char* key) { return std::string("orrery.") + key; }

orr_status* put(void*, const char* key, const void* value, uint64_t bytes) {
  return orr::guard([&] {
    std::string text(static_cast<const char*>(value), bytes);
    pmix_value_t given;
    given.type = PMIX_STRING;
    given.data.string = text.data();
    check(PMIx_Put(PMIX_GLOBAL, full(key).c_str(), &given), "PMIx_Put");
    check(PMIx_Commit(), "PMIx_Commit");
  });
}

struct Answer {
  pmix_status_t status;
  std::string text;
};
using Promise = std::shared_ptr<std::promise<Answer>>;

// The answer may come when nobody waits for it any more. [a thread of PMIx]
void take(pmix_status_t status, pmix_value_t* value, void* arg) {
  const std::unique_ptr<Promise> promise(static_cast<Promise*>(arg));
  const bool is_text = status == PMIX_SUCCESS && value && value->type == PMIX_STRING;
  (*promise)->set_value({status, is_text ? value->data.string : ""});
}

// Asks the daemon, which waits for the rank to put the value, or says that it has not.
Answer ask(const pmix_proc_t& of, const std::string& key, Clock::time_point end) {
  const Promise promise = std::make_shared<std::promise<Answer>>();
  std::future<Answer> answer = promise->get_future();
  auto arg = std::make_unique<Promise>(promise);
  check(PMIx_Get_nb(&of, key.c_str(), nullptr, 0, take, arg.get()), "PMIx_Get_nb");
  arg.release();
  if (answer.wait_until(end) != std::future_status::ready) return {PMIX_ERR_TIMEOUT, ""};
  return answer.get();
}

orr_status* get(void*, int32_t rank, const char* key, void* value, uint64_t capacity,
                uint64_t* bytes, int64_t deadline_ns) {
  return orr::guard([&] {
    const auto end = Clock::now() + std::chrono::nanoseconds(deadline_ns);
    const pmix_proc_t of = Client::get().rank(static_cast<pmix_rank_t>(rank));
    Answer answer = ask(of, full(key), end);
    while (answer.status == PMIX_ERR_NOT_FOUND && Clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      answer = ask(of, full(key), end);
    }
    if (answer.status == PMIX_ERR_TIMEOUT || answer.status == PMIX_ERR_NOT_FOUND)
      throw orr::Error(ORR_DEADLINE, "rank " + std::to_string(rank) + " has put no '" + key +
                                         "' for " + std::to_string(deadline_ns / 1000000000) +
                                         " s");
    check(answer.status, "PMIx_Get_nb");
    if (answer.text.size() > capacity)
      throw orr::Error(ORR_INVALID, "a value of rank " + std::to_string(rank) + " has " +
                                        std::to_string(answer.text.size()) + " bytes");
    std::memcpy(value, answer.text.data(), answer.text.size());
    *bytes = answer.text.size();
  });
}

constexpr orr_boot_api table = {sizeof(orr_boot_api), nullptr, started, put, get};

orr_status* entry(const orr_bootstrap* boot, orr_exports* out) {
  orr::attach(boot);
  out->get = [](void*, const char* interface, uint32_t version) -> const void* {
    return std::string_view(interface) == "boot" && version == 1 ? &table : nullptr;
  };
  return nullptr;
}

}  // namespace

ORR_PLUGIN(0, "pmix", "1.0.0", "Ranks of a launcher that serves PMIx", entry, 1, {{"boot", 1, 1}})
