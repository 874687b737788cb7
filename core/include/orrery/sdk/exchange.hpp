// SPDX-License-Identifier: Apache-2.0
//
// Collectives composed of messages between pairs of ranks: for backends that have nothing faster,
// and for the core if a backend lacks a collective. Sums are added in the order of fold.hpp, so the
// bits are those of every other backend.
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

// One end of a message; never to the same rank, never empty.
template <class Address>
struct MessageAt {
  int peer;
  Address data;
  int64_t bytes;
  bool fresh = false;  // the sender has just written the bytes, so they may still be in its cache
};
using Message = MessageAt<char*>;

class Messenger {
 public:
  virtual ~Messenger() = default;
  // Starts all messages together and returns when all are done. Messages between the same two ranks
  // match in the order of the lists. Throws if a peer is lost.
  virtual void exchange(const std::vector<Message>& sends, const std::vector<Message>& recvs) = 0;
};

// Rank r adds the elements [begin[r], begin[r] + length[r]) of all operands, which have `total`
// elements each.
struct Shares {
  int64_t total;
  bool scattered;  // each rank keeps its share; else all shares together are the result
  std::vector<int64_t> begin, length;
};

// REQUIRES: `c` adds and is well-formed.
inline Shares shares_of(const orr_coll& c, int ranks) {
  const bool slices = c.op == ORR_COLL_TREE_REDUCE_SCATTER,
             pieces = c.op == ORR_COLL_REDUCE_SCATTER;
  Shares s{pieces ? traffic::sum(c.counts, ranks) : c.count, slices || pieces, {}, {}};
  for (int r = 0; r < ranks; ++r) {
    const int64_t even = traffic::share_begin(s.total, r, ranks);
    s.begin.push_back(slices ? c.recv_counts[r] : pieces ? traffic::sum(c.counts, r) : even);
    s.length.push_back(s.scattered ? c.counts[r]
                                   : traffic::share_begin(s.total, r + 1, ranks) - even);
  }
  return s;
}

// Reductions. The elements are cut into one share per rank, and each share into chunks. In round k,
// every rank sends its operands of chunk k of each share to the share's owner, and owners send the
// results of chunk k - 1 to the ranks that need them; between rounds the owners add. So scratch
// memory is bounded by the size of a chunk. Small operands are sent to all ranks in one round.
inline constexpr int64_t small_bytes = 8 << 10;  // of one rank's operands

// The environment of a reduction: where its buffers are, and how bytes are moved and added. `Hands`
// has
//   Address                         a place; bytes can be added to it; Address{} is no place
//   most_scratch                    bytes of other ranks' operands that an owner holds at a time
//   Address send(), recv(), scratch(int64_t bytes)
//   void exchange(sends, recvs)     as Messenger's, with vectors of MessageAt<Address>
// void fold(in, out, int64_t n)   adds all operands, a vector of Address; `out` may be one of them
//   const FoldOrder& order()
template <class Hands>
class Reduction {
 public:
  using Address = typename Hands::Address;
  Reduction(const orr_coll& c, int rank, int ranks, Hands& hands);
  void run();

 private:
  using Messages = std::vector<MessageAt<Address>>;
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
  Address operand(int node, int64_t element) const {
    return send_ + (node * total_ + element) * unit_;
  }
  // Where this rank keeps chunk k of its own share's result.
  Address result(int64_t k) {
    if (!has_result()) return result_;
    return recv_ + ((shares_.scattered ? 0 : begin(rank_)) + k * width_) * unit_;
  }
  Address slot(int input) { return scratch_ + int64_t{input} * width_ * unit_; }

  const int rank_, ranks_;
  Hands& hands_;
  const FoldOrder& order_;
  const int64_t unit_;
  const Shares shares_;
  const int64_t total_;
  const int root_;  // -1: all ranks get the result
  int64_t width_ = 1, chunks_ = 0;
  Address send_, recv_, scratch_{}, result_{};  // result_: for a rank that gets no result
};

template <class Hands>
Reduction<Hands>::Reduction(const orr_coll& c, int rank, int ranks, Hands& hands)
    : rank_(rank),
      ranks_(ranks),
      hands_(hands),
      order_(hands.order()),
      unit_(orr_dtype_bytes(c.dtype)),
      shares_(shares_of(c, ranks)),
      total_(shares_.total),
      root_(c.op == ORR_COLL_REDUCE ? c.root_or_peer : -1),
      send_(hands.send()),
      recv_(hands.recv()) {}

template <class Hands>
void Reduction<Hands>::run() {
  if (total_ == 0) return;
  if (!shares_.scattered && order_.most_owned() * total_ * unit_ <= small_bytes) return run_small();
  plan_chunks();
  for (int64_t k = 0; k <= chunks_; ++k) {
    round(k);
    if (part(k, rank_) > 0) fold_chunk(k);
  }
}

