// SPDX-License-Identifier: Apache-2.0
//
// The control channel. A message's tag says what it is; the end of the world brings its code there
// and its reason as data.
#include "../shared/operation.h"
#include "world.h"

namespace mpi {
namespace {

enum Tag : int { do_you_wait = 0, i_wait = 1, ended = 2 };  // ended + code
constexpr size_t most_text = 1024;
constexpr int64_t time_to_tell_ns = 200'000'000;

}  // namespace

// Without data, so that nothing has to outlive the call. REQUIRES: lock.
void World::send_signal(int rank, int kind) {
  MPI_Request request;
  check_mpi(MPI_Isend(nullptr, 0, MPI_BYTE, rank, kind, control_, &request), "MPI_Isend");
  MPI_Request_free(&request);
}

void World::serve() {
  std::lock_guard hold(lock_);
  for (;;) {
    int came = 0, bytes = 0;
    MPI_Status status;
    check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, control_, &came, &status), "MPI_Iprobe");
    if (!came) return;
    char text[most_text];
    const int from = status.MPI_SOURCE, tag = status.MPI_TAG;
    check_mpi(MPI_Recv(text, most_text, MPI_BYTE, from, tag, control_, &status), "MPI_Recv");
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    if (tag == do_you_wait) send_signal(from, i_wait);
    if (tag == i_wait) heard_at_[from] = shared::now_ns();
    if (tag >= ended) end(tag - ended, std::string(text, bytes));
  }
}

void World::ask_all() {
  std::lock_guard hold(lock_);
  for (int r = 0; r < boot_.world_size; ++r)
    if (r != boot_.rank) send_signal(r, do_you_wait);
}

// A rank that freezes inside of the library's queue of another mutes that one, too.
std::vector<int> World::silent_since(int64_t time_ns) {
  std::lock_guard hold(lock_);
  std::vector<int> ranks;
  for (int r = 0; r < boot_.world_size; ++r)
    if (r != boot_.rank && heard_at_[r] < time_ns) ranks.push_back(r);
  return ranks;
}

// The messages get a moment to leave: who reads them ends by them instead of by his deadline. What
// has not left then is never freed: the process ends.
void World::tell_peers(int32_t code, const std::string& reason) {
  const auto& text = *new std::string(reason.substr(0, most_text));
  auto& sends = *new std::vector<MPI_Request>(heard_at_.size(), MPI_REQUEST_NULL);
  const int64_t until = shared::now_ns() + time_to_tell_ns;
  for (int r = 0, done = 0; !done && shared::now_ns() < until; sched_yield()) {
    std::lock_guard hold(lock_);
    for (; r < boot_.world_size; ++r)
      if (r != boot_.rank)
        MPI_Isend(text.data(), static_cast<int>(text.size()), MPI_BYTE, r, ended + code, control_,
                  &sends[r]);
    MPI_Testall(boot_.world_size, sends.data(), &done, MPI_STATUSES_IGNORE);
  }
}

}  // namespace mpi
