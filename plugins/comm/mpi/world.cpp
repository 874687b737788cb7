// SPDX-License-Identifier: Apache-2.0
//
// The library's begin and end in this process.
#include "world.h"

#include <unistd.h>

#include <orrery/sdk/plugin.hpp>

#include "../shared/operation.h"

namespace mpi {
namespace {

// MPI is initialised once in a process, and there is no second time.
void initialize(bool one_host) {
  int before = 0, provided = 0;
  MPI_Initialized(&before);
  if (before) throw orr::Error(ORR_INVALID, "comm 'mpi' forms one world in the life of a process");
  spare_names(one_host);
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (provided < MPI_THREAD_SERIALIZED)
    throw orr::Error(ORR_UNAVAILABLE,
                     "this MPI library was built without threads, and communication "
                     "has a thread of its own: install one with MPI_THREAD_SERIALIZED");
}

}  // namespace

void check_mpi(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw orr::Error(ORR_FAILED, std::string(what) + ": " + text);
}

World::World(const orr_comm_boot& boot) : boot_(boot) {
  has_own_cpu_ = boot.local_size <= sysconf(_SC_NPROCESSORS_ONLN);
  heard_at_.assign(static_cast<size_t>(boot.world_size), 0);
  initialize(boot.local_size == boot.world_size);
  check_world();
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &control_), "MPI_Comm_dup");
}

void World::check_world() const {
  int rank = 0, size = 0;
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  if (rank == boot_.rank && size == boot_.world_size) return;
  const auto place = [](int r, int n) { return std::to_string(r) + " of " + std::to_string(n); };
  throw orr::Error(ORR_UNAVAILABLE, "the environment says rank " +
                                        place(boot_.rank, boot_.world_size) + ", MPI says rank " +
                                        place(rank, size) + ": start the ranks with " +
                                        start_command(boot_.world_size));
}

// All ranks say that they have nothing more to say, or the deadline passes. A process that fails
// must not wait for peers that will never come: it leaves without a word to the library, and the
// launcher ends the others.
World::~World() {
  MPI_Request parting;
  if (failing() || MPI_Ibarrier(control_, &parting) != MPI_SUCCESS) return;
  const int64_t end = shared::now_ns() + boot_.deadline_ns;
  try {
    for (int done = 0; !done; sched_yield()) {
      serve();
      std::lock_guard hold(lock_);
      check_mpi(MPI_Test(&parting, &done, MPI_STATUS_IGNORE), "MPI_Ibarrier");
      if (has_ended() || shared::now_ns() > end) return;
    }
    finalize(boot_.local_size < boot_.world_size);
  } catch (const orr::Error&) {
    // A peer went while parting: nobody is left to be told.
  }
}

}  // namespace mpi
