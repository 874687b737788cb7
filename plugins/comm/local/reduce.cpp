// SPDX-License-Identifier: Apache-2.0
//
// Sums that do not travel with the agreement. The elements are divided into one share per rank; a
// share's owner folds it over all ranks' operands where these lie, in rank order or in the binary
// tree over the leaves, and delivers the result to all ranks, to the root or to itself. Where ranks
// cannot reach each other's memory, the sum is made of messages.
#include <sys/mman.h>

#include <new>
#include <orrery/sdk/plugin.hpp>

#include "comm.h"

namespace local {
namespace {

// Shares of so many bytes are worth the kernel's calls for them, one to and one from each peer, of
// up to 3 us.
constexpr uint64_t share_worth_attaching = 16 << 10;
// Bytes of a peer's own memory at a time: so many that the kernel's call for them is cheap beside
// what it copies, and no more, for they are to be folded and delivered while a cache has them.
constexpr int64_t piece_bytes = 512 << 10;
constexpr int64_t scratch_bytes = 2 << 20;  // of pieces

}  // namespace

struct Comm::Reduction {
  Reduction(const orr_coll& c, int rank, int ranks)
      : c(c),
        rank(rank),
        fold(c, ranks),
        in(static_cast<size_t>(fold.operands())),
        shares(orr::exchange::shares_of(c, ranks)),
        unit(orr_dtype_bytes(c.dtype)),
        send(address_of(c.send)),
        recv(address_of(c.recv)) {}
  // Whether rank r gets others' shares of the result, or any.
  bool gets_all(int r) const {
    return !shares.scattered && (c.op != ORR_COLL_REDUCE || r == c.root_or_peer);
  }
  bool gets(int r) const { return shares.scattered || gets_all(r); }
  // Byte of element i of this rank's share in the i-th operand of a rank, and in recv.
  int64_t in_operand(int node, int64_t i) const {
    return (node * shares.total + shares.begin[rank] + i) * unit;
  }
  int64_t in_result(int64_t i) const {
    return (i + (shares.scattered ? 0 : shares.begin[rank])) * unit;
  }

  const orr_coll& c;
  const int rank;
  orr::Folding fold;
  std::vector<const char*> in;  // addresses of operands
  const orr::exchange::Shares shares;
  const int64_t unit;  // bytes of an element
  char *const send, *const recv;
};

void Comm::reduce(const orr_coll& c) {
  Reduction r(c, rank_, size_);
  const auto bytes = static_cast<uint64_t>(r.fold.most_owned() * r.shares.total * r.unit);
  const bool attach = bytes / size_ >= share_worth_attaching && c.op != ORR_COLL_REDUCE;
  const Places mine{place_of(r.send, attach), place_of(r.recv, attach)};
  const uint64_t given = static_cast<uint64_t>(r.fold.owned(rank_) * r.shares.total * r.unit);
  const bool small = bytes <= small_bytes;
  if (bytes > brief_bytes && (given == 0 || mine.send.exists()) &&
      (!r.gets_all(rank_) || mine.recv.exists()))
    meet(c, true, &mine, sizeof mine);
  else
    meet(c, false, r.send, small ? given : 0);
  const int reachable = ranks_in_place();
  if (reachable == size_) return reduce_in_place(r);
  if (reachable == 0 && small) return reduce_small(r);
  orr::exchange::reduce(c, rank_, size_, *this);
}

void Comm::reduce_small(Reduction& r) {
  if (!r.gets(rank_)) return;
  const int64_t from = r.shares.scattered ? r.shares.begin[rank_] : 0;
  for (int q = 0, i = 0; q < size_; ++q)
    for (int node = 0; node < r.fold.owned(q); ++node)
      r.in[i++] = notice(q).data + (node * r.shares.total + from) * r.unit;
  r.fold.run(r.in, {r.recv}, r.shares.scattered ? r.shares.length[rank_] : r.shares.total);
}

// Operands of others, where they are or copied to scratch.
void Comm::reach_operands(Reduction& r, int64_t at, int64_t elements) {
  if (!scratch_) {  // on huge pages, where the system has them: the kernel copies page by page
    scratch_.reset(static_cast<char*>(std::aligned_alloc(huge_page, scratch_bytes)));
    if (!scratch_) throw std::bad_alloc();
    madvise(scratch_.get(), scratch_bytes, MADV_HUGEPAGE);
  }
  const uint64_t bytes = static_cast<uint64_t>(elements * r.unit);
  char* to = scratch_.get();
  for (int q = 0, i = 0; q < size_; ++q)
    for (; i < r.fold.first(q + 1); ++i, to += bytes) {
      const int64_t from = r.in_operand(i - r.fold.first(q), at);
      r.in[i] = q == rank_ ? r.send + from : reach(notice(q).places().send + from, q, bytes, to);
    }
}

void Comm::reduce_in_place(Reduction& r) {
  const int64_t n = r.shares.length[rank_], fits = scratch_bytes / r.fold.operands();
  const int64_t width = std::min(piece_bytes, fits) / r.unit;
  for (int64_t at = 0; at < n; at += width) {
    const int64_t elements = std::min(width, n - at);
    reach_operands(r, at, elements);
    std::vector<char*> out;
    if (r.gets(rank_)) out.push_back(r.recv + r.in_result(at));
    for (int q = 0; q < size_; ++q)
      if (const Place& to = notice(q).places().recv; q != rank_ && r.gets_all(q) && to.registered())
        out.push_back(peer_address(to + r.in_result(at), q));
    r.fold.run(r.in, out, elements);
    for (int q = 0; q < size_; ++q)
      if (const Place& to = notice(q).places().recv;
          q != rank_ && r.gets_all(q) && !to.registered())
        store(to + r.in_result(at), q, out[0], static_cast<uint64_t>(elements * r.unit));
  }
  step(0, false, nullptr, 0);
}

}  // namespace local
