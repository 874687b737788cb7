// SPDX-License-Identifier: Apache-2.0
#include "family.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <exception>

#include <orrery/sdk/plugin.hpp>

#include "../shared/operation.h"
#include "finalize.h"
#include "launcher.h"
#include "names.h"

namespace mpi {
namespace {

enum Kind : int32_t { are_you_there = 1, i_wait_too = 2, poisoned = 3 };

constexpr int64_t ms = 1000000;

// Set once the process runs its exit handlers: whoever wanted to part in order has done so before.
std::atomic<bool> exiting{false};

// MPI is initialised once in a process, and there is no second time.
void initialize(bool one_host) {
  int before = 0;
  MPI_Initialized(&before);
  if (before) throw orr::Error(ORR_INVALID, "comm 'mpi' forms one world in the life of a process");
  spare_names(one_host);
  int provided = 0;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  std::atexit([] { exiting = true; });
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

Family::Family(const orr_comm_boot& boot)
    : boot_(boot), job_(boot.job ? boot.job : ""), answered_(boot.world_size, false) {
  boot_.job = job_.c_str();
  has_own_cpu_ = boot.local_size <= sysconf(_SC_NPROCESSORS_ONLN);
  initialize(boot.local_size == boot.world_size);
  check_world();
  void* bound = nullptr;
  int found = 0;
  check_mpi(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &found), "MPI_TAG_UB");
  largest_tag_ = found ? *static_cast<int*>(bound) : 32767;
  open_notes();
}

void Family::check_world() {
  int rank = 0, size = 0;
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  if (rank == boot_.rank && size == boot_.world_size) return;
  throw orr::Error(ORR_UNAVAILABLE, "the environment says rank " + std::to_string(boot_.rank) +
                                        " of " + std::to_string(boot_.world_size) +
                                        ", MPI says rank " + std::to_string(rank) + " of " +
                                        std::to_string(size) + ": start the ranks with " +
                                        start_command(boot_.world_size));
}

void Family::open_notes() {
  MPI_Request forming;
  check_mpi(MPI_Comm_idup(MPI_COMM_WORLD, &notes_, &forming), "MPI_Comm_idup");
  const int64_t end = shared::now_ns() + boot_.deadline_ns;
  for (int done = 0; !done; sched_yield()) {
    check_mpi(MPI_Test(&forming, &done, MPI_STATUS_IGNORE), "MPI_Comm_idup");
    if (!done && shared::now_ns() > end)
      throw orr::Error(ORR_DEADLINE, "the ranks have not met for " +
                                         shared::seconds(boot_.deadline_ns) +
                                         " while forming communicators");
  }
  await_notes();
}

void Family::await_notes() {
  check_mpi(MPI_Irecv(&incoming_, sizeof incoming_, MPI_BYTE, MPI_ANY_SOURCE, 0, notes_, &awaited_),
            "MPI_Irecv");
}

void Family::tell(int rank, int32_t kind, int32_t code, const std::string& text) {
  Outgoing& o = outgoing_.emplace_back();
  o.note = {kind, code, {}};
  orr::copy_text(o.note.text, text);
  check_mpi(MPI_Isend(&o.note, sizeof o.note, MPI_BYTE, rank, 0, notes_, &o.request), "MPI_Isend");
}

// Whether all notes have left.
bool Family::told() {
  outgoing_.remove_if([](Outgoing& o) {
    int done = 0;
    MPI_Test(&o.request, &done, MPI_STATUS_IGNORE);
    return done != 0;
  });
  return outgoing_.empty();
}

void Family::listen() {
  told();
  for (int came = 0;;) {
    MPI_Status status;
    check_mpi(MPI_Test(&awaited_, &came, &status), "MPI_Test");
    if (!came) return;
    if (incoming_.kind == are_you_there) tell(status.MPI_SOURCE, i_wait_too, 0, "");
    if (incoming_.kind == i_wait_too) answered_[status.MPI_SOURCE] = true;
    if (incoming_.kind == poisoned) set_poison(incoming_.code, incoming_.text);
    await_notes();
  }
}

void Family::ask_all() {
  answered_.assign(size(), false);
  answered_[rank()] = true;
  for (int r = 0; r < size(); ++r)
    if (r != rank()) tell(r, are_you_there, 0, "");
}

// A rank that freezes inside of the library's queue of another mutes that one, too.
std::vector<int> Family::silent() const {
  std::vector<int> ranks;
  for (int r = 0; r < size(); ++r)
    if (!answered_[r]) ranks.push_back(r);
  return ranks;
}

bool Family::set_poison(int32_t code, const std::string& text) {
  std::lock_guard lock(poison_mutex_);
  if (poisoned_) return false;
  code_ = code;
  text_ = text;
  poisoned_ = true;
  return true;
}

// The notes get a moment to leave: who reads them ends by them instead of by his deadline.
void Family::poison(int32_t code, const std::string& text) {
  if (!set_poison(code, text)) return;
  const int64_t end = shared::now_ns() + 200 * ms;
  {
    std::lock_guard lock(inside_);
    for (int r = 0; r < size(); ++r)
      if (r != rank()) tell(r, poisoned, code, text);
  }
  for (bool done = false; !done && shared::now_ns() < end; sched_yield()) {
    std::lock_guard lock(inside_);
    done = told();
  }
}

void Family::check_alive() const {
  if (!poisoned_) return;
  std::lock_guard lock(poison_mutex_);
  throw orr::Error(code_, text_);
}

bool Family::failing() const { return poisoned_ || exiting || std::uncaught_exceptions() > 0; }

void Family::die(int32_t code, const std::string& text) {
  poison(code, text);
  check_alive();
  throw orr::Error(code, text);
}

// All ranks are here and have nothing more to say, or the deadline has passed.
bool Family::part_in_order() {
  if (notes_ == MPI_COMM_NULL || failing()) return false;
  MPI_Request parting;
  if (MPI_Ibarrier(notes_, &parting) != MPI_SUCCESS) return false;
  const int64_t end = shared::now_ns() + boot_.deadline_ns;
  int done = 0;
  while (!done && !poisoned_ && shared::now_ns() < end) {
    std::lock_guard lock(inside_);
    if (MPI_Test(&parting, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
    listen();
    sched_yield();
  }
  return done != 0 && !poisoned_;
}

// A process that fails must not wait for peers that will never come: it leaves without a word to
// the library, and the launcher ends the others.
Family::~Family() {
  try {
    if (!part_in_order()) return;
    MPI_Cancel(&awaited_);
    MPI_Wait(&awaited_, MPI_STATUS_IGNORE);
    finalize(boot_.local_size < boot_.world_size);
  } catch (const orr::Error&) {
    // A peer went while parting: nobody is left to be told.
  }
}

}  // namespace mpi
