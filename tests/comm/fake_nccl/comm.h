// SPDX-License-Identifier: Apache-2.0
//
// A communicator of the fake. Calls on one that does not block are under way until it has been
// asked some times: nothing that was posted runs before. They return ncclInProgress or ncclSuccess,
// which says nothing, and what they write is written by another thread.
#pragma once

#include <nccl.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "clique.h"
#include "stream.h"

// One call between the begin and the end of a group.
struct Call {
  ncclComm* comm;
  fake::Card card;  // of a collective; its name alone, of a message
  bool message, out;
  int peer;
  char *send, *recv;
  uint64_t send_bytes, recv_bytes, unit;
  fake::Stream* stream;
};

struct ncclComm {
  enum State { forming, usable, finalized, revoked, aborted, destroyed };

  ncclComm(const std::string& name, int rank, int ranks, bool blocking);
  static void check_known(const ncclComm* comm, const char* who);

  std::string name;
  int rank, ranks, device;
  bool blocking;
  std::atomic<State> state{forming};
  std::atomic<bool> stop{false};
  std::unique_ptr<fake::Clique> clique;

  std::atomic<int> result{ncclSuccess};     // an ncclResult_t: what asking gives
  std::function<ncclResult_t()> postponed;  // its answer once it has been asked `polls` times
  uint64_t polls = 0;
  bool held = false;       // what is postponed is a launch
  bool failed = false;     // nothing that is launched is done any more
  std::thread background;  // of what takes peers

  std::atomic<std::thread::id> inside{};   // the thread that is in a call
  std::atomic<std::thread::id> grouped{};  // the thread in whose open group calls of this are
  std::atomic<uint64_t> posted{0}, done{0};
  uint64_t splits = 0;
  std::map<void*, void*> windows;  // by handle: memory

  // Ends what others would have to end. REQUIRES: `stop` is set where peers may be gone.
  void rest();
  // The same, and lets go of all it has.
  void end(State last);
  // Runs now, or beside the caller until it has an answer; `give` follows some time after that.
  ncclResult_t take_time(std::function<ncclResult_t()> body, std::function<void()> give = {});
  // Enqueues one group's calls: collectives in order, then all messages together.
  ncclResult_t launch(std::vector<Call> calls, bool alone);

 private:
  ncclResult_t fail_late(fake::Stream& stream);
  void enqueue(std::vector<Call> calls, bool alone);
  void execute(std::vector<Call>& calls, bool alone);
};

// What every function on a communicator checks while it runs.
class Entry {
 public:
  enum Need { idle, any };  // idle: an earlier call may not be under way
  Entry(ncclComm* comm, const char* who, Need need = idle);
  ~Entry();
  Entry(const Entry&) = delete;

 private:
  ncclComm* comm_;
};

namespace fake {
// What a collective does with the bytes of one communicator. False when stopped.
bool run_collective(Clique& clique, const Call& call);
void set_last_error(const std::string& text);
}  // namespace fake
