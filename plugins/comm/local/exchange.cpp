// SPDX-License-Identifier: Apache-2.0
//
// Posting an operation: is it well-formed here, and do all ranks post the same one? The answer to the
// second question costs nothing extra, for it travels with the first publication of the data.
#include <orrery/sdk/plugin.hpp>

#include <orrery/sdk/traffic.hpp>
#include "arithmetic.h"
#include "comm.h"

namespace local {
namespace {

void cut(char* to, size_t capacity, const char* from) {
  const size_t n = std::min(from ? strlen(from) : 0, capacity - 1);
  std::memcpy(to, from ? from : "", n);
  to[n] = 0;
}

// Everything that must agree and has no field of its own.
uint64_t digest_of(const orr_coll& c, int ranks) {
  uint64_t h = c.name ? hash(c.name, strlen(c.name), 1) : 0;
  const bool sliced = c.op == ORR_COLL_TREE_REDUCE_SCATTER;
  const bool counted = c.op == ORR_COLL_REDUCE_SCATTER || c.op == ORR_COLL_ALL_GATHER || sliced;
  if (counted) h = hash(c.counts, ranks * sizeof(int64_t), h);
  if (sliced) h = hash(c.recv_counts, ranks * sizeof(int64_t), h);
  if (orr::traffic::is_tree(c.op)) h = hash(c.leaf_first, (ranks + 1) * sizeof(int64_t), h);
  return h;
}

bool has_root(int32_t op) { return op == ORR_COLL_BROADCAST || op == ORR_COLL_REDUCE; }

std::string said(const Post& p) {
  std::string text = op_name(p.op);
  if (*p.label.name) text += std::string(" '") + p.label.name + "'";
  if (*p.label.where) text += std::string(" (") + p.label.where + ")";
  text += " of " + std::to_string(p.count) + " " + dtype_name(p.dtype);
  if (has_root(p.op)) text += ", root " + std::to_string(p.root);
  return text + ", operation " + std::to_string(p.sequence);
}

[[noreturn]] void invalid(const orr_coll& c, const std::string& why) {
  throw orr::Error(ORR_INVALID, std::string(op_name(c.op)) + (c.name ? std::string(" '") + c.name + "'" : "") +
                                    ": " + why);
}

void check_bytes(const orr_coll& c, const char* which, const orr_buffer& b, int64_t elements) {
  const uint64_t need = static_cast<uint64_t>(elements * orr_dtype_bytes(c.dtype));
  if (need == 0) return;
  if (!b.memory || !b.memory->host) invalid(c, std::string(which) + " has no host memory");
  if (b.bytes < need)
    invalid(c, std::string(which) + " holds " + std::to_string(b.bytes) + " bytes and needs " +
                   std::to_string(need));
}

// Owners write while others read: no element has two.
void check_slices(const orr_coll& c, int ranks) {
  std::vector<std::pair<int64_t, int64_t>> slices;
  for (int r = 0; r < ranks; ++r)
    if (c.counts[r] > 0) slices.push_back({c.recv_counts[r], c.recv_counts[r] + c.counts[r]});
  std::sort(slices.begin(), slices.end());
  int64_t end = 0;
  for (auto& [first, last] : slices) {
    if (first < end || last > c.count) invalid(c, "its slices overlap or pass its end");
    end = last;
  }
}

}  // namespace

void set_label(Label& label, const orr_coll& c) {
  cut(label.name, sizeof label.name, c.name);
  cut(label.where, sizeof label.where, c.where);
}

const char* op_name(int32_t op) {
  static const char* const names[] = {"nothing",    "barrier",    "broadcast", "all_reduce",
                                      "reduce_scatter", "all_gather", "all_to_all", "send",
                                      "recv",       "reduce",     "tree_all_reduce", "tree_reduce_scatter"};
  return op > 0 && op <= ORR_COLL_TREE_REDUCE_SCATTER ? names[op] : "an unknown operation";
}

const char* dtype_name(int32_t dtype) {
  static const char* const names[] = {"bytes", "f32", "f64", "bf16", "f16", "i32", "i64", "u8", "bool"};
  return dtype >= 0 && dtype <= ORR_BOOL ? names[dtype] : "unknown elements";
}

void Comm::check(const orr_coll& c) const {
  if (c.op < ORR_COLL_BARRIER || c.op > ORR_COLL_TREE_REDUCE_SCATTER)
    throw orr::Error(ORR_UNIMPLEMENTED, "comm 'local' has no operation " + std::to_string(c.op));
  if (c.op == ORR_COLL_BARRIER) return;
  if (orr_dtype_bytes(c.dtype) == 0) invalid(c, "unknown dtype " + std::to_string(c.dtype));
  const bool root_or_peer = has_root(c.op) || c.op == ORR_COLL_SEND || c.op == ORR_COLL_RECV;
  if (root_or_peer && (c.root_or_peer < 0 || c.root_or_peer >= size_))
    invalid(c, "no rank " + std::to_string(c.root_or_peer) + " among " + std::to_string(size_));
  const bool tree = orr::traffic::is_tree(c.op);
  const bool adds = tree || c.op == ORR_COLL_ALL_REDUCE || c.op == ORR_COLL_REDUCE ||
                    c.op == ORR_COLL_REDUCE_SCATTER;
  if (adds && !fold_for(c.dtype, tree ? ORR_RED_SUM : c.redop))
    invalid(c, "cannot reduce " + std::string(dtype_name(c.dtype)) + " with redop " + std::to_string(c.redop));
  if (tree && (!c.leaf_first || c.leaf_first[size_] < 1)) invalid(c, "there are no leaves");
  if (c.op == ORR_COLL_TREE_REDUCE_SCATTER) check_slices(c, size_);
  const bool root = has_root(c.op) && c.root_or_peer == rank_;
  int64_t in = c.count, out = c.count;
  switch (c.op) {
    case ORR_COLL_BROADCAST: (root ? out : in) = 0; break;
    case ORR_COLL_REDUCE: out = root ? c.count : 0; break;
    case ORR_COLL_REDUCE_SCATTER: in = orr::traffic::sum(c.counts, size_); out = c.counts[rank_]; break;
    case ORR_COLL_ALL_GATHER: in = c.counts[rank_]; out = orr::traffic::sum(c.counts, size_); break;
    case ORR_COLL_ALL_TO_ALL:
      in = orr::traffic::sum(c.counts, size_);
      out = orr::traffic::sum(c.recv_counts, size_);
      break;
    case ORR_COLL_SEND: out = 0; break;
    case ORR_COLL_RECV: in = 0; break;
    case ORR_COLL_TREE_REDUCE_SCATTER: out = c.counts[rank_]; [[fallthrough]];
    case ORR_COLL_TREE_ALL_REDUCE: in = c.count * orr::traffic::nodes(c, rank_, size_); break;
    default: break;
  }
  check_bytes(c, "send", c.send, in);
  check_bytes(c, "recv", c.recv, out);
}

Place Comm::place_of(const orr_buffer& b) const {
  if (!b.memory || b.memory->tier != ORR_TIER_COMM) return {};
  for (const auto& region : family_->regions)
    if (&region->memory == b.memory) {
      for (int w : world_of_)
        if (!region->base[w]) return {};
      return {region->id, b.offset};
    }
  return {};
}

char* Comm::peer_address(const Place& place, int peer) const {
  for (const auto& region : family_->regions)
    if (region->id == place.region) return region->base[world_of_[peer]] + place.offset;
  throw orr::Error(ORR_FAILED, "a peer names communication memory that is not known here");
}

void Comm::announce(const orr_coll& c, Path path, uint64_t most) {
  Post& p = segment_.member(rank_).posts[(step_ + 1) & 1];
  p.op = c.op;
  p.dtype = c.op == ORR_COLL_BARRIER ? 0 : c.dtype;
  p.redop = c.redop;
  p.root = has_root(c.op) ? c.root_or_peer : 0;
  p.count = c.count;
  p.sequence = c.sequence;
  p.digest = digest_of(c, size_);
  p.path = path;
  p.most = most;
  p.send = path == path_direct ? place_of(c.send) : Place{};
  p.recv = path == path_direct ? place_of(c.recv) : Place{};
  set_label(p.label, c);
  publish();
  await_step();
  verify_agreement();
}

void Comm::verify_agreement() {
  const Post& a = post_of(0);
  for (int r = 1; r < size_; ++r) {
    const Post& b = post_of(r);
    if (a.op != b.op || a.dtype != b.dtype || a.redop != b.redop || a.root != b.root ||
        a.count != b.count || a.sequence != b.sequence || a.digest != b.digest)
      disagree(r);
  }
}

// All ranks see the same posts, so that all say the same.
void Comm::disagree(int other) {
  std::string text = "ranks post different operations: rank " + std::to_string(world_of_[0]) + " " +
                     said(post_of(0)) + "; rank " + std::to_string(world_of_[other]) + " " +
                     said(post_of(other));
  if (said(post_of(0)) == said(post_of(other))) text += "; counts, leaves or the reduction differ";
  poison(ORR_FAILED, text);
  check_alive();
  throw orr::Error(ORR_FAILED, text);
}

std::vector<int64_t> Comm::gather_words(int64_t mine, const char* name) {
  std::vector<int64_t> all(size_), ones(size_, 1);
  orr_memory in{}, out{};
  in.host = &mine;
  out.host = all.data();
  orr_coll c{};
  c.op = ORR_COLL_ALL_GATHER;
  c.dtype = ORR_I64;
  c.send = {&in, 0, 8};
  c.recv = {&out, 0, 8 * static_cast<uint64_t>(size_)};
  c.counts = ones.data();
  c.name = name;
  current_ = &c;
  check_alive();
  move(c);
  current_ = nullptr;
  return all;
}

void Comm::collective(const orr_coll& c) {
  current_ = &c;
  switch (c.op) {
    case ORR_COLL_BARRIER: announce(c, path_small, 0); break;
    case ORR_COLL_BROADCAST:
    case ORR_COLL_ALL_GATHER:
    case ORR_COLL_ALL_TO_ALL: move(c); break;
    default: reduce(c);
  }
}

// A group's sends and receives start together; its collectives follow in their order.
void Comm::run(const orr_coll* ops, int n) {
  check_alive();
  const auto paired = [](const orr_coll& c) { return c.op == ORR_COLL_SEND || c.op == ORR_COLL_RECV; };
  for (int i = 0; i < n; ++i) check(ops[i]);
  transfer(ops, n);
  for (int i = 0; i < n; ++i)
    if (!paired(ops[i])) collective(ops[i]);
  current_ = nullptr;
  uint64_t sent = 0;
  for (int i = 0; i < n; ++i) sent += orr::traffic::bytes_sent(ops[i], rank_, size_);
  bytes_sent_.fetch_add(sent, std::memory_order_relaxed);
}

}  // namespace local
