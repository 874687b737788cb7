// SPDX-License-Identifier: Apache-2.0
#include "family.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include <orrery/sdk/plugin.hpp>

#include "../shared/blame.h"
#include "sharing.h"

namespace nccl {
namespace {

constexpr uint64_t most_value = 2048;
constexpr const char* store_keeper = "the keeper of the job's store (rank 0 or the launcher)";

int count_worlds() {
  static std::atomic<int> worlds{0};
  return ++worlds;
}

}  // namespace

Family::Family(const orr_comm_boot& boot)
    : boot_(boot),
      world_(count_worlds()),
      has_own_cpu_(boot.local_size <= sysconf(_SC_NPROCESSORS_ONLN)),
      device_(boot.local_rank) {
  say({});
  put(key("device", rank()), device_.identity().data(), device_.identity().size());
  if (!share_gpus(boot)) refuse_shared_devices();
}

std::string Family::key(const char* name, int rank) const {
  const std::string text = "nccl/" + std::to_string(world_) + "/" + name;
  return rank < 0 ? text : text + "/" + std::to_string(rank);
}

void Family::put(const std::string& key, const void* value, uint64_t bytes) const {
  orr::check(boot_.put(boot_.store, key.c_str(), value, bytes));
}

// `culprit` is who must have put it, or who keeps it.
std::string Family::get(const std::string& key, const std::string& culprit) const {
  char value[most_value];
  uint64_t bytes = 0;
  try {
    orr::check(boot_.get(boot_.store, key.c_str(), value, sizeof value, &bytes, boot_.deadline_ns));
  } catch (const orr::Error& e) {
    if (e.code != ORR_DEADLINE) throw;
    throw orr::Error(e.code,
                     culprit + " has not answered for " + shared::seconds(boot_.deadline_ns));
  }
  return std::string(value, bytes);
}

// What rank `rank` puts when it comes.
std::string Family::get_first(const char* name, int rank) const {
  return get(key(name, rank), "rank " + std::to_string(rank));
}

// NCCL takes one rank per GPU; with two, some versions refuse and some hang.
void Family::refuse_shared_devices() const {
  std::vector<std::string> all;
  for (int r = 0; r < size(); ++r) {
    all.push_back(get_first("device", r));
    const int first = static_cast<int>(std::find(all.begin(), all.end(), all.back()) - all.begin());
    if (first < r)
      throw orr::Error(ORR_UNAVAILABLE,
                       "ranks " + std::to_string(first) + " and " + std::to_string(r) +
                           " have the same GPU, and NCCL takes one rank per GPU: start at most " +
                           std::to_string(device_.devices()) + " ranks on this host");
  }
}

ncclUniqueId Family::meet() {
  ncclUniqueId id{};
  if (rank() == 0) {
    check_nccl(library().ncclGetUniqueId(&id), "ncclGetUniqueId");
    put(key("id"), &id, sizeof id);
  } else {
    const std::string got = get(key("id"), "rank 0");
    std::memcpy(&id, got.data(), std::min(got.size(), sizeof id));
  }
  for (int r = 0; r < size(); ++r) get_first("awaited", r);
  return id;
}

void Family::tell_peers(int32_t code, const std::string& text) {
  shared::tell_end(boot_, code, text);
}

void Family::listen() {
  std::string why;
  if (const int32_t code = shared::told_end(boot_, why)) end(code, why);
  check_alive();
}

void Family::say(const Awaited& mine) const { put(key("awaited", rank()), &mine, sizeof mine); }

std::vector<Awaited> Family::all_awaited() const {
  std::vector<Awaited> all(static_cast<size_t>(size()));
  for (int r = 0; r < size(); ++r) {
    const std::string value = get(key("awaited", r), store_keeper);
    std::memcpy(&all[static_cast<size_t>(r)], value.data(),
                std::min(value.size(), sizeof(Awaited)));
  }
  return all;
}

}  // namespace nccl
