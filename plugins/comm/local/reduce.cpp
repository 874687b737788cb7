// SPDX-License-Identifier: Apache-2.0
//
// Everything that adds. The elements are cut into one share per rank; a share's owner folds it over
// all ranks' operands, in rank order or in the binary tree over the leaves, and delivers the result
// to all ranks, to the root or to itself. The four paths differ only in where operands are read.
#include <orrery/sdk/exchange.hpp>
#include <orrery/sdk/plugin.hpp>

#include <orrery/sdk/traffic.hpp>
#include "comm.h"
#include "slots.h"

namespace local {
namespace {

enum class Deliver { all, root, owner };

// Shares of so many bytes are worth the kernel's calls for them, one to and one from each peer, of
// up to 3 us.
constexpr int64_t share_worth_attaching = 16 << 10;

}  // namespace

struct Comm::Reduction {
  const orr_coll& c;
  const int rank, ranks;
  const int64_t unit;  // bytes of an element
  orr::Folding fold;
  const orr::exchange::Shares shares;
  const int64_t total;  // elements of one operand
  Deliver deliver = Deliver::all;
  bool here = true;  // this rank gets a result
  char* send;
  char* recv;
  std::vector<const char*> in;  // addresses of operands, set per piece
  std::vector<char*> out;

  Reduction(const orr_coll& coll, int rank, int ranks);
  int owned() const { return fold.owned(rank); }
  int64_t share(int r) const { return shares.length[r]; }
  int64_t begin(int r) const { return shares.begin[r]; }
  // Whether rank q gets others' shares of the result.
  bool gets(int q) const {
    return deliver == Deliver::all || (deliver == Deliver::root && q == c.root_or_peer);
  }
  // Where element i of the result lies in recv.
  char* result(int64_t i) const {
    return recv + (deliver == Deliver::owner ? i - begin(rank) : i) * unit;
  }
};

Comm::Reduction::Reduction(const orr_coll& coll, int rank, int ranks)
    : c(coll),
      rank(rank),
      ranks(ranks),
      unit(orr_dtype_bytes(coll.dtype)),
      fold(coll, ranks),
      shares(orr::exchange::shares_of(coll, ranks)),
      total(shares.total),
      in(fold.operands()) {
  send = c.send.memory ? orr::data<char>(c.send) : nullptr;
  recv = c.recv.memory ? orr::data<char>(c.recv) : nullptr;
  if (shares.scattered) deliver = Deliver::owner;
  if (c.op == ORR_COLL_REDUCE) {
    deliver = Deliver::root;
    here = rank == c.root_or_peer;
  }
}

void Comm::reduce(const orr_coll& c) {
  Reduction r(c, rank_, size_);
  const int64_t bytes = r.fold.most_owned() * r.total * r.unit;
  const bool attach = bytes / size_ >= share_worth_attaching && r.deliver != Deliver::root;
  const Place send = attach ? source_of(c.send, r.send) : place_of(c.send);
  const Place recv = attach ? source_of(c.recv, r.recv) : place_of(c.recv);
  Path path = path_direct;
  if (r.owned() > 0) path = std::max(path, send.path());
  if (r.here && r.deliver != Deliver::owner) path = std::max(path, recv.path());
  if (bytes <= worth_posting(path)) path = path_small;
  if (path == path_small && r.owned() > 0)
    put(segment_.small(rank_, (step_ + 1) & 1), r.send, r.owned() * r.total * r.unit);
  announce(c, path, 0, send, recv);
  int32_t nearest = path, farthest = path;
  for (int q = 0; q < size_; ++q) {
    nearest = std::min(nearest, post_of(q).path);
    farthest = std::max(farthest, post_of(q).path);
  }
  if (farthest == path_small) return reduce_small(r);
  if (nearest == path_small || farthest == path_staged) return reduce_staged(r);
  bool mapped = true;
  for (int q = 0; q < size_; ++q) {
    mapped &= r.fold.first(q) == r.fold.first(q + 1) || post_of(q).send.registered();
    mapped &= !r.gets(q) || post_of(q).recv.registered();
  }
  mapped ? reduce_direct(r) : reduce_attached(r);
}

void Comm::reduce_small(Reduction& r) {
  if (!r.here) return;
  const bool own = r.deliver == Deliver::owner;
  const int64_t from = own ? r.begin(rank_) : 0, n = own ? r.share(rank_) : r.total;
  for (int q = 0; q < size_; ++q)
    for (int i = r.fold.first(q); i < r.fold.first(q + 1); ++i)
      r.in[i] = segment_.small(q, step_ & 1) + ((i - r.fold.first(q)) * r.total + from) * r.unit;
  r.out = {r.result(from)};
  r.fold.run(r.in, r.out, n);
}

void Comm::reduce_direct(Reduction& r) {
  const int64_t from = r.begin(rank_);
  for (int q = 0; q < size_; ++q) {
    if (r.fold.first(q) == r.fold.first(q + 1)) continue;
    const char* base = peer_address(post_of(q).send, q);
    for (int i = r.fold.first(q); i < r.fold.first(q + 1); ++i)
      r.in[i] = base + ((i - r.fold.first(q)) * r.total + from) * r.unit;
  }
  if (r.here) r.out.push_back(r.result(from));
  for (int q = 0; q < size_; ++q) {
    if (q != rank_ && r.gets(q)) r.out.push_back(peer_address(post_of(q).recv, q) + from * r.unit);
  }
  r.fold.run(r.in, r.out, r.share(rank_));
  publish();
  await_step();
}

// What lies in its rank's own memory is copied by the kernel, a piece at a time: operands are
// folded and sums delivered while they are in the cache.
void Comm::reduce_attached(Reduction& r) {
  const int64_t from = r.begin(rank_), n = r.share(rank_);
  const int64_t fits = huge_page / r.fold.operands();
  const int64_t width = std::min(family_->piece_bytes, fits) / r.unit;
  if (!scratch_) scratch_ = take_huge_pages(huge_page);
  for (int64_t at = 0; at < n; at += width) {
    const int64_t part = std::min(width, n - at);
    for (int q = 0; q < size_; ++q)
      for (int i = r.fold.first(q); i < r.fold.first(q + 1); ++i) {
        const int64_t offset = ((i - r.fold.first(q)) * r.total + from + at) * r.unit;
        char* const piece = scratch_.get() + i * width * r.unit;
        if (q != rank_) fetch(piece, post_of(q).send + offset, q, part * r.unit);
        r.in[i] = q == rank_ ? r.send + offset : piece;
      }
    r.out = {r.result(from + at)};
    r.fold.run(r.in, r.out, part);
    for (int q = 0; q < size_; ++q)
      if (q != rank_ && r.gets(q))
        store(post_of(q).recv + (from + at) * r.unit, q, r.out[0], part * r.unit);
  }
  publish();
  await_step();
}

// Piece q of a chunk holds up to `width` elements of share q: the sender's operands one after
// another, or, in the owner's own chunk, the result. The next chunk is written before this one is
// folded, so that peers need not wait for it.
void Comm::reduce_staged(Reduction& r) {
  const int most_nodes = r.fold.most_owned();
  int64_t width = static_cast<int64_t>(chunk_bytes) / (int64_t{size_} * most_nodes * r.unit);
  if (width >= 16) width = width / 16 * 16;
  if (width < 1) throw orr::Error(ORR_UNIMPLEMENTED, "too many ranks and tree nodes for one chunk");
  int64_t longest = 0;
  for (int q = 0; q < size_; ++q) longest = std::max(longest, r.share(q));
  const int64_t chunks = (longest + width - 1) / width;
  const auto part = [&](int64_t k, int q) {
    return std::clamp<int64_t>(r.share(q) - k * width, 0, width);
  };
  const auto slot = [&](int64_t k, int owner, int q, int node) {
    return segment_.chunk(owner, turn_ + k) + (int64_t{q} * most_nodes + node) * width * r.unit;
  };
  const auto write = [&](int64_t k) {
    for (int q = 0; q < size_; ++q)
      for (int j = 0; q != rank_ && j < r.owned() && part(k, q) > 0; ++j)
        put(slot(k, rank_, q, j), r.send + (j * r.total + r.begin(q) + k * width) * r.unit,
            part(k, q) * r.unit);
  };
  const bool shares_result = r.deliver == Deliver::all || (r.deliver == Deliver::root && !r.here);
  std::vector<char> elsewhere(r.here ? 0 : width * r.unit);  // a result that stays nowhere here
  if (chunks > 0) {
    write(0);
    publish();
    await_step();
  }
  for (int64_t k = 0; k < chunks; ++k) {
    if (k + 1 < chunks) write(k + 1);
    const int64_t from = r.begin(rank_) + k * width;
    for (int q = 0; q < size_; ++q)
      for (int i = r.fold.first(q); i < r.fold.first(q + 1); ++i) {
        const int node = i - r.fold.first(q);
        r.in[i] = q == rank_ ? r.send + (node * r.total + from) * r.unit : slot(k, q, rank_, node);
      }
    char* sum = r.here ? r.result(from) : elsewhere.data();
    r.out = {sum};
    r.fold.run(r.in, r.out, part(k, rank_));
    if (shares_result) put(slot(k, rank_, rank_, 0), sum, part(k, rank_) * r.unit);
    publish();
    await_step();
    for (int q = 0; r.here && r.deliver != Deliver::owner && q < size_; ++q)
      if (q != rank_ && part(k, q) > 0)
        std::memcpy(r.result(r.begin(q) + k * width), slot(k, q, q, 0), part(k, q) * r.unit);
  }
  turn_ += chunks;
}

}  // namespace local
