// SPDX-License-Identifier: Apache-2.0
//
// comm `nccl`: NVIDIA's NCCL as the carrier. Loads everywhere; probe says what is missing.
// docs/nccl.md is for users.
#include <orrery/sdk/comm.hpp>

#include "comm.h"

namespace {

int32_t probe(void*, orr_comm_caps* out, char* reason, uint32_t reason_bytes) {
  *out = orr::host_caps(ORR_COMM_STREAM_ORDERED | ORR_COMM_PEER_DEATH | ORR_COMM_PAIR_ORDER |
                        ORR_COMM_DEVICE_MEMORY);
  out->tiers |= 1u << ORR_TIER_PINNED | 1u << ORR_TIER_DEVICE;
  const std::string why = nccl::why_not_here();
  snprintf(reason, reason_bytes, "%s", why.c_str());
  return why.empty();
}

nccl::Comm& of(orr_comm* comm) { return orr::comm_of<nccl::Comm>(comm); }

orr_status* post(orr_comm* comm, const orr_coll* ops, int32_t n, orr_work** out) {
  return orr::guard([&] { *out = reinterpret_cast<orr_work*>(of(comm).post(ops, n).release()); });
}

orr_status* wait(orr_comm* comm, orr_work* work) {
  const std::unique_ptr<nccl::Work> pending(reinterpret_cast<nccl::Work*>(work));
  return orr::guard([&] {
    if (pending) of(comm).wait(*pending);
  });
}

constexpr orr_comm_api table() {
  orr_comm_api t = orr::comm_table<nccl::Comm, nccl::Comm::form_world>(probe);
  t.post = post, t.wait = wait;
  t.allocate = [](orr_comm* comm, uint64_t bytes, orr_memory** out) {
    return orr::guard([&] { *out = of(comm).allocate(bytes); });
  };
  t.free = [](orr_comm* comm, orr_memory* memory) {
    if (orr_status* failed = orr::guard([&] { of(comm).free(memory); }))
      orr::host->error_release(failed);
  };
  t.abort = [](orr_comm* comm, const char* reason) {
    nccl::Family& family = of(comm).family();
    family.abort(ORR_RETRY, "rank " + std::to_string(family.rank()) + " aborted: " + reason);
  };
  t.async_error = [](orr_comm* comm) {
    return orr::guard([&] { of(comm).family().check_alive(); });
  };
  return t;
}

constexpr orr_comm_api api = table();

}  // namespace

ORR_PLUGIN(ORR_KIND_COMM, "nccl", "1.0.0", "NVIDIA's NCCL as the carrier", orr::comm_entry<api>, 1,
           {{"comm", 1, 1}})
