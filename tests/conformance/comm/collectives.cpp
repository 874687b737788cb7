// SPDX-License-Identifier: Apache-2.0
//
// Every collective of every backend against the scalar model on 1 to 5 ranks. The ranks check for
// themselves; a body's failure names operation, dtype, count and place.
#include "conformance/comm/bodies.h"

#include <fmt/format.h>

#include <algorithm>

#include <orrery/sdk/traffic.hpp>

#include "conformance/comm/model.h"
#include "conformance/comm/peer.h"

namespace comm_suite {
namespace {

constexpr uint64_t half_slab = 8 << 20;
constexpr int64_t counts[] = {0, 1, 3, 1023, 1024, 1025, 100003};

// One case: where the data lies and of what type it is.
struct Case {
  int dtype, redop;
  int64_t count;
  bool in_place;
  const char* place;
};

void expect(const char* what, const Case& k, const char* got, Bytes want) {
  if (want.empty() || std::memcmp(want.data(), got, want.size()) == 0) return;
  const size_t i = std::mismatch(want.begin(), want.end(), got).first - want.begin();
  fail(ORR_FAILED, "{}: dtype {} redop {} count {} in_place {} {}: byte {} of {} differs", what,
       k.dtype, k.redop, k.count, k.in_place, k.place, i, want.size());
}

// What a backend that adds in an order of its own may give: integers and what only compares as the
// model has it, other sums and products within the rounding of every add. The model is `want`, of
// `sizes` the sum or product of the magnitudes.
void expect_near(const char* what, const Case& k, int ranks, const char* got, Bytes want,
                 Bytes sizes) {
  if (k.redop >= ORR_RED_MIN || k.dtype > ORR_F16) return expect(what, k, got, want);
  const int digits[] = {0, 24, 53, 8, 11};
  const double eps = std::ldexp(ranks, 1 - digits[k.dtype]);
  const double floor =
      k.dtype == ORR_F16 ? std::ldexp(ranks, -20) : 0;  // of numbers without full precision
  const int64_t unit = orr_dtype_bytes(k.dtype);
  const auto value = [&](const char* p) {
    return k.dtype == ORR_F64 ? load(k.dtype, p).d : load(k.dtype, p).f;
  };
  for (size_t at = 0; at < want.size(); at += unit) {
    const double difference = std::abs(value(got + at) - value(want.data() + at));
    if (!(difference <= eps * value(sizes.data() + at) + floor))
      fail(ORR_FAILED, "{}: dtype {} redop {} count {} in_place {} {}: element {} is off by {}",
           what, k.dtype, k.redop, k.count, k.in_place, k.place, at / unit, difference);
  }
}

// Runs operations over one slab: send in its first half, recv in its second or in place.
struct Bench {
  Peer& peer;
  Slab& slab;
  uint64_t half;  // of the slab
  int P, me, guises = 0;
  int owner = -1;  // who has all elements, the others an empty part; -1: all have some
  Bench(Peer& p, Slab& s, uint64_t h = half_slab)
      : peer(p), slab(s), half(h), P(p.size()), me(p.rank()) {}

  // Posts `c` with these bytes to send; recv starts `shift` bytes after send when in place.
  char* post(orr_coll c, const Case& k, Bytes send, uint64_t recv_bytes, int64_t shift = 0) {
    const uint64_t from = 1 << 20,
                   to = k.in_place ? from + static_cast<uint64_t>(shift) : half + from;
    std::memset(slab.at(half + from), 0x5A, recv_bytes + 64);
    std::copy(send.begin(), send.end(), slab.at(from));
    c.send = part(from, send.size());
    c.recv = part(to, recv_bytes);
    c.count = c.counts && c.op != ORR_COLL_TREE_REDUCE_SCATTER ? 0 : k.count;
    c.name = "case";
    const uint64_t before = peer.api.bytes_sent(peer.comm);
    peer.post(c);
    const uint64_t sent = peer.api.bytes_sent(peer.comm) - before;
    if (orrery::is_native(peer.caps(), c) && sent != orr::traffic::bytes_sent(c, me, P))
      fail(ORR_FAILED, "counted {} bytes sent", sent);
    if (!k.in_place) expect_nothing_else(c, send, recv_bytes);
    return slab.at(to);
  }

  // What is empty comes in turns as a place in memory, as memory without an address, and as none.
  orr_buffer part(uint64_t offset, uint64_t bytes) {
    static const orr_memory empty = {sizeof empty, ORR_TIER_HOST, 0,      nullptr,
                                     nullptr,      "host",        nullptr};
    if (bytes > 0) return slab.part(offset, bytes);
    const int guise = guises++ % 3;
    return guise == 0 ? slab.part(offset, 0) : orr_buffer{guise == 1 ? &empty : nullptr, 0, 0};
  }

