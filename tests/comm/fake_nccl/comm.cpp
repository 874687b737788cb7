// SPDX-License-Identifier: Apache-2.0
#include "comm.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>

#include "group.h"
#include "memory.h"
#include "misuse.h"

namespace {

// All that ever were: what has ended stays, so that its later use has a name.
std::mutex& known_mutex() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}
std::set<const ncclComm*>& known() {
  static std::set<const ncclComm*>& all = *new std::set<const ncclComm*>;
  return all;
}

// What a call returns that is not done.
ncclResult_t under_way() { return fake::dice(2) == 0 ? ncclSuccess : ncclInProgress; }

void pause_some_time() { usleep(static_cast<useconds_t>(fake::dice(500))); }

// FAKE_NCCL_FAIL=R:N: the N-th launch of rank R fails some time after it has been posted.
bool is_to_fail(const ncclComm& comm) {
  const char* named = std::getenv("FAKE_NCCL_FAIL");
  int rank = 0, launch = 0;
  return named && std::sscanf(named, "%d:%d", &rank, &launch) == 2 && comm.rank == rank &&
         comm.posted == static_cast<uint64_t>(launch);
}

}  // namespace

ncclComm::ncclComm(const std::string& n, int r, int rs, bool b)
    : name(n), rank(r), ranks(rs), device(fake::current_device()), blocking(b) {
  std::lock_guard lock(known_mutex());
  known().insert(this);
}

void ncclComm::check_known(const ncclComm* comm, const char* who) {
  std::lock_guard lock(known_mutex());
  if (!known().count(comm)) fake::misuse("unknown communicator", who);
}

Entry::Entry(ncclComm* comm, const char* who, Need need) : comm_(comm) {
  ncclComm::check_known(comm, who);
  const std::string at = std::string(who) + " on rank " + std::to_string(comm->rank);
  if (fake::in_callback) fake::misuse("call from a stream callback", at);
  if (comm->state == ncclComm::aborted) fake::misuse("use after abort", at);
  if (comm->state == ncclComm::destroyed) fake::misuse("use after destroy", at);
  if (comm->state == ncclComm::revoked && need == idle) fake::misuse("use after revoke", at);
  const std::thread::id me = std::this_thread::get_id();
  std::thread::id nobody{};
  const std::thread::id open = comm->grouped;
  if (!comm->inside.compare_exchange_strong(nobody, me) ||
      (open != std::thread::id{} && open != me))
    fake::misuse("two threads issuing on one communicator", at);
  if (need == idle && comm->result == ncclInProgress)
    fake::misuse("call before the last one is done", at);
  if (fake::dice(8) == 0) std::this_thread::yield();
}

Entry::~Entry() { comm_->inside = std::thread::id{}; }

void ncclComm::rest() {
  if (background.joinable()) background.join();
  for (int turns = 0; done < posted; ++turns) usleep(20);
}

void ncclComm::end(State last) {
  rest();
  for (auto& [window, place] : windows) fake::memory::add_window(place, -1);
  windows.clear();
  state = last;
  clique.reset();
}

ncclResult_t ncclComm::take_time(std::function<ncclResult_t()> body, std::function<void()> give) {
  if (blocking) {
    const ncclResult_t answer = body();
    if (give) give();
    return answer;
  }
  if (background.joinable()) background.join();
  result = ncclInProgress;
  background = std::thread([this, body = std::move(body), give = std::move(give)] {
    pause_some_time();
    result = body();
    if (!give) return;
    pause_some_time();
    give();
  });
  return under_way();
}

// As when a proxy of the real library has lost its peer: the kernel on the stream never ends, and
// the error shows after some questions.
ncclResult_t ncclComm::fail_late(fake::Stream& stream) {
  stream.enqueue("a launch that fails", {}, [this] {
    while (!stop) std::this_thread::yield();
    ++done;
  });
  if (!failed) {
    failed = true;
    polls = 1 + fake::dice(6);
    postponed = [] {
      fake::set_last_error("the fake was told to fail");
      return ncclSystemError;
    };
  }
  return under_way();
}

ncclResult_t ncclComm::launch(std::vector<Call> calls, bool alone) {
  ++posted;
  if (failed || is_to_fail(*this)) return fail_late(*calls.front().stream);
  if (blocking || fake::dice(2) == 0) {
    enqueue(std::move(calls), alone);
    return ncclSuccess;
  }
  result = ncclInProgress;
  polls = 1 + fake::dice(4);
  held = true;
  postponed = [this, calls = std::move(calls), alone] {
    held = false;
    enqueue(calls, alone);
    return ncclSuccess;
  };
  return under_way();
}

// On the stream of the first call: where others are named, they wait for this one and it for them.
void ncclComm::enqueue(std::vector<Call> calls, bool alone) {
  const uint64_t ticket = posted;
  std::vector<fake::Range> ranges;
  for (const Call& c : calls) {
    if (c.send) ranges.push_back({c.send, c.send_bytes, false});
    if (c.recv) ranges.push_back({c.recv, c.recv_bytes, true});
  }
  fake::Stream* stream = calls.front().stream;
  for (const Call& c : calls)
    if (c.stream != stream) fake::misuse("one group on several streams", c.card.name);
  const std::string what = calls.front().card.name;
  stream->enqueue(what, ranges, [this, calls = std::move(calls), alone, ticket]() mutable {
    while (done + 1 < ticket && !stop) std::this_thread::yield();
    execute(calls, alone);
    ++done;
  });
}

void ncclComm::execute(std::vector<Call>& calls, bool alone) {
  std::vector<fake::Transfer> messages;
  for (const Call& c : calls) {
    if (c.message)
      messages.push_back(
          {c.peer, c.out, true, c.out ? c.send : c.recv, c.out ? c.send_bytes : c.recv_bytes});
    else if (stop || clique->agree(c.card).empty() || !fake::run_collective(*clique, c))
      return;
  }
  if (!messages.empty() && !stop) clique->move(messages, alone);
}
