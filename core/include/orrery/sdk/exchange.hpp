// SPDX-License-Identifier: Apache-2.0
//
// Collectives over messages between pairs of ranks: for backends that have nothing better, and for the
// core where a backend has none at all. Whatever adds folds in the order of fold.hpp, so that the bits
// are those of every other backend.
#pragma once

#include <orrery/comm.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <orrery/sdk/fold.hpp>
#include <orrery/sdk/traffic.hpp>
#include <vector>

namespace orr::exchange {

// One end of a message; never to oneself, never empty.
struct Message {
  int peer;
  char* data;
  int64_t bytes;
};

class Messenger {
 public:
  virtual ~Messenger() = default;
  // Starts all of them together and returns when all are done. Messages between the same two ranks
  // match in the order of the lists. Throws when a peer is lost.
  virtual void exchange(const std::vector<Message>& sends, const std::vector<Message>& recvs) = 0;
};

// Rank r folds the elements [begin[r], begin[r] + length[r]) out of `total`, the elements of an operand.
struct Shares {
  int64_t total;
  bool scattered;  // each rank keeps its own share; else all shares make one result
  std::vector<int64_t> begin, length;
};

// REQUIRES: `c` adds and is well-formed.
inline Shares shares_of(const orr_coll& c, int ranks) {
  const bool slices = c.op == ORR_COLL_TREE_REDUCE_SCATTER, pieces = c.op == ORR_COLL_REDUCE_SCATTER;
  Shares s{pieces ? traffic::sum(c.counts, ranks) : c.count, slices || pieces, {}, {}};
  for (int r = 0; r < ranks; ++r) {
    const int64_t even = traffic::share_begin(s.total, r, ranks);
    s.begin.push_back(slices ? c.recv_counts[r] : pieces ? traffic::sum(c.counts, r) : even);
    s.length.push_back(s.scattered ? c.counts[r] : traffic::share_begin(s.total, r + 1, ranks) - even);
  }
  return s;
}

// Reductions. The elements are cut into one share per rank. In round k the slices of chunk k of each
// share go to its owner, and the results of chunk k - 1 to whom they belong; between rounds the owner
// folds. Scratch is bounded by the chunk. What is small goes to everybody at once.
inline constexpr int64_t small_bytes = 8 << 10;    // of one rank's operands
inline constexpr int64_t scratch_bytes = 1 << 20;  // of the operands that an owner holds of its peers: in its cache

// Kept from call to call, for fresh memory costs more than what is done with it.
inline char* scratch(int64_t bytes) {
  thread_local std::unique_ptr<char[]> memory;
  thread_local int64_t capacity = 0;
  if (bytes > capacity) {
    memory.reset(new char[static_cast<size_t>(bytes)]);
    capacity = bytes;
  }
  return memory.get();
}

class Reduction {
 public:
  Reduction(const orr_coll& c, int rank, int ranks, Messenger& messenger);
  void run();

 private:
  void run_small();
  void plan_chunks();
  void round(int64_t k);
  void fold_chunk(int64_t k);
  int64_t share(int r) const { return shares_.length[r]; }
  int64_t begin(int r) const { return shares_.begin[r]; }
  int64_t part(int64_t k, int r) const {
    return k < 0 || k >= chunks_ ? 0 : std::clamp<int64_t>(share(r) - k * width_, 0, width_);
  }
  bool wants(int r) const { return !shares_.scattered && (root_ < 0 || r == root_); }
  bool has_result() const { return shares_.scattered || wants(rank_); }
  char* operand(int node, int64_t element) const { return send_ + (node * total_ + element) * unit_; }
  // Where this rank keeps chunk k of its own share's result.
  char* result(int64_t k) {
    if (!has_result()) return result_;
    return recv_ + ((shares_.scattered ? 0 : begin(rank_)) + k * width_) * unit_;
  }
  char* slot(int input) { return scratch_ + int64_t{input} * width_ * unit_; }

