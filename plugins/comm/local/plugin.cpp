// SPDX-License-Identifier: Apache-2.0
//
// comm `local`: shared memory between the ranks of one host, TCP between hosts. Host-ordered:
// `post` moves the bytes on the caller's thread and is done at return.
#include <orrery/comm.h>

#include <cstdlib>
#include <orrery/sdk/comm.hpp>

#include "comm.h"

namespace {

using local::Group;

int32_t probe(void*, orr_comm_caps* out, char* reason, uint32_t reason_bytes) {
  const char* pretended = std::getenv(local::test_hosts);
  *out = orr::host_caps(ORR_COMM_DETERMINISTIC | ORR_COMM_REGISTERED | ORR_COMM_PEER_DEATH |
                        ORR_COMM_CONCURRENT | (pretended ? 0u : unsigned{ORR_COMM_SHARED}));
  out->tiers |= 1u << ORR_TIER_COMM;
  out->max_ranks = local::max_ranks;
  if (reason_bytes > 0) reason[0] = 0;
  return 1;
}

constexpr orr_comm_api make_table() {
  orr_comm_api t = orr::comm_table<Group, local::form_world>(probe);
  orr::set_host_ordered<Group>(t);
  t.allocate = [](orr_comm* comm, uint64_t bytes, orr_memory** out) {
    return orr::guard([&] { *out = orr::comm_of<Group>(comm).allocate(bytes, false); });
  };
  t.allocate_shared = [](orr_comm* comm, uint64_t bytes, orr_memory** out) {
    return orr::guard([&] { *out = orr::comm_of<Group>(comm).allocate(bytes, true); });
  };
  t.free = [](orr_comm* comm, orr_memory* memory) { orr::comm_of<Group>(comm).free(memory); };
  t.abort = [](orr_comm* comm, const char* reason) {
    local::Family& family = orr::comm_of<Group>(comm).family();
    family.kill(ORR_RETRY, "rank " + std::to_string(family.boot.rank) + " aborted: " + reason);
  };
  t.async_error = [](orr_comm* comm) {
    return orr::guard([&] { orr::comm_of<Group>(comm).family().check_alive(); });
  };
  return t;
}

constexpr orr_comm_api kApi = make_table();

}  // namespace

ORR_PLUGIN(ORR_KIND_COMM, "local", "1.0.0", "Shared memory on one host, TCP between hosts",
           orr::comm_entry<kApi>, 1, {{"comm", 1, 1}})
