// SPDX-License-Identifier: Apache-2.0
//
// comm `null`: a backend that joins nobody, for plans of ranks that share no memory and for a job
// of one rank. With several it would train nothing, and says so.
#include <orrery/sdk/comm.hpp>

#include <string>

namespace {

int32_t probe(void*, orr_comm_caps* out, char* reason, uint32_t reason_bytes) {
  const uint32_t size = out->size;
  *out = orr::host_caps(ORR_COMM_DETERMINISTIC);
  out->size = size, out->max_ranks = 1;
  if (reason_bytes > 0) reason[0] = 0;
  return 1;
}

orr_status* world(void*, const orr_comm_boot* boot, orr_comm**) {
  return orr::guard([&] {
    throw orr::Error(ORR_INVALID,
                     "it moves nothing between ranks, so that " + std::to_string(boot->world_size) +
                         " ranks train nothing together: use --comm local, or one rank");
  });
}

constexpr orr_comm_api api = [] {
  orr_comm_api t{};
  t.size = sizeof t, t.probe = probe, t.world = world;
  return t;
}();

}  // namespace

ORR_PLUGIN(ORR_KIND_COMM, "null", "1.0.0", "Joins nobody: for plans, and for one rank",
           orr::comm_entry<api>, 1, {{"comm", 1, 1}})