  // Of an operation that is not in place: its input is as it was, and so is what lies behind its
  // output.
  void expect_nothing_else(const orr_coll& c, Bytes send, uint64_t recv_bytes) {
    if (!send.empty() && !std::equal(send.begin(), send.end(), slab.at(c.send.offset)))
      fail(ORR_FAILED, "{}: it wrote into what it sends", orr::traffic::name(c.op));
    if (recv_bytes == 0) return;
    const char* behind = slab.at(c.recv.offset + recv_bytes);
    if (std::count(behind, behind + 64, 0x5A) != 64)
      fail(ORR_FAILED, "{}: it wrote behind what it receives", orr::traffic::name(c.op));
  }

  // Uneven parts of n elements, one empty where there are three ranks or more.
  std::vector<int64_t> parts(int64_t n) const {
    std::vector<int64_t> out(P, 0);
    if (owner >= 0) return out[owner] = n, out;
    for (int r = 0; r < P; ++r) out[r] = r == 1 && P > 2 ? 0 : n / (r + 2);
    out[P - 1] += n - orr::traffic::sum(out.data(), P);
    return out;
  }

  void reductions(const Case& k) {
    const int64_t unit = orr_dtype_bytes(k.dtype), bytes = k.count * unit;
    const Bytes mine = numbers(k.dtype, me, k.count), want = folded(k.dtype, k.redop, P, k.count);
    const bool ordered = peer.has(ORR_COMM_DETERMINISTIC) || !adds_itself(k.dtype);
    const Bytes sizes = ordered ? want : folded(k.dtype, k.redop, P, k.count, magnitudes);
    const auto expect = [&](const char* what, const char* got, int64_t from, int64_t n) {
      const auto part = [&](Bytes all) {
        return all.subspan(static_cast<size_t>(from), static_cast<size_t>(n));
      };
      if (ordered) return comm_suite::expect(what, k, got, part(want));
      expect_near(what, k, P, got, part(want), part(sizes));
    };
    orr_coll c = Peer::make(ORR_COLL_ALL_REDUCE, k.dtype, k.redop);
    expect("all_reduce", post(c, k, mine, bytes), 0, bytes);
    c.op = ORR_COLL_REDUCE;
    c.root_or_peer = P - 1;
    const char* got = post(c, k, mine, bytes);
    if (me == P - 1) expect("reduce", got, 0, bytes);
    c = Peer::make(ORR_COLL_REDUCE_SCATTER, k.dtype, k.redop);
    const std::vector<int64_t> n = parts(k.count);
    c.counts = n.data();
    const int64_t at = orr::traffic::sum(n.data(), me) * unit, own = n[me] * unit;
    got = post(c, k, mine, own, at);
    expect("reduce_scatter", got, at, own);
  }

  void broadcast(const Case& k) {
    orr_coll c = Peer::make(ORR_COLL_BROADCAST, k.dtype);
    c.root_or_peer = P / 2;
    const Bytes data = numbers(k.dtype, 7, k.count);
    const std::vector<char> none(data.size());
    const char* got = post(c, k, me == P / 2 ? data : Bytes(none), data.size());
    expect("broadcast", k, got, data);
  }

  void all_gather(const Case& k) {
    const int64_t unit = orr_dtype_bytes(k.dtype);
    const std::vector<int64_t> n = parts(k.count);
    const Bytes all = numbers(k.dtype, 9, k.count);
    const int64_t at = orr::traffic::sum(n.data(), me) * unit;
    const Bytes mine = all.subspan(static_cast<size_t>(at), static_cast<size_t>(n[me] * unit));
    orr_coll c = Peer::make(ORR_COLL_ALL_GATHER, k.dtype);
    c.counts = n.data();
    expect("all_gather", k, post(c, k, mine, all.size(), -at), all);
  }

  // Rank r sends n * (r + 1) / (P + q) elements to rank q; with an owner, all is for it.
  void all_to_all(const Case& k) {
    const auto size = [&](int r, int q) {
      return owner >= 0 ? (q == owner ? k.count : 0) : k.count * (r + 1) / (P * P + q);
    };
    std::vector<int64_t> out(P), in(P);
    std::vector<char> send, want;
    for (int q = 0; q < P; ++q) {
      out[q] = size(me, q);
      in[q] = size(q, me);
      const auto sent = numbers(k.dtype, me * P + q, out[q]),
                 got = numbers(k.dtype, q * P + me, in[q]);
      send.insert(send.end(), sent.begin(), sent.end());
      want.insert(want.end(), got.begin(), got.end());
    }
    orr_coll c = Peer::make(ORR_COLL_ALL_TO_ALL, k.dtype);
    c.counts = out.data();
    c.recv_counts = in.data();
    expect("all_to_all", k, post(c, k, send, want.size()), want);
  }

