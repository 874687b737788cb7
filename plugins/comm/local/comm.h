// SPDX-License-Identifier: Apache-2.0
//
// A communicator of ranks on one host:
//
//   comm.cpp    being there, registered memory
//   small.cpp   steps, agreement on the operation, and small operands, which travel with it
//   reduce.cpp  large sums;  reach.cpp  memory of peers, read and written in place
//   ring.cpp    messages, of which everything else is made, and sleeping until something comes
//
// Steps. A rank publishes step s when its data of s is readable; awaiting s means that all ranks
// have published it. Every collective is a fixed number of such steps on every rank, so a buffer
// that was read in step s may be rewritten once step s+1 has been awaited.
#pragma once

#include <cstdlib>

#include "group.h"

namespace local {

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
  // ring.cpp
  uint64_t write(int peer, const iovec* from, int n) override;
  uint64_t read(int peer, void* to, uint64_t bytes) override;
  Place place_of_message(const char* data, uint64_t bytes) const override;
  void fetch_message(int peer, const Place& place, void* to, uint64_t bytes) override;
  uint64_t fetched(int peer) const override;
  bool spins() const override { return family_->spin; }
  uint64_t pulse_of(int r) const override;
  void show_pulse() override;
  void ring_bells() override;
  void sleep(const Missing& missing, int64_t ns) override;

  // small.cpp
  void collective(const orr_coll& c) override;
  void step(uint64_t fingerprint, bool in_place, const void* data, uint64_t bytes);
  void meet(const orr_coll& c, bool in_place, const void* data, uint64_t bytes);
  [[noreturn]] void tell_apart(const orr_coll& c);
  int ranks_in_place() const;
  void move(const orr_coll& c, uint64_t most);
  void copy_from_all(const orr_coll& c, const char* send);
  void fold_brief(const orr_coll& c);
  Notice& notice(int r) const { return segment_.notice(r, step_); }

  // reach.cpp
  Place place_of(const void* data, bool attach) const;
  char* peer_address(const Place& place, int peer) const;
  using Copy = decltype(&process_vm_readv);  // to here, or process_vm_writev, from here
  bool copy_own(Copy copy, int peer, uint64_t address, void* here, uint64_t bytes) const;
  const char* reach(const Place& place, int peer, uint64_t bytes, char* scratch);
  void fetch(const Place& place, int peer, void* to, uint64_t bytes);
  void store(const Place& place, int peer, const void* from, uint64_t bytes);
  [[noreturn]] void blame_copy(const char* what, int peer, uint64_t bytes);

  // reduce.cpp
  struct Reduction;
  void reduce(const orr_coll& c);
  void reduce_small(Reduction& r);
  void reach_operands(Reduction& r, int64_t at, int64_t elements);
  void reduce_in_place(Reduction& r);

  // The streams to a peer and from it, in parts.
  struct Stream {
    uint64_t sent = 0, seen_taken = 0;  // that the peer was last seen to have taken
    uint64_t taken = 0;
    uint64_t got = 0;  // bytes of the part behind these
  };

  Segment segment_;
  uint64_t allocations_ = 0, step_ = 0;
  std::vector<Stream> streams_;                                               // by peer
  std::unique_ptr<char, decltype(&std::free)> scratch_{nullptr, &std::free};  // for peers' operands
};

}  // namespace local
