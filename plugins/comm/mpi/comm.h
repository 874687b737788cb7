// SPDX-License-Identifier: Apache-2.0
//
// A communicator of the MPI backend. Operations run to completion in `run`, on the caller's thread,
// by non-blocking MPI calls that are tested until they are done, so that a deadline can pass and a
// dead rank be named. What only moves is MPI's own collective; what adds is messages and folds in
// the order that comm.h asks for.
//
//   world.cpp       the library;  control.cpp  the control channel
//   comm.cpp        forming and splitting, the one wait, whom to blame
//   collective.cpp  agreement, collectives, the messages of sums
//   message.cpp     send and recv
#pragma once

#include <orrery/comm.h>

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include <orrery/sdk/exchange.hpp>

#include "world.h"

namespace mpi {

class Comm : public orr::exchange::Messenger {
 public:
  static std::unique_ptr<Comm> form_world(const orr_comm_boot& boot);
  std::unique_ptr<Comm> split(int32_t color, int32_t key);
  ~Comm() override;

  int rank() const { return rank_; }
  int size() const { return size_; }
  uint64_t bytes_sent() const { return bytes_sent_.load(std::memory_order_relaxed); }
  World& world() { return *world_; }

  void run(const orr_coll* ops, int n);
  void exchange(const std::vector<orr::exchange::Message>& sends,
                const std::vector<orr::exchange::Message>& recvs) override;

 private:
  using Requests = std::vector<MPI_Request>;
  struct Transfer;

  Comm(std::shared_ptr<World> world, MPI_Comm comm);

  // Returns when done() says true. `bytes` is what has to move until then.
  void await(int64_t bytes, const std::function<bool()>& done);
  bool test(MPI_Request* requests, size_t n);
  // Calls start(requests), which begins them and says how many bytes that is; returns when they are
  // done.
  template <class F>
  void complete(F&& start) {
    Requests requests;
    std::unique_lock hold(world_->lock());
    const int64_t bytes = start(requests);
    hold.unlock();
    await(bytes, [&] { return test(requests.data(), requests.size()); });
  }
  // Every rank's value, by rank.
  template <class T>
  std::vector<T> gather(const T& mine) {
    std::vector<T> all(size_);
    complete([&](Requests& one) {
      check_mpi(MPI_Iallgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE,
                               comm_, &one.emplace_back()),
                "MPI_Iallgather");
      return 0;
    });
    return all;
  }

  void agree(const orr_coll& c);
  void collective(const orr_coll& c);
  void broadcast(const orr_coll& c);
  void all_gather(const orr_coll& c);

  // Starts a message's pieces; returns its bytes.
  int64_t move(bool sends, char* data, int64_t bytes, int peer, int tag, Requests& requests);
  void transfer(const orr_coll* ops, int n);
  void begin(Transfer& t);
  void find_source(Transfer& t);
  void check_head(const Transfer& t) const;
  bool advance(Transfer& t);

  std::shared_ptr<World> world_;
  MPI_Comm comm_;
  int rank_ = 0, size_ = 0;
  std::vector<int> world_of_;
  std::atomic<uint64_t> bytes_sent_{0};
  const orr_coll* current_ = nullptr;
};

// The library's tags. Each tag of a send or receive has one for its head and one for its data.
constexpr int tag_of_collectives = 0;
constexpr int tag_of_head(int tag) { return 2 * tag + 1; }
constexpr int tag_of_data(int tag) { return 2 * tag + 2; }

}  // namespace mpi