  // Leaves dealt unevenly; with `empty`, rank 1 has none.
  void tree_all_reduce(const Case& k, int64_t leaves, bool empty) {
    std::vector<int64_t> first(P + 1, 0);
    for (int r = 0; r < P; ++r) first[r + 1] = leaves * (r + 1) * (r + 1) / (P * P);
    if (empty && P > 1) first[2] = first[1];
    if (owner >= 0)
      for (int r = 0; r < P; ++r) first[r + 1] = r < owner ? 0 : leaves;
    first[P] = leaves;
    std::vector<char> send;
    for (int64_t at = first[me]; at < first[me + 1];) {
      const int64_t lo = at, n = orr_tree_node(&at, first[me + 1], leaves);
      int64_t width = 1;
      while (width < n) width *= 2;
      const auto node = tree(k.dtype, lo, width, leaves, k.count);
      send.insert(send.end(), node.begin(), node.end());
    }
    int64_t width = 1;
    while (width < leaves) width *= 2;
    const auto want = tree(k.dtype, 0, width, leaves, k.count);
    orr_coll c = Peer::make(ORR_COLL_TREE_ALL_REDUCE, k.dtype);
    c.leaf_first = first.data();
    expect(fmt::format("tree of {} leaves", leaves).c_str(), k, post(c, k, send, want.size()),
           want);
    tree_reduce_scatter(c, k, send, want);
  }

  // Slices in another order than the ranks', with gaps between them.
  void tree_reduce_scatter(orr_coll c, const Case& k, Bytes send, Bytes whole) {
    const int64_t unit = orr_dtype_bytes(k.dtype);
    const std::vector<int64_t> extents = parts(k.count);
    std::vector<int64_t> n(P), at(P);
    for (int r = 0; r < P; ++r) {
      const int slot = (r + 1) % P;
      n[r] = extents[slot] - extents[slot] / 7;
      at[r] = orr::traffic::sum(extents.data(), slot) + extents[slot] / 7;
    }
    c.op = ORR_COLL_TREE_REDUCE_SCATTER;
    c.counts = n.data(), c.recv_counts = at.data();
    const int64_t from = at[me] * unit, bytes = n[me] * unit;
    expect("tree_reduce_scatter", k, post(c, k, send, bytes, from),
           whole.subspan(static_cast<size_t>(from), static_cast<size_t>(bytes)));
  }

  const char* place() const {
    return slab.part(0, 0).memory->tier == ORR_TIER_COMM ? "registered" : "private";
  }

  // Else the core composes the sum, of any dtype.
  bool adds_itself(int dtype) const { return peer.caps().dtypes >> dtype & 1; }

  // What is long may take other ways than what is short.
  void long_ones() {
    for (bool in_place : {false, true}) {
      const Case k{ORR_F64, ORR_RED_SUM, 700001, in_place, place()};
      reductions(k);
      broadcast(k);
      if (!in_place) all_gather(k);
    }
  }

  // No elements, or all of them one rank's.
  void empties() {
    for (owner = 0; owner < P; ++owner)
      for (int64_t n : {0, 1, 5000})
        for (int round = 0; round < 3; ++round)
          for (int dtype : {ORR_F32, ORR_U8}) {
            const Case k{dtype, ORR_RED_SUM, n, round == 1, place()};
            reductions(k);
            if (dtype == ORR_F32) tree_all_reduce(k, 5, false);
            broadcast(k);
            all_gather(k);
            all_to_all(k);
          }
  }

