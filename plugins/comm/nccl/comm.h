// SPDX-License-Identifier: Apache-2.0
//
// A communicator of the NCCL backend. No call into NCCL blocks: the communicators are made so, and
// every call is polled up to the deadline. Two ways lead through it:
//
//   buffers of the device   enqueued on the caller's stream as they are; the work is an event of it
//   buffers of the host     pass through Staging in pieces, on our own stream, done at return
//
//   library.cpp     the two libraries;  device.cpp  the GPU, its memory
//   family.cpp      the end of the world, and what ranks tell each other past NCCL
//   sharing.cpp     whether ranks may share a GPU
//   comm.cpp        forming, splitting, parting, the one wait, whom to blame
//   collective.cpp  agreement; host buffers through NCCL's reductions or, in tree order,
//   shared/reduce enqueue.cpp     device buffers pair.cpp        messages of host buffers
//   memory.cpp      memory that NCCL's own transports use in place
#pragma once

#include <orrery/comm.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <orrery/sdk/exchange.hpp>
#include <orrery/sdk/plugin.hpp>

#include "../shared/blame.h"
#include "../shared/operation.h"
#include "../shared/waiting.h"
#include "family.h"

namespace nccl {

// What `post` has enqueued: done when the event is. The first descriptor is kept, for messages.
struct Work {
  Work(const orr_coll& c, int ranks);
  Work(const Work&) = delete;
  orr_coll coll;
  std::string name, where;
  std::vector<int64_t> counts, recv_counts;
  Event end;
};

class Comm : public orr::exchange::Messenger {
 public:
  static std::unique_ptr<Comm> form_world(const orr_comm_boot& boot);
  std::unique_ptr<Comm> split(int32_t color, int32_t key);
  ~Comm() override;

  int rank() const { return rank_; }
  int size() const { return size_; }
  uint64_t bytes_sent() const { return bytes_sent_.load(std::memory_order_relaxed); }
  Family& family() { return *family_; }

  // Null when all is done at return.
  std::unique_ptr<Work> post(const orr_coll* ops, int n);
  void wait(Work& work);
  orr_memory* allocate(uint64_t bytes);
  void free(orr_memory* memory);

  void exchange(const std::vector<orr::exchange::Message>& sends,
                const std::vector<orr::exchange::Message>& recvs) override;

 private:
  Comm(std::shared_ptr<Family> family, std::vector<int> world_of, int rank);
  void part_in_order();
  void halt();

  template <class F>
  void await(int64_t bytes, F&& done);
  struct Waited {
    std::optional<shared::Wait> wait;
    bool said = false;  // what for
  };
  void look_around(Waited& w, int64_t waited);
  void look_for_dead();
  void compare_waits(const std::vector<Awaited>& all);
  Awaited own_awaited() const;
  // Runs `body`; what it throws kills the world, and what is under way with it.
  template <class F>
  void guarded(F&& body);
  [[noreturn]] void explain(int32_t code, const std::string& text);
  // What has become of the last call: NCCL goes on with it after it has returned, and says success
  // before that or while it is under way.
  ncclResult_t state() const;
  // Ends a call into NCCL: returns when the communicator is idle again.
  void settle(ncclResult_t code, const char* what);
  // The communicator there, once a thread of NCCL's has written it.
  ncclComm_t await_pointer(ncclComm_t& place);
  template <class F>
  void issue(const char* what, F&& calls);

  // Host buffers.
  void empty(Slot& slot);
  void flush();
  void upload(CUdeviceptr to, const std::vector<orr::exchange::Message>& from);
  void download(const std::vector<orr::exchange::Message>& to, CUdeviceptr from);
  void gather(const void* mine, int64_t bytes, void* all);
  void ship(const std::vector<orr::exchange::Message>& sends,
            const std::vector<orr::exchange::Message>& recvs);
  template <class F>
  void in_chunks(const char* what, const char* from, char* to, int64_t count, int64_t unit,
                 F&& call);
  void agree(const orr_coll& c);
  void collective(const orr_coll& c);
  void broadcast(const orr_coll& c);
  void all_reduce(const orr_coll& c);
  void reduce_to(const orr_coll& c, int root, int64_t first, int64_t count);
  void transfer(const std::vector<orr_coll>& ops);

  // Device buffers.
  void check_device(const orr_coll& c, const orr_coll& first) const;
  std::unique_ptr<Work> enqueue(const std::vector<orr_coll>& ops);
  void enqueue_one(const orr_coll& c);
  void enqueue_reduce_scatter(const orr_coll& c);
  void enqueue_all_gather(const orr_coll& c);
  void enqueue_all_to_all(const orr_coll& c);

  std::shared_ptr<Family> family_;
  ncclComm_t comm_ = nullptr;
  ncclComm_t made_ = nullptr;  // what a call under way has made: a thread of NCCL's writes it
  std::vector<int> world_of_;
  int rank_, size_;
  uint64_t id_;            // equal on all its ranks
  uint64_t children_ = 0;  // split off so far
  std::atomic<uint64_t> bytes_sent_{0};

  const orr_coll* current_ = nullptr;
};

ncclDataType_t type_of(int32_t dtype);
ncclRedOp_t operation_of(int32_t redop);

template <class F>
void Comm::await(int64_t bytes, F&& done) {
  Waited w;
  shared::wait_until(family_->has_own_cpu(), bytes, done,
                     [&](int64_t waited) { look_around(w, waited); });
  if (w.said) family_->say({});
}

template <class F>
void Comm::guarded(F&& body) {
  try {
    body();
    check_nccl(state(), "asynchronous error");
  } catch (const orr::Error& e) {
    explain(e.code, e.what());
  }
  current_ = nullptr;
}

// The group is closed whatever happens: it is the thread's, not ours.
template <class F>
void Comm::issue(const char* what, F&& calls) {
  check_nccl(library().ncclGroupStart(), "ncclGroupStart");
  try {
    calls();
  } catch (const orr::Error&) {
    library().ncclGroupEnd();
    throw;
  }
  settle(library().ncclGroupEnd(), what);
}

}  // namespace nccl
