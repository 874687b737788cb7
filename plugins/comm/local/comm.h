// SPDX-License-Identifier: Apache-2.0
//
// A communicator of ranks on one host. Operations run to completion in `run`, on the caller's
// thread:
//
//   comm.cpp      being there, registered memory
//   waiting.cpp   the one wait loop
//   exchange.cpp  posting: agreement on the operation, then the engines below
//   brief.cpp     operations of a few bytes, which travel with the agreement
//   reach.cpp     what lies in registered memory, or is read from a peer's own
//   reduce.cpp    everything that adds;  move.cpp  everything that copies
//   pair.cpp      send and recv
//
// Steps. A rank publishes step s when its data of s is readable; awaiting s means that all ranks
// have published it. Every collective is a fixed number of such steps on every rank, so a buffer
// that was read in step s may be rewritten once step s+1 has been awaited.
#pragma once

#include <orrery/comm.h>
#include <sys/uio.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "family.h"
#include "pair.h"

namespace local {

// Ranks a wait is for: the first rank >= from that is still awaited, or -1.
using Missing = std::function<int(int from)>;

class Comm : public Group {
 public:
  // Collective; these world ranks are on one host, and have opened the segment.
  Comm(std::shared_ptr<Family> family, Segment segment, std::vector<int> world_of, int rank,
       uint64_t id);
  // Whether each rank can have one.
  bool has_own_cpus() const;
  // Whether the ranks may read and write each other's own memory. Collective.
  bool can_attach();

  orr_memory* allocate(uint64_t bytes, bool shared) override;

 private:
  // waiting.cpp
  template <class F>
  bool spin(F&& missing, bool heard) const;
  template <class F>
  void await(F&& missing);
  bool all_far(const Missing& missing, int first) const;
  void await_slowly(const Missing& missing);
  void blame_dead(const Missing& missing, int first);
  void sleep(const Missing& missing, int64_t ns);
  void ring_bells();
  void show_pulse();
  void publish();
  void await_step();
  std::string here() const { return shared::in_operation(current_); }

  // exchange.cpp
  void collective(const orr_coll& c) override;
  void announce(const orr_coll& c, Path path, uint64_t most, Place send, Place recv);
  void meet(const orr_coll& c, const void* data, uint64_t bytes);
  [[noreturn]] void tell_apart(const orr_coll& c);
  const Post& post_of(int r) const { return segment_.member(r).posts[step_ & 1]; }

  // brief.cpp
  static bool is_brief(const orr_coll& c, int ranks);
  Notice& notice(int r) const { return segment_.notice(r, step_); }
  void brief(const orr_coll& c);
  void fold_brief(const orr_coll& c);

  // reach.cpp
  Place place_of(const orr_buffer& b) const;
  Place source_of(const orr_buffer& b, const void* data) const;
  char* peer_address(const Place& place, int peer) const;
  using Copy = decltype(&process_vm_readv);  // to here, or process_vm_writev, from here
  bool copy_own(Copy copy, int peer, uint64_t address, void* here, uint64_t bytes) const;
  void fetch(void* to, const Place& place, int peer, uint64_t bytes);
  void store(const Place& place, int peer, const void* from, uint64_t bytes);
  int64_t choose_piece(int peer, uint64_t address) const;
  [[noreturn]] void blame_copy(const char* what, int peer, uint64_t bytes);

  // reduce.cpp
  struct Reduction;
  void reduce(const orr_coll& c);
  void reduce_small(Reduction& r);
  void reduce_direct(Reduction& r);
  void reduce_attached(Reduction& r);
  void reduce_staged(Reduction& r);

  // move.cpp
  struct Movement;
  void move(const orr_coll& c);
  void move_staged(Movement& m, int64_t longest);
  void check_piece_sizes(const orr_coll& c);

  // pair.cpp
  void transfer(const orr_coll* ops, int n) override;
  int awaited_peer(std::vector<Transfer>& all, int from);
  bool progress(std::vector<Transfer>& all);
  bool push(Transfer& t);
  bool pull(int from, std::vector<Transfer>& all);
  bool take_stray(Transfer& t);
  bool begin_message(int from, std::vector<Transfer>& all);
  bool receive(int from);
  Place place_of_message(const orr_coll& c) const;
  bool send_part(Transfer& t);
  const PartHeader* next_part(int from) const;
  void refuse(const Transfer& t, const MessageHeader& e, const shared::Label& label);

  Segment segment_;
  std::vector<bool> far_;  // ranks that share no CPU with this one
  uint64_t allocations_ = 0;
  uint64_t step_ = 0, turn_ = 0;     // turn: chunks ever staged
  std::vector<Transfer> transfers_;  // of the present group
  std::vector<Inbound> inbound_;
  std::vector<Outbound> outbound_;
  Pages scratch_;  // for pieces of peers' operands
};

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Whether nobody is awaited who needs this CPU.
inline bool Comm::all_far(const Missing& missing, int first) const {
  for (int r = first; r >= 0; r = missing(r + 1))
    if (!far_[r]) return false;
  return true;
}

// Looks again before the CPU is given away: for some 25 us where every rank has its own, which it
// may share with its compute thread. Where ranks share CPUs, for some 1.5 us, about a switch of
// ranks, when those of this CPU are `heard`: they have come to the collective, or have just had it.
template <class F>
bool Comm::spin(F&& missing, bool heard) const {
  const int looks = family_->spin ? 2000 : heard ? 50 : 0;
  for (int i = 0;; ++i) {
    const int first = missing(0);
    if (first < 0) return true;
    if (i == looks || !(family_->spin || all_far(missing, first))) return false;
    relax();
  }
}

template <class F>
void Comm::await(F&& missing) {
  if (!spin(missing, true)) await_slowly(missing);
}

}  // namespace local