  // Each pair of dtype, operation and count has memory of its own or works in place, in turns.
  void all(bool quick, bool composed) {
    for (int64_t n : counts) {
      if (composed && n > 2000) continue;  // long_ones has them
      for (bool in_place : {false, true}) {
        for (int dtype = ORR_F32; dtype <= ORR_U8; ++dtype)
          for (int redop = ORR_RED_SUM; redop <= ORR_RED_MAX; ++redop)
            if (quick ? redop == 1 + dtype % 4 : in_place == ((dtype + redop + n) % 2 == 1))
              reductions({dtype, redop, n, in_place, place()});
        for (int dtype : {ORR_F64, ORR_U8, ORR_BOOL}) {
          const Case k{dtype, 0, n, in_place, place()};
          broadcast(k);
          all_gather(k);
          all_to_all(k);
        }
        for (int dtype : {ORR_F32, ORR_BF16, ORR_F16, ORR_F64})
          for (int64_t leaves : {1, 2, 3, 5, 6, 12, 13})
            for (bool empty : {false, true})
              if (quick ? leaves == 5 || leaves == 12
                        : (in_place == empty) == ((leaves + n) % 2 == 1))
                if (n < 100000 || leaves == 6 || leaves == 5)
                  tree_all_reduce({dtype, ORR_RED_SUM, n, in_place, place()}, leaves, empty);
      }
    }
  }
};

int collectives(const std::string& backend, const std::string&) {
  Peer peer(backend);
  for (bool registered : peer.places()) {
    Slab slab(peer, registered, 2 * half_slab);
    Bench bench(peer, slab);
    const bool composed = peer.caps().dtypes == 0;
    bench.all(composed || peer.size() == 3 || peer.size() == 5, composed);
    bench.long_ones();
  }
  return 0;
}

int empties(const std::string& backend, const std::string&) {
  Peer peer(backend);
  for (bool registered : peer.places()) {
    Slab slab(peer, registered, 2 * half_slab);
    Bench(peer, slab).empties();
  }
  return 0;
}

// Parent and children, used in turns; ranks ordered by a key that turns their order around.
int splits(const std::string& backend, const std::string&) {
  Peer peer(backend);
  const int P = peer.size(), me = peer.rank();
  Slab slab(peer, peer.places().back(), 2 * half_slab);
  for (int round = 0; round < 3; ++round) {
    const bool out = me == round % P && P > 2;
    Peer child(peer, out ? -1 : me % 2, -me);
    if (out && child.comm) fail(ORR_FAILED, "color -1 got a communicator");
    if (!out && !child.comm) fail(ORR_FAILED, "color {} got no communicator", me % 2);
    if (child.comm) {
      std::vector<int32_t> want;
      for (int r = P - 1; r >= 0; --r)
        if (r % 2 == me % 2 && !(r == round % P && P > 2)) want.push_back(r);
      if (want[child.rank()] != me)
        fail(ORR_FAILED, "rank {} of the child is {}", child.rank(), me);
      Bench in(child, slab);
      in.reductions({ORR_F32, ORR_RED_SUM, 70001, true, "child"});
      in.all_gather({ORR_I32, 0, 5001, false, "child"});
    }
    Bench(peer, slab).reductions({ORR_F32, ORR_RED_SUM, 40001, false, "parent"});
  }
  return 0;
}

// Many communicators at once, each with memory of its own: what belongs to one is not taken for
// another's.
int siblings(const std::string& backend, const std::string&) {
  Peer peer(backend);
  const int me = peer.rank();
  constexpr uint64_t half = 2 << 20;
  std::vector<std::unique_ptr<Peer>> children;
  std::vector<std::unique_ptr<Slab>> slabs;
  for (int i = 0; i < 16; ++i) {
    children.push_back(std::make_unique<Peer>(peer, i % 2 ? i * 3 % 8 : (me + i) / 2, me));
    slabs.push_back(std::make_unique<Slab>(*children.back(), peer.places().back(), 2 * half));
  }
  for (size_t i = 0; i < children.size(); ++i)
    Bench(*children[i], *slabs[i], half).reductions({ORR_F32, ORR_RED_SUM, 70001, true, "sibling"});
  return 0;
}

// All ranks write their parts, each at other offsets in every round, and read everything behind a
// barrier; behind the next one they write again.
void share(Peer& peer, const orr_memory& memory, uint64_t parts) {
  auto* words = static_cast<uint64_t*>(memory.host);
  const auto P = static_cast<uint64_t>(peer.size()), me = static_cast<uint64_t>(peer.rank());
  const auto word = [](uint64_t i, uint64_t round) { return i * 0x9E3779B97F4A7C15 + round; };
  for (uint64_t round = 0; round < 20; ++round) {
    for (uint64_t i = 0; i < parts; ++i)
      if ((i + round) % P == me) words[i] += round == 0 ? word(i, 0) : 1;
    peer.barrier();
    for (uint64_t i = 0; i < parts; ++i)
      if (words[i] != word(i, round))
        fail(ORR_FAILED, "word {} of shared memory is {:x} in round {}, not {:x}", i, words[i],
             round, word(i, round));
    peer.barrier();
  }
}

int shared(const std::string& backend, const std::string&) {
  Peer peer(backend);
  if (!peer.has(ORR_COMM_SHARED)) return 0;
  for (uint64_t words : {uint64_t{1}, uint64_t{1000}, uint64_t{400000}}) {
    orr_memory* memory = nullptr;
    check(peer.api.allocate_shared(peer.comm, words * 8, &memory));
    if (memory->bytes < words * 8 || memory->tier != ORR_TIER_COMM)
      fail(ORR_FAILED, "{} bytes of shared memory of tier {}, not {}", memory->bytes, memory->tier,
           words * 8);
    share(peer, *memory, words);
    peer.api.free(peer.comm, memory);
  }
  return 0;
}

}  // namespace

std::vector<NamedBody> collective_bodies() {
  return {{"collectives", collectives},
          {"empties", empties},
          {"splits", splits},
          {"siblings", siblings},
          {"shared", shared}};
}

}  // namespace comm_suite
