// SPDX-License-Identifier: Apache-2.0
//
// Everything that copies: broadcast, all_gather, all_to_all. Each sender lays its bytes out once
// and every receiver fetches its piece from wherever that sender has them.
#include <orrery/sdk/plugin.hpp>

#include <orrery/sdk/traffic.hpp>
#include "comm.h"
#include "slots.h"

namespace local {
namespace {

struct Piece {
  int64_t from = 0;  // byte in the sender's packed data
  int64_t to = 0;    // byte in recv
  int64_t bytes = 0;
};

bool overlap(const char* a, int64_t n, const char* b, int64_t m) { return a < b + m && b < a + n; }

}  // namespace

struct Comm::Movement {
  const orr_coll& c;
  const char* send;
  char* recv;
  bool shared;               // all receivers fetch the same bytes
  std::vector<int64_t> out;  // prefix of the bytes for each peer; shared: only out.back()
  std::vector<Piece> in;     // by sender
  std::vector<char> copy;    // of send, where receiving would overwrite it
  int64_t most = 0;          // bytes of the largest outgoing piece

  Movement(const orr_coll& coll, int rank, int ranks);
  void rescue_send();
};

Comm::Movement::Movement(const orr_coll& coll, int rank, int ranks)
    : c(coll),
      send(c.send.memory ? orr::data<char>(c.send) : nullptr),
      recv(c.recv.memory ? orr::data<char>(c.recv) : nullptr),
      shared(c.op != ORR_COLL_ALL_TO_ALL),
      out(ranks + 1, 0),
      in(ranks) {
  const int64_t unit = orr_dtype_bytes(c.dtype);
  int64_t to = 0;
  for (int r = 0; r < ranks; ++r) {
    int64_t n = 0;
    if (c.op == ORR_COLL_BROADCAST) n = r == c.root_or_peer ? c.count : 0;
    if (c.op == ORR_COLL_ALL_GATHER) n = c.counts[r];
    if (c.op == ORR_COLL_ALL_TO_ALL) n = c.recv_counts[r];
    in[r] = {0, to, n * unit};
    to += n * unit;
    const int64_t mine = c.op == ORR_COLL_ALL_TO_ALL ? c.counts[r] * unit : 0;
    out[r + 1] = out[r] + mine;
    most = std::max(most, mine);
  }
  if (shared) most = out[ranks] = in[rank].bytes;
  if (!shared) rescue_send();
}

// In place with equal counts, a chunk is received where one was sent; otherwise pieces move.
void Comm::Movement::rescue_send() {
  const int64_t received = in.back().to + in.back().bytes;
  if (!overlap(send, out.back(), recv, received)) return;
  copy.assign(send, send + out.back());
  send = copy.data();
}

void Comm::check_piece_sizes(const orr_coll& c) {
  for (int r = 0; r < size_; ++r) {
    const int64_t sent = segment_.counts(r, step_ & 1)[rank_];
    if (sent == c.recv_counts[r]) continue;
    family_->die(ORR_FAILED, "rank " + std::to_string(world_of_[r]) + " sends " +
                                 std::to_string(sent) + " elements to rank " +
                                 std::to_string(world_of_[rank_]) + ", which expects " +
                                 std::to_string(c.recv_counts[r]) + here());
  }
}

void Comm::move(const orr_coll& c) {
  Movement m(c, rank_, size_);
  const int64_t total = m.out.back();
  const int parity = (step_ + 1) & 1;
  const Place place = source_of(m.copy.empty() ? c.send : orr_buffer{}, m.send);
  Path path = place.path();
  int64_t brief = worth_posting(place.registered() ? path_direct : path_staged);
  // To fetch takes one more step, for which ranks that share CPUs wait longer than for a copy.
  if (place.region == Place::own_memory && family_->spin) brief = worth_attaching;
  if (total <= brief) path = path_small;
  if (path == path_small && total > 0) put(segment_.small(rank_, parity), m.send, total);
  if (!m.shared) std::memcpy(segment_.counts(rank_, parity), c.counts, size_ * sizeof(int64_t));
  announce(c, path, m.most, place, {});
  if (!m.shared) check_piece_sizes(c);
  bool in_place = false;
  int64_t staged = 0;
  for (int r = 0; r < size_; ++r) {
    const Post& p = post_of(r);
    in_place |= p.path == path_direct;
    if (p.path == path_staged) staged = std::max(staged, static_cast<int64_t>(p.most));
    Piece& piece = m.in[r];
    if (!m.shared)
      piece.from =
          orr_dtype_bytes(c.dtype) * orr::traffic::sum(segment_.counts(r, step_ & 1), rank_);
    if (!m.recv || piece.bytes == 0 || (p.path == path_staged && r != rank_)) continue;
    char* to = m.recv + piece.to;
    if (r != rank_ && p.path == path_direct) {
      fetch(to, p.send + piece.from, r, piece.bytes);
      continue;
    }
    const char* from = (r == rank_ ? m.send : segment_.small(r, step_ & 1)) + piece.from;
    if (from != to) std::memmove(to, from, piece.bytes);
  }
  if (staged > 0) move_staged(m, staged);
  if (!in_place) return;  // else peers must not see send change before all have read it
  publish();
  await_step();
}

// The pieces of staged senders, chunk by chunk; the next chunk is written before this one is
// fetched.
void Comm::move_staged(Movement& m, int64_t longest) {
  std::vector<bool> staged(size_);
  for (int r = 0; r < size_; ++r) staged[r] = post_of(r).path == path_staged;
  const int64_t width = static_cast<int64_t>(chunk_bytes) / (m.shared ? 1 : size_) / 64 * 64;
  const int64_t chunks = (longest + width - 1) / width;
  const auto part = [&](int64_t k, int64_t bytes) {
    return std::clamp<int64_t>(bytes - k * width, 0, width);
  };
  const auto write = [&](int64_t k) {
    if (!staged[rank_]) return;
    char* slot = segment_.chunk(rank_, turn_ + k);
    if (m.shared) {
      put(slot, m.send + k * width, part(k, m.out.back()));
      return;
    }
    for (int q = 0; q < size_; ++q)
      if (q != rank_ && part(k, m.out[q + 1] - m.out[q]) > 0)
        put(slot + q * width, m.send + m.out[q] + k * width, part(k, m.out[q + 1] - m.out[q]));
  };
  write(0);
  publish();
  await_step();
  for (int64_t k = 0; k < chunks; ++k) {
    if (k + 1 < chunks) {
      write(k + 1);
      publish();
    }
    for (int r = 0; r < size_; ++r)
      if (staged[r] && r != rank_ && part(k, m.in[r].bytes) > 0)
        take(m.recv + m.in[r].to + k * width,
             segment_.chunk(r, turn_ + k) + (m.shared ? 0 : rank_ * width), part(k, m.in[r].bytes),
             m.in[r].bytes);
    await_step();
  }
  turn_ += chunks;
}

}  // namespace local
