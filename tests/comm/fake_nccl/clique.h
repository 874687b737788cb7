// SPDX-License-Identifier: Apache-2.0
//
// The ranks of one communicator, processes that share a page of memory: what each does next, and a
// ring of bytes from each to each. What is long the receiver reads where it lies.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace fake {

constexpr int max_ranks = 8;

// What all ranks must do alike in one position of their order.
struct Card {
  char name[24];
  int32_t dtype, redop, root, color, key;
  uint64_t count;
};

// One end of a transfer of bytes. A message, unlike a piece of a collective, waits for its
// receiver.
struct Transfer {
  int peer;
  bool out, message;
  char* data;
  uint64_t bytes;
  uint64_t done = 0;
  bool begun = false;
  // Of a long one: its number among those of its direction; who sends, and where it lies there.
  uint64_t lent = 0;
  int32_t sender = 0;
  const char* there = nullptr;
};

struct Segment;

class Clique {
 public:
  // Meets the others; `stop` ends the wait. Nothing is left in the file system when all have come.
  Clique(const std::string& name, int rank, int ranks, int device, const std::atomic<bool>& stop);
  ~Clique();
  Clique(const Clique&) = delete;

  bool complete() const { return complete_; }
  // Two ranks on one device of one host, or "".
  std::string shared_device() const;
  bool spans_hosts() const;
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

  // The cards of all ranks in the next position; misuse if one differs in more than color and key.
  // Empty when stopped.
  std::vector<Card> agree(const Card& mine);
  // Moves all transfers, together; between two ranks they match in order. False when stopped.
  // `alone`: a message outside of a group, which blocks whatever comes after it.
  bool move(std::vector<Transfer>& all, bool alone = false);
  // Waits until all ranks have said that they leave.
  bool leave();

 private:
  struct Ring& ring(int from, int to) const;
  bool pause(int& turns) const;
  bool step(Transfer& t);
  bool push(Transfer& t);
  bool pull(Transfer& t);
  bool fetch(Transfer& t, struct Ring& from) const;
  void look_for_cycle(const Transfer& mine) const;

  const std::string name_;
  const int rank_, ranks_;
  const std::atomic<bool>& stop_;
  Segment* segment_ = nullptr;
  bool complete_ = false;
  uint64_t position_ = 0;
};

}  // namespace fake
