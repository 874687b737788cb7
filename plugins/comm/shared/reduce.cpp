// SPDX-License-Identifier: Apache-2.0
//
// Reductions over messages. The elements are cut into one share per rank. In round k the slices of
// chunk k of each share go to its owner, and the results of chunk k - 1 to whom they belong; between
// rounds the owner folds. Scratch is bounded by the chunk. What is small goes to everybody at once.
#include <algorithm>
#include <cstring>
#include <memory>

#include <orrery/sdk/plugin.hpp>

#include "exchange.h"
#include "folding.h"
#include "shares.h"

namespace shared {
namespace {

constexpr int64_t small_bytes = 8 << 10;    // of one rank's operands
constexpr int64_t scratch_bytes = 1 << 20;  // of the operands that an owner holds of its peers: in its cache

// Kept from call to call, for fresh memory costs more than what is done with it.
char* scratch(int64_t bytes) {
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

Reduction::Reduction(const orr_coll& c, int rank, int ranks, Messenger& messenger)
    : c_(c), rank_(rank), ranks_(ranks), messenger_(messenger), fold_(c, ranks),
      unit_(orr_dtype_bytes(c.dtype)), shares_(shares_of(c, ranks)), total_(shares_.total),
      root_(c.op == ORR_COLL_REDUCE ? c.root_or_peer : -1) {
  send_ = c.send.memory ? orr::data<char>(c.send) : nullptr;
  recv_ = c.recv.memory ? orr::data<char>(c.recv) : nullptr;
}

void Reduction::run() {
  if (total_ == 0) return;
  if (!shares_.scattered && fold_.most_owned() * total_ * unit_ <= small_bytes) return run_small();
  plan_chunks();
  for (int64_t k = 0; k <= chunks_; ++k) {
    round(k);
    if (part(k, rank_) > 0) fold_chunk(k);
  }
}

// One round: every rank that gets the result folds all of it.
void Reduction::run_small() {
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

void Reduction::plan_chunks() {
  int64_t longest = 0;
  for (int r = 0; r < ranks_; ++r) longest = std::max(longest, share(r));
  const int64_t fits = scratch_bytes / (fold_.operands() * unit_) / 16 * 16;
  width_ = std::min(longest, std::max<int64_t>(fits, 16));
  chunks_ = (longest + width_ - 1) / width_;
  scratch_ = scratch((fold_.operands() + 1) * width_ * unit_);
  result_ = slot(fold_.operands());
}

void Reduction::round(int64_t k) {
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

void Reduction::fold_chunk(int64_t k) {
  std::vector<const char*> in(fold_.operands());
  for (int i = 0; i < fold_.operands(); ++i) in[i] = slot(i);
  for (int i = 0; i < fold_.owned(rank_); ++i)
    in[fold_.first(rank_) + i] = operand(i, begin(rank_) + k * width_);
  fold_.run(in, {result(k)}, part(k, rank_));
}

}  // namespace

void reduce(const orr_coll& c, int rank, int ranks, Messenger& messenger) {
  Reduction(c, rank, ranks, messenger).run();
}

}  // namespace shared
