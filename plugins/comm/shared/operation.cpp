// SPDX-License-Identifier: Apache-2.0
#include "operation.h"

#include <time.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include <orrery/sdk/fold.hpp>
#include <orrery/sdk/plugin.hpp>
#include <orrery/sdk/traffic.hpp>


namespace shared {
namespace {

void cut(char* to, size_t capacity, const char* from) {
  const size_t n = std::min(from ? std::strlen(from) : 0, capacity - 1);
  std::memcpy(to, from ? from : "", n);
  to[n] = 0;
}

uint64_t digest_of(const orr_coll& c, int ranks) {
  uint64_t h = c.name ? hash(c.name, std::strlen(c.name), 1) : 0;
  const bool sliced = c.op == ORR_COLL_TREE_REDUCE_SCATTER;
  const bool counted = c.op == ORR_COLL_REDUCE_SCATTER || c.op == ORR_COLL_ALL_GATHER || sliced;
  if (counted) h = hash(c.counts, ranks * sizeof(int64_t), h);
  if (sliced) h = hash(c.recv_counts, ranks * sizeof(int64_t), h);
  if (orr::traffic::is_tree(c.op)) h = hash(c.leaf_first, (ranks + 1) * sizeof(int64_t), h);
  return h;
}

bool has_root(int32_t op) { return op == ORR_COLL_BROADCAST || op == ORR_COLL_REDUCE; }

std::string labelled(std::string text, const Label& label) {
  if (*label.name) text += std::string(" '") + label.name + "'";
  if (*label.where) text += std::string(" (") + label.where + ")";
  return text;
}

std::string said(const Card& card) {
  std::string text = labelled(orr::traffic::name(card.op), card.label);
  text += " of " + std::to_string(card.count) + " " + dtype_name(card.dtype);
  if (has_root(card.op)) text += ", root " + std::to_string(card.root);
  return text + ", operation " + std::to_string(card.sequence);
}

[[noreturn]] void invalid(const orr_coll& c, const std::string& why) {
  throw orr::Error(ORR_INVALID, std::string(orr::traffic::name(c.op)) +
                                    (c.name ? std::string(" '") + c.name + "'" : "") + ": " + why);
}

bool lies_on_device(const orr_buffer& b) { return b.memory && b.memory->tier == ORR_TIER_DEVICE; }

void check_bytes(const orr_coll& c, const char* which, const orr_buffer& b, int64_t elements, bool device) {
  const uint64_t need = static_cast<uint64_t>(elements * orr_dtype_bytes(c.dtype));
  if (need == 0) return;
  const bool reachable = b.memory && (b.memory->host || (device && lies_on_device(b)));
  if (!reachable) invalid(c, std::string(which) + " has no host memory");
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

void check_buffers(const orr_coll& c, int rank, int ranks, bool device) {
  const bool root = has_root(c.op) && c.root_or_peer == rank;
  int64_t in = c.count, out = c.count;
  switch (c.op) {
    case ORR_COLL_BROADCAST: (root ? out : in) = 0; break;
    case ORR_COLL_REDUCE: out = root ? c.count : 0; break;
    case ORR_COLL_REDUCE_SCATTER: in = orr::traffic::sum(c.counts, ranks); out = c.counts[rank]; break;
    case ORR_COLL_ALL_GATHER: in = c.counts[rank]; out = orr::traffic::sum(c.counts, ranks); break;
    case ORR_COLL_ALL_TO_ALL:
      in = orr::traffic::sum(c.counts, ranks);
      out = orr::traffic::sum(c.recv_counts, ranks);
      break;
    case ORR_COLL_SEND: out = 0; break;
    case ORR_COLL_RECV: in = 0; break;
    case ORR_COLL_TREE_REDUCE_SCATTER: out = c.counts[rank]; [[fallthrough]];
    case ORR_COLL_TREE_ALL_REDUCE: in = c.count * orr::traffic::nodes(c, rank, ranks); break;
    default: break;
  }
  check_bytes(c, "send", c.send, in, device);
  check_bytes(c, "recv", c.recv, out, device);
}

}  // namespace

Label label_of(const orr_coll& c) {
  Label label{};
  cut(label.name, sizeof label.name, c.name);
  cut(label.where, sizeof label.where, c.where);
  return label;
}

Card card_of(const orr_coll& c, int ranks) {
  Card card{};
  card.op = c.op;
  card.dtype = c.op == ORR_COLL_BARRIER ? 0 : c.dtype;
  card.redop = c.redop;
  card.root = has_root(c.op) ? c.root_or_peer : 0;
  card.count = c.count;
  card.sequence = c.sequence;
  card.digest = digest_of(c, ranks);
  card.label = label_of(c);
  return card;
}

bool agree(const Card& a, const Card& b) {
  return a.op == b.op && a.dtype == b.dtype && a.redop == b.redop && a.root == b.root &&
         a.count == b.count && a.sequence == b.sequence && a.digest == b.digest;
}

std::string disagreement(const Card& a, int rank_of_a, const Card& b, int rank_of_b) {
  std::string text = "ranks post different operations: rank " + std::to_string(rank_of_a) + " " +
                     said(a) + "; rank " + std::to_string(rank_of_b) + " " + said(b);
  if (said(a) == said(b)) text += "; counts, leaves or the reduction differ";
  return text;
}

void check(const orr_coll& c, int rank, int ranks, bool any_source, bool device) {
  if (c.op < ORR_COLL_BARRIER || c.op > ORR_COLL_TREE_REDUCE_SCATTER)
    throw orr::Error(ORR_UNIMPLEMENTED, "there is no operation " + std::to_string(c.op));
  if (c.op == ORR_COLL_BARRIER) return;
  if (orr_dtype_bytes(c.dtype) == 0) invalid(c, "unknown dtype " + std::to_string(c.dtype));
  const bool any = any_source && c.op == ORR_COLL_RECV && c.root_or_peer == -1;
  if ((has_root(c.op) || paired(c)) && !any && (c.root_or_peer < 0 || c.root_or_peer >= ranks))
    invalid(c, "no rank " + std::to_string(c.root_or_peer) + " among " + std::to_string(ranks));
  const bool tree = orr::traffic::is_tree(c.op);
  const bool adds = tree || c.op == ORR_COLL_ALL_REDUCE || c.op == ORR_COLL_REDUCE ||
                    c.op == ORR_COLL_REDUCE_SCATTER;
  if (adds && !orr::fold_for(c.dtype, tree ? ORR_RED_SUM : c.redop))
    invalid(c, "cannot reduce " + std::string(dtype_name(c.dtype)) + " with redop " +
                   std::to_string(c.redop));
  if (tree && (!c.leaf_first || c.leaf_first[ranks] < 1)) invalid(c, "there are no leaves");
  if (c.op == ORR_COLL_TREE_REDUCE_SCATTER) check_slices(c, ranks);
  check_buffers(c, rank, ranks, device);
}

bool on_device(const orr_coll& c) { return lies_on_device(c.send) || lies_on_device(c.recv); }

const char* dtype_name(int32_t dtype) {
  static const char* const names[] = {"bytes", "f32", "f64", "bf16", "f16", "i32", "i64", "u8", "bool"};
  return dtype >= 0 && dtype <= ORR_BOOL ? names[dtype] : "unknown elements";
}

std::string in_operation(const orr_coll* c) {
  return c ? labelled(std::string(" in ") + orr::traffic::name(c->op), label_of(*c))
           : " while forming communicators";
}

std::string end_of_message(int64_t count, int32_t dtype, const Label& label) {
  return labelled(std::to_string(count) + " " + dtype_name(dtype), label);
}

std::string unequal_ends(int sender, const std::string& sent, int receiver, const std::string& wanted) {
  return "rank " + std::to_string(sender) + " sends " + sent + " to rank " + std::to_string(receiver) +
         ", which receives " + wanted;
}

std::string seconds(int64_t ns) {
  char text[32];
  snprintf(text, sizeof text, "%g s", static_cast<double>(ns / 1000000) / 1000);
  return text;
}

int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * int64_t{1000000000} + t.tv_nsec;
}

uint64_t hash(const void* data, size_t bytes, uint64_t seed) {
  const auto* p = static_cast<const unsigned char*>(data);
  // Seeds that differ by little must not meet data that differ by as little: colours of splits.
  uint64_t h = (seed + 0xcbf29ce484222325) * 0x9e3779b97f4a7c15;
  h ^= h >> 29;
  for (size_t i = 0; i < bytes; ++i) h = (h ^ p[i]) * 0x100000001b3;
  return h;
}

}  // namespace shared