// Reduces in one round: every rank that gets the result adds all operands itself.
template <class Hands>
void Reduction<Hands>::run_small() {
  const int64_t bytes = total_ * unit_;
  Messages sends, recvs;
  std::vector<Address> in(order_.operands());
  scratch_ = hands_.scratch(order_.operands() * bytes);
  for (int r = 0; r < ranks_; ++r) {
    const Address to = scratch_ + order_.first(r) * bytes;
    for (int i = 0; i < order_.owned(r); ++i)
      in[order_.first(r) + i] = r == rank_ ? operand(i, 0) : to + i * bytes;
    if (r == rank_) continue;
    if (wants(r) && order_.owned(rank_) > 0)
      sends.push_back({r, send_, order_.owned(rank_) * bytes});
    if (wants(rank_) && order_.owned(r) > 0) recvs.push_back({r, to, order_.owned(r) * bytes});
  }
  hands_.exchange(sends, recvs);
  if (wants(rank_)) hands_.fold(in, recv_, total_);
}

template <class Hands>
void Reduction<Hands>::plan_chunks() {
  int64_t longest = 0;
  for (int r = 0; r < ranks_; ++r) longest = std::max(longest, share(r));
  const int64_t fits = Hands::most_scratch / (order_.operands() * unit_) / 16 * 16;
  width_ = std::min(longest, std::max<int64_t>(fits, 16));
  chunks_ = (longest + width_ - 1) / width_;
  scratch_ = hands_.scratch((order_.operands() + 1) * width_ * unit_);
  result_ = slot(order_.operands());
}

template <class Hands>
void Reduction<Hands>::round(int64_t k) {
  Messages sends, recvs;
  for (int q = 0; q < ranks_; ++q) {
    if (q == rank_) continue;
    const int64_t theirs = part(k, q) * unit_, mine = part(k, rank_) * unit_;
    for (int i = 0; i < order_.owned(rank_) && theirs > 0; ++i)
      sends.push_back({q, operand(i, begin(q) + k * width_), theirs});
    for (int i = order_.first(q); i < order_.first(q + 1) && mine > 0; ++i)
      recvs.push_back({q, slot(i), mine});
    if (wants(q) && part(k - 1, rank_) > 0)
      sends.push_back({q, result(k - 1), part(k - 1, rank_) * unit_, true});
    if (wants(rank_) && part(k - 1, q) > 0)
      recvs.push_back(
          {q, recv_ + (begin(q) + (k - 1) * width_) * unit_, part(k - 1, q) * unit_, true});
  }
  hands_.exchange(sends, recvs);
}

template <class Hands>
void Reduction<Hands>::fold_chunk(int64_t k) {
  std::vector<Address> in(order_.operands());
  for (int i = 0; i < order_.operands(); ++i) in[i] = slot(i);
  for (int i = 0; i < order_.owned(rank_); ++i)
    in[order_.first(rank_) + i] = operand(i, begin(rank_) + k * width_);
  hands_.fold(in, result(k), part(k, rank_));
}

// The environment for buffers in memory of the host.
class HostHands {
 public:
  using Address = char*;
  static constexpr int64_t most_scratch = 1 << 20;  // so that it stays in the owner's cache

  HostHands(const orr_coll& c, int ranks, Messenger& messenger)
      : c_(c), messenger_(messenger), folding_(c, ranks) {}
  const FoldOrder& order() const { return folding_; }
  char* send() const { return place(c_.send); }
  char* recv() const { return place(c_.recv); }
  // The memory is kept for the next call: fresh memory costs more than the work on it.
  static char* scratch(int64_t bytes) {
    thread_local std::unique_ptr<char[]> memory;
    thread_local int64_t capacity = 0;
    if (bytes > capacity) {
      memory.reset(new char[static_cast<size_t>(bytes)]);
      capacity = bytes;
    }
    return memory.get();
  }
  void exchange(const std::vector<Message>& sends, const std::vector<Message>& recvs) {
    messenger_.exchange(sends, recvs);
  }
  void fold(const std::vector<char*>& in, char* out, int64_t n) {
    folding_.run({in.begin(), in.end()}, {out}, n);
  }

 private:
  static char* place(const orr_buffer& b) {
    return b.memory ? static_cast<char*>(orr_buffer_host(&b)) : nullptr;
  }
  const orr_coll& c_;
  Messenger& messenger_;
  Folding folding_;
};

// Carries out all_reduce, reduce, reduce_scatter and their trees. REQUIRES: `c` is well-formed; the
// other ranks call this too.
inline void reduce(const orr_coll& c, int rank, int ranks, Messenger& messenger) {
  HostHands hands(c, ranks, messenger);
  Reduction(c, rank, ranks, hands).run();
}

// The bytes that a rank receives from each rank (`in`), and sends to each (`out`).
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

// Carries out broadcast, all_gather and all_to_all: every piece is sent directly from its source to
// each rank that needs it.
inline void move(const orr_coll& c, int rank, int ranks, Messenger& messenger) {
  const Pieces p = pieces_of(c, rank, ranks);
  char* from = c.send.memory ? static_cast<char*>(orr_buffer_host(&c.send)) : nullptr;
  char* to = c.recv.memory ? static_cast<char*>(orr_buffer_host(&c.recv)) : nullptr;
  const bool same = c.op != ORR_COLL_ALL_TO_ALL;  // all get the same bytes
  int64_t given = 0, got = 0;
  for (int64_t bytes : p.out) given = same ? bytes : given + bytes;
  for (int64_t bytes : p.in) got += bytes;
  std::vector<char> copy;  // of the bytes to send, if receiving would overwrite them
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
