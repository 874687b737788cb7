// SPDX-License-Identifier: Apache-2.0
//
// comm `mpi`: MPI as the carrier, one build for Open MPI and one for MPICH. Host-ordered: `post`
// moves the bytes on the caller's thread and is done at return, so a work handle says nothing.
#include <orrery/sdk/comm.hpp>

#include "comm.h"
#include "library.h"

namespace {

int32_t probe(void*, orr_comm_caps* out, char* reason, uint32_t reason_bytes) {
  *out = orr::host_caps(ORR_COMM_DETERMINISTIC | ORR_COMM_ANY_SOURCE | ORR_COMM_CONCURRENT);
  const std::string why = mpi::why_not_here();
  snprintf(reason, reason_bytes, "%s", why.c_str());
  return why.empty();
}

mpi::World& world_of(orr_comm* comm) { return orr::comm_of<mpi::Comm>(comm).world(); }

constexpr orr_comm_api table() {
  orr_comm_api t = orr::comm_table<mpi::Comm, mpi::Comm::form_world>(probe);
  orr::set_host_ordered<mpi::Comm>(t);
  t.abort = [](orr_comm* comm, const char* reason) {
    const std::string who = "rank " + std::to_string(world_of(comm).boot().rank);
    orr::guard([&] { world_of(comm).abort(ORR_RETRY, who + " aborted: " + reason); });
  };
  t.async_error = [](orr_comm* comm) { return orr::guard([&] { world_of(comm).check_alive(); }); };
  return t;
}

constexpr orr_comm_api api = table();

}  // namespace

ORR_PLUGIN(ORR_KIND_COMM, "mpi", "1.0.0", "MPI as the carrier, by " ORR_MPI_LIBRARY,
           orr::comm_entry<api>, 1, {{"comm", 1, 1}})
