// SPDX-License-Identifier: Apache-2.0
//
// What goes ahead of a message: what follows, how it is called, and the message itself if it is
// short. Where all ranks can open one memory, heads go through it, a few slots for each ordered
// pair; else the library carries them. Through memory a rank may lend what a head announces: the
// peer copies from there, or to there, and gives it back.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "../shared/operation.h"

namespace mpi {

// Read by other processes: fixed-width fields only.
struct Head {
  static constexpr int64_t inline_bytes = 4 << 10;

  int64_t count;
  uint64_t number;  // of the message, from 1
  uint64_t lent;    // where its data or its room lies in the own memory of who writes this, or 0
  int32_t dtype, tag;
  shared::Label label;
  char data[inline_bytes];
};

// What has become of a loan.
enum class Back { no, used, unused };

// A rank's ends of the lanes that heads take through memory, each in order.
class Heads {
 public:
  static uint64_t bytes(int ranks);

  Heads() = default;
  // `base`: zeroed memory of so many bytes, which all ranks see.
  Heads(char* base, int rank, int ranks) : base_(base), rank_(rank), ends_(ranks) {}
  explicit operator bool() const { return base_ != nullptr; }

  // Where to write the next head to `peer`, or null while there is no room; send shows it.
  Head* place(int peer);
  uint64_t next(int peer) const { return ends_[peer].sent + 1; }
  // Whether that head may lend: `back` has told that its slot's last loan came back. A slot has
  // room for one answer.
  bool may_lend(int peer) const { return ends_[peer].loans[next(peer) % slots] == 0; }
  void send(int peer, bool lends);
  Back back(int peer, uint64_t number);
  // What was lent is not to be touched any more.
  void close();

  // The next head from `peer`, or null; good until it is taken.
  const Head* find(int peer) const;
  void take(int peer);
  bool is_closed(int peer) const;
  void give_back(int peer, uint64_t number, bool was_used);

 private:
  static constexpr uint64_t slots = 16;
  struct Lane;
  struct End {
    uint64_t sent = 0, seen = 0;  // heads to the peer, and how many it was last seen to have taken
    uint64_t taken = 0;           // heads from the peer
    uint64_t loans[slots] = {};   // that of each slot, until it is known to be back; 0: none
  };
  Lane& lane(int from, int to) const;

  char* base_ = nullptr;
  int rank_ = 0;
  std::vector<End> ends_;
};

}  // namespace mpi
