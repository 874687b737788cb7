// SPDX-License-Identifier: Apache-2.0
//
// Everything that adds. The elements are cut into one share per rank; a share's owner folds it over
// all ranks' operands, in rank order or in the binary tree over the leaves, and delivers the result to
// all ranks, to the root or to itself. The three paths differ only in where operands are read.
#include <orrery/sdk/plugin.hpp>

#include <orrery/sdk/traffic.hpp>
#include "arithmetic.h"
#include "comm.h"

namespace local {
namespace {

constexpr int64_t block_bytes = 8 << 10;  // of one operand: a block's operands stay in the first cache

enum class Deliver { all, root, owner };

// A sum of two operands of a tree; the number of its result follows those of the inputs.
struct Sum {
  int a, b;
};

// Appends the sums of the node over leaves [lo, lo + width) and returns its operand number. `first`
// and `last` bound the leaves of each input.
int plan_node(int64_t lo, int64_t width, int64_t total, const std::vector<int64_t>& first,
              const std::vector<int64_t>& last, std::vector<Sum>& sums) {
  const int64_t hi = std::min(lo + width, total);
  const auto at = std::lower_bound(first.begin(), first.end(), lo) - first.begin();
  if (at < static_cast<int64_t>(first.size()) && first[at] == lo && last[at] >= hi)
    return static_cast<int>(at);
  const int left = plan_node(lo, width / 2, total, first, last, sums);
  if (lo + width / 2 >= total) return left;
  const int right = plan_node(lo + width / 2, width / 2, total, first, last, sums);
  sums.push_back({left, right});
  return static_cast<int>(first.size() + sums.size()) - 1;
}

}  // namespace

struct Comm::Reduction {
  const orr_coll& c;
  const int rank, ranks;
  const int64_t unit;      // bytes of an element
  int64_t total;           // elements of one operand
  Deliver deliver = Deliver::all;
  bool here = true;        // this rank gets a result
  std::vector<int64_t> begin, length;  // shares
  std::vector<int> first;              // rank r's operands are [first[r], first[r + 1])
  int most_nodes = 1;
  bool tree = false;
  std::vector<Sum> sums;               // of the tree
  Fold fold;
  char* send;
  char* recv;
  std::vector<const char*> in;         // addresses of operands, set per piece
  std::vector<char*> out;
  std::vector<char> scratch;

