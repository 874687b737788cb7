// SPDX-License-Identifier: Apache-2.0
//
// A communicator of the MPI backend. Operations run to completion in `run`, on the caller's thread,
// by non-blocking calls that are polled. MPI carries bytes and nothing else; on one host ranks take
// messages from each other's memory instead:
//
//   family.cpp      the library, poison, notes
//   comm.cpp        forming and splitting, the one wait loop, whom to blame
//   agreement.cpp   whether all ranks post the same
//   collective.cpp  what moves goes through the library or messages, what adds through messages
//   pair.cpp        messages;  heads.cpp  what goes ahead of one;  body.cpp  what it brings
#pragma once

#include <orrery/comm.h>

#include <atomic>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <orrery/sdk/exchange.hpp>
#include <orrery/sdk/plugin.hpp>

#include "../shared/mapping.h"
#include "../shared/operation.h"
#include "family.h"
#include "heads.h"
#include "pair.h"

namespace mpi {

class Comm : public orr::exchange::Messenger {
 public:
  static std::unique_ptr<Comm> form_world(const orr_comm_boot& boot);
  std::unique_ptr<Comm> split(int32_t color, int32_t key);
  ~Comm() override;

  int rank() const { return rank_; }
  int size() const { return size_; }
  uint64_t bytes_sent() const { return bytes_sent_.load(std::memory_order_relaxed); }
  Family& family() { return *family_; }

  void run(const orr_coll* ops, int n);
  void exchange(const std::vector<orr::exchange::Message>& sends,
                const std::vector<orr::exchange::Message>& recvs) override;

 private:
  Comm(std::shared_ptr<Family> family, MPI_Comm parent);

  // Polls until done() says true. `bytes` is what must move until then.
  template <class F>
  void await(int64_t bytes, F&& done);
  void finish(std::vector<MPI_Request>& requests, int64_t bytes);
  // start(requests) begins what the library does by itself, with the agreement on it beside.
  template <class F>
  void by_library(int64_t bytes, F&& start);
  bool test(MPI_Request* requests, size_t n);
  // asked_at: when all were asked; negative: they are to be asked at -asked_at.
  void look_around(int64_t waited, int64_t deadline, int64_t& asked_at);
  void blame(int64_t waited);

  void check(const orr_coll& c) const;
  void collective(const orr_coll& c);

  struct Notice;
  Notice& notice(int rank) const;
  template <class T>
  std::vector<T> gather(const T& own);
  template <class F>
  void open_common(F&& open);
  void introduce();
  void begin_agreement(const orr_coll& c);
  void send_words();
  bool words_have_come();
  void move_on(std::vector<MPI_Request>& moving, std::optional<orr::Error>& failure);
  // `beside`: what this rank has begun to move.
  void end_agreement(std::vector<MPI_Request>& beside);

  void broadcast(const orr_coll& c);
  void all_gather(const orr_coll& c);
  void swap_parts(const orr_coll& c);
  void all_to_all(const orr_coll& c);
  void reduce(const orr_coll& c);

  void transfer(const orr_coll* ops, int n);
  void add(const orr_coll& c, bool sends, int32_t tag, const orr::exchange::Message& m);
  void begin_all();
  void finish_all();
  int64_t write_head(const Transfer& t, Head& h);
  void send_head(Transfer& t);
  void await_head(Transfer& t);
  void open_head(Transfer& t, int source, const Head& head);
  void deliver(int source);
  void send_heads();
  void take_heads();
  void test_head(Transfer& t);
  void take_early(Transfer& t);
  void move_body(const Transfer& t);
  bool copy(Transfer& t);
  bool body_done(Transfer& t);
  Transfer* advance_all();

  std::shared_ptr<Family> family_;
  MPI_Comm main_ =
      MPI_COMM_NULL;  // collectives, exchanges (tag 0), bodies of messages (tags from 1)
  MPI_Comm beside_ = MPI_COMM_NULL;  // heads of messages, by the user's tags; agreement
  int rank_ = 0, size_ = 0;
  std::vector<int> world_of_;
  std::vector<int> processes_;  // of the ranks, where each may reach the others' own memory
  std::vector<uint64_t> sent_;  // messages whose heads the library carries, to each peer
  std::atomic<uint64_t> bytes_sent_{0};
  const orr_coll* current_ = nullptr;
  bool agreeing_ = false;               // on the collective under way
  std::vector<uint64_t> fingerprints_;  // of the ranks
  shared::Mapping common_;              // notices and heads; where there is none, both are messages
  uint64_t step_ = 0;                   // collectives so far
  std::vector<MPI_Request> telling_;
  Heads heads_;
  std::list<Early> early_;
  // Of what is under way; kept, for memory of the heap costs short operations much.
  std::vector<MPI_Request> requests_;
  std::vector<Transfer> transfers_;
  std::vector<orr::exchange::Message> sends_, recvs_;
};

// Up to so many ranks tell each other directly: the library's trees pay on more.
constexpr int few_ranks = 8;
// Tags on main_.
enum Tag : int {
  tag_of_exchange = 0,
  last_tag_of_bodies = 32000,
  tag_of_agreement
};  // every library has as many

// Above this many bytes a message travels in pieces: MPI counts in ints.
constexpr int64_t most_bytes = int64_t{1} << 30;
constexpr int pieces_of(int64_t bytes) {
  return static_cast<int>((bytes + most_bytes - 1) / most_bytes);
}

}  // namespace mpi