  const orr_coll& c_;
  const int rank_, ranks_;
  Messenger& messenger_;
  Folding fold_;
  const int64_t unit_;
  const Shares shares_;
  const int64_t total_;
  const int root_;  // -1: all are
  int64_t width_ = 1, chunks_ = 0;
  char *send_, *recv_, *scratch_ = nullptr, *result_ = nullptr;  // result_: of a rank that gets none
};

inline Reduction::Reduction(const orr_coll& c, int rank, int ranks, Messenger& messenger)
    : c_(c), rank_(rank), ranks_(ranks), messenger_(messenger), fold_(c, ranks),
      unit_(orr_dtype_bytes(c.dtype)), shares_(shares_of(c, ranks)), total_(shares_.total),
      root_(c.op == ORR_COLL_REDUCE ? c.root_or_peer : -1) {
  send_ = c.send.memory ? static_cast<char*>(orr_buffer_host(&c.send)) : nullptr;
  recv_ = c.recv.memory ? static_cast<char*>(orr_buffer_host(&c.recv)) : nullptr;
}

inline void Reduction::run() {
  if (total_ == 0) return;
  if (!shares_.scattered && fold_.most_owned() * total_ * unit_ <= small_bytes) return run_small();
  plan_chunks();
  for (int64_t k = 0; k <= chunks_; ++k) {
    round(k);
    if (part(k, rank_) > 0) fold_chunk(k);
  }
}

// One round: every rank that gets the result folds all of it.
inline void Reduction::run_small() {
  const int64_t bytes = total_ * unit_;
  std::vector<Message> sends, recvs;
  std::vector<const char*> in(fold_.operands());
  scratch_ = scratch(fold_.operands() * bytes);
  for (int r = 0; r < ranks_; ++r) {
    char* to = scratch_ + fold_.first(r) * bytes;
    for (int i = 0; i < fold_.owned(r); ++i) in[fold_.first(r) + i] = r == rank_ ? operand(i, 0) : to + i * bytes;
    if (r == rank_) continue;
    if (wants(r) && fold_.owned(rank_) > 0) sends.push_back({r, send_, fold_.owned(rank_) * bytes});
    if (wants(rank_) && fold_.owned(r) > 0) recvs.push_back({r, to, fold_.owned(r) * bytes});
  }
  messenger_.exchange(sends, recvs);
  if (wants(rank_)) fold_.run(in, {recv_}, total_);
}

inline void Reduction::plan_chunks() {
  int64_t longest = 0;
  for (int r = 0; r < ranks_; ++r) longest = std::max(longest, share(r));
  const int64_t fits = scratch_bytes / (fold_.operands() * unit_) / 16 * 16;
  width_ = std::min(longest, std::max<int64_t>(fits, 16));
  chunks_ = (longest + width_ - 1) / width_;
  scratch_ = scratch((fold_.operands() + 1) * width_ * unit_);
  result_ = slot(fold_.operands());
}

inline void Reduction::round(int64_t k) {
  std::vector<Message> sends, recvs;
  for (int q = 0; q < ranks_; ++q) {
    if (q == rank_) continue;
    const int64_t theirs = part(k, q) * unit_, mine = part(k, rank_) * unit_;
    for (int i = 0; i < fold_.owned(rank_) && theirs > 0; ++i)
      sends.push_back({q, operand(i, begin(q) + k * width_), theirs});
    for (int i = fold_.first(q); i < fold_.first(q + 1) && mine > 0; ++i) recvs.push_back({q, slot(i), mine});
    if (wants(q) && part(k - 1, rank_) > 0)
      sends.push_back({q, result(k - 1), part(k - 1, rank_) * unit_});
    if (wants(rank_) && part(k - 1, q) > 0)
      recvs.push_back({q, recv_ + (begin(q) + (k - 1) * width_) * unit_, part(k - 1, q) * unit_});
  }
  messenger_.exchange(sends, recvs);
}

inline void Reduction::fold_chunk(int64_t k) {
  std::vector<const char*> in(fold_.operands());
  for (int i = 0; i < fold_.operands(); ++i) in[i] = slot(i);
  for (int i = 0; i < fold_.owned(rank_); ++i)
    in[fold_.first(rank_) + i] = operand(i, begin(rank_) + k * width_);
  fold_.run(in, {result(k)}, part(k, rank_));
}


// all_reduce, reduce, reduce_scatter and their trees: slices go to their owners, who fold them and
// deliver the result. REQUIRES: `c` is well-formed; the other ranks call this too.
inline void reduce(const orr_coll& c, int rank, int ranks, Messenger& messenger) {
  Reduction(c, rank, ranks, messenger).run();
}

// What a rank gets from each rank and gives to each, in bytes.
struct Pieces {
  std::vector<int64_t> in, out;
};

inline Pieces pieces_of(const orr_coll& c, int rank, int ranks) {
  const int64_t unit = orr_dtype_bytes(c.dtype);
  Pieces p{std::vector<int64_t>(ranks, 0), std::vector<int64_t>(ranks, 0)};
  for (int r = 0; r < ranks; ++r) {
    if (c.op == ORR_COLL_BROADCAST) {
      p.in[r] = r == c.root_or_peer ? c.count * unit : 0;
      p.out[r] = rank == c.root_or_peer ? c.count * unit : 0;
    } else if (c.op == ORR_COLL_ALL_GATHER) {
      p.in[r] = c.counts[r] * unit;
      p.out[r] = c.counts[rank] * unit;
    } else {
      p.in[r] = c.recv_counts[r] * unit;
      p.out[r] = c.counts[r] * unit;
    }
  }
  return p;
}


// broadcast, all_gather and all_to_all: every piece straight from who has it to who wants it.
inline void move(const orr_coll& c, int rank, int ranks, Messenger& messenger) {
  const Pieces p = pieces_of(c, rank, ranks);
  char* from = c.send.memory ? static_cast<char*>(orr_buffer_host(&c.send)) : nullptr;
  char* to = c.recv.memory ? static_cast<char*>(orr_buffer_host(&c.recv)) : nullptr;
  const bool same = c.op != ORR_COLL_ALL_TO_ALL;  // all get the same bytes
  int64_t given = 0, got = 0;
  for (int64_t bytes : p.out) given = same ? bytes : given + bytes;
  for (int64_t bytes : p.in) got += bytes;
  std::vector<char> copy;  // of what is to be sent, where receiving would overwrite it
  if (!same && given > 0 && got > 0 && from < to + got && to < from + given) {
    copy.assign(from, from + given);
    from = copy.data();
  }
  std::vector<Message> sends, recvs;
  for (int r = 0; r < ranks; ++r) {
    if (r == rank) {
      if (to && p.in[r] > 0 && from != to) std::memmove(to, from, p.in[r]);
    } else {
      if (p.out[r] > 0) sends.push_back({r, from, p.out[r]});
      if (p.in[r] > 0) recvs.push_back({r, to, p.in[r]});
    }
    if (!same) from += p.out[r];
    if (to) to += p.in[r];
  }
  messenger.exchange(sends, recvs);
}

}  // namespace orr::exchange