  Reduction(const orr_coll& coll, int rank, int ranks);
  void plan_shares();
  void plan_tree();
  int owned() const { return first[rank + 1] - first[rank]; }
  int64_t share(int r) const { return length[r]; }
  // Where element i of the result lies in recv.
  char* result(int64_t i) const {
    return recv + (deliver == Deliver::owner ? i - begin[rank] : i) * unit;
  }
  void evaluate(int64_t n);
  void evaluate_tree(int64_t at, int64_t n);
};

Comm::Reduction::Reduction(const orr_coll& coll, int rank, int ranks)
    : c(coll), rank(rank), ranks(ranks), unit(orr_dtype_bytes(coll.dtype)), total(coll.count) {
  tree = orr::traffic::is_tree(c.op);
  fold = fold_for(c.dtype, tree ? int32_t{ORR_RED_SUM} : c.redop);
  send = c.send.memory ? orr::data<char>(c.send) : nullptr;
  recv = c.recv.memory ? orr::data<char>(c.recv) : nullptr;
  first.assign(ranks + 1, 0);
  for (int r = 0; r < ranks; ++r) {
    first[r + 1] = first[r] + static_cast<int>(orr::traffic::nodes(c, r, ranks));
    most_nodes = std::max(most_nodes, first[r + 1] - first[r]);
  }
  plan_shares();
  if (c.op == ORR_COLL_REDUCE) {
    deliver = Deliver::root;
    here = rank == c.root_or_peer;
  }
  if (tree) plan_tree();
  in.resize(first[ranks]);
}

void Comm::Reduction::plan_shares() {
  const bool slices = c.op == ORR_COLL_TREE_REDUCE_SCATTER;
  if (slices || c.op == ORR_COLL_REDUCE_SCATTER) deliver = Deliver::owner;
  if (c.op == ORR_COLL_REDUCE_SCATTER) total = orr::traffic::sum(c.counts, ranks);
  for (int r = 0; r < ranks; ++r) {
    const int64_t shared = orr::traffic::share_begin(total, r, ranks);
    begin.push_back(slices ? c.recv_counts[r]
                    : deliver == Deliver::owner ? orr::traffic::sum(c.counts, r) : shared);
    length.push_back(deliver == Deliver::owner ? c.counts[r]
                                               : orr::traffic::share_begin(total, r + 1, ranks) - shared);
  }
}

void Comm::Reduction::plan_tree() {
  const int64_t leaves = c.leaf_first[ranks];
  std::vector<int64_t> lo, hi;
  for (int r = 0; r < ranks; ++r)
    for (int64_t at = c.leaf_first[r]; at < c.leaf_first[r + 1];) {
      lo.push_back(at);
      orr_tree_node(&at, c.leaf_first[r + 1], leaves);
      hi.push_back(at);
    }
  int64_t width = 1;
  while (width < leaves) width *= 2;
  plan_node(0, width, leaves, lo, hi, sums);
  scratch.resize(sums.size() * block_bytes);
}

// Folds n elements at the addresses `in` into all of `out`, block by block.
void Comm::Reduction::evaluate(int64_t n) {
  if (out.empty()) return;
  const int64_t block = block_bytes / unit;
  const int k = static_cast<int>(in.size());
  std::vector<const void*> from(k);
  for (int64_t at = 0; at < n; at += block) {
    const int64_t m = std::min(block, n - at);
    if (tree && k > 1) {
      evaluate_tree(at, m);
    } else if (k > 1) {
      for (int i = 0; i < k; ++i) from[i] = in[i] + at * unit;
      fold(out[0] + at * unit, from.data(), k, m);
    } else if (out[0] != in[0]) {
      std::memmove(out[0] + at * unit, in[0] + at * unit, m * unit);
    }
    for (size_t i = 1; i < out.size(); ++i)
      std::memcpy(out[i] + at * unit, out[0] + at * unit, m * unit);
  }
}

void Comm::Reduction::evaluate_tree(int64_t at, int64_t n) {
  const int inputs = static_cast<int>(in.size());
  const auto operand = [&](int i) -> const void* {
    return i < inputs ? in[i] + at * unit : scratch.data() + (i - inputs) * block_bytes;
  };
  for (size_t s = 0; s < sums.size(); ++s) {
    const void* pair[] = {operand(sums[s].a), operand(sums[s].b)};
    char* to = s + 1 == sums.size() ? out[0] + at * unit : scratch.data() + s * block_bytes;
    fold(to, pair, 2, n);
  }
}

void Comm::reduce(const orr_coll& c) {
  Reduction r(c, rank_, size_);
  const bool registered = (r.owned() == 0 || place_of(c.send).region) &&
                          (!r.here || r.deliver == Deliver::owner || place_of(c.recv).region);
  const int64_t bytes = r.most_nodes * r.total * r.unit;
  Path path = registered ? path_direct : path_staged;
  if (bytes <= static_cast<int64_t>(small_bytes) / (registered ? 16 : 1)) path = path_small;
  if (path == path_small && r.owned() > 0)
    std::memcpy(segment_.small(rank_, (step_ + 1) & 1), r.send, r.owned() * r.total * r.unit);
  announce(c, path, 0);
  bool all_same = true;
  for (int q = 0; q < size_; ++q) all_same &= post_of(q).path == path;
  if (all_same && path == path_small) return reduce_small(r);
  if (all_same && path == path_direct) return reduce_direct(r);
  reduce_staged(r);
}

void Comm::reduce_small(Reduction& r) {
  if (!r.here) return;
  const bool own = r.deliver == Deliver::owner;
  const int64_t from = own ? r.begin[rank_] : 0, n = own ? r.share(rank_) : r.total;
  for (int q = 0; q < size_; ++q)
    for (int i = r.first[q]; i < r.first[q + 1]; ++i)
      r.in[i] = segment_.small(q, step_ & 1) + ((i - r.first[q]) * r.total + from) * r.unit;
  r.out = {r.result(from)};
  r.evaluate(n);
}

void Comm::reduce_direct(Reduction& r) {
  const int64_t from = r.begin[rank_];
  for (int q = 0; q < size_; ++q) {
    if (r.first[q] == r.first[q + 1]) continue;
    const char* base = peer_address(post_of(q).send, q);
    for (int i = r.first[q]; i < r.first[q + 1]; ++i)
      r.in[i] = base + ((i - r.first[q]) * r.total + from) * r.unit;
  }
  if (r.here) r.out.push_back(r.result(from));
  for (int q = 0; q < size_; ++q) {
    const bool wants = r.deliver == Deliver::all || (r.deliver == Deliver::root && q == r.c.root_or_peer);
    if (q != rank_ && wants) r.out.push_back(peer_address(post_of(q).recv, q) + from * r.unit);
  }
  r.evaluate(r.share(rank_));
  publish();
  await_step();
}

// Piece q of a chunk holds up to `width` elements of share q: the sender's operands one after
// another, or, in the owner's own chunk, the result. The next chunk is written before this one is
// folded, so that peers need not wait for it.
void Comm::reduce_staged(Reduction& r) {
  int64_t width = static_cast<int64_t>(chunk_bytes) / (int64_t{size_} * r.most_nodes * r.unit);
  if (width >= 16) width = width / 16 * 16;
  if (width < 1) throw orr::Error(ORR_UNIMPLEMENTED, "too many ranks and tree nodes for one chunk");
  int64_t longest = 0;
  for (int q = 0; q < size_; ++q) longest = std::max(longest, r.share(q));
  const int64_t chunks = (longest + width - 1) / width;
  const auto part = [&](int64_t k, int q) { return std::clamp<int64_t>(r.share(q) - k * width, 0, width); };
  const auto slot = [&](int64_t k, int owner, int q, int node) {
    return segment_.chunk(owner, turn_ + k) + (int64_t{q} * r.most_nodes + node) * width * r.unit;
  };
  const auto write = [&](int64_t k) {
    for (int q = 0; q < size_; ++q)
      for (int j = 0; q != rank_ && j < r.owned() && part(k, q) > 0; ++j)
        std::memcpy(slot(k, rank_, q, j), r.send + (j * r.total + r.begin[q] + k * width) * r.unit,
                    part(k, q) * r.unit);
  };
  const bool shares_result = r.deliver == Deliver::all || (r.deliver == Deliver::root && !r.here);
  if (chunks > 0) {
    write(0);
    publish();
    await_step();
  }
  for (int64_t k = 0; k < chunks; ++k) {
    if (k + 1 < chunks) write(k + 1);
    const int64_t from = r.begin[rank_] + k * width;
    for (int q = 0; q < size_; ++q)
      for (int i = r.first[q]; i < r.first[q + 1]; ++i) {
        const int node = i - r.first[q];
        r.in[i] = q == rank_ ? r.send + (node * r.total + from) * r.unit : slot(k, q, rank_, node);
      }
    r.out.clear();
    if (r.here) r.out.push_back(r.result(from));
    if (shares_result) r.out.push_back(slot(k, rank_, rank_, 0));
    r.evaluate(part(k, rank_));
    publish();
    await_step();
    for (int q = 0; r.here && r.deliver != Deliver::owner && q < size_; ++q)
      if (q != rank_ && part(k, q) > 0)
        std::memcpy(r.result(r.begin[q] + k * width), slot(k, q, q, 0), part(k, q) * r.unit);
  }
  turn_ += chunks;
}

}  // namespace local
