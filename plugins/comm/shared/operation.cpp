// SPDX-License-Identifier: Apache-2.0
#include "operation.h"

#include <time.h>

#include <algorithm>
#include <cstring>
#include <orrery/sdk/descriptor.hpp>
#include <orrery/sdk/plugin.hpp>
#include <orrery/sdk/traffic.hpp>

namespace shared {
namespace {

void cut(char* to, size_t capacity, const char* from) {
  const size_t n = std::min(from ? std::strlen(from) : 0, capacity - 1);
  std::memcpy(to, from ? from : "", n);
  std::memset(to + n, 0, capacity - n);
}

uint64_t mix(uint64_t h, uint64_t word) {
  h = (h ^ word) * 0x9e3779b97f4a7c15;
  return h ^ h >> 32;
}

uint64_t halves(int32_t a, int32_t b) {
  return uint64_t{static_cast<uint32_t>(a)} << 32 | static_cast<uint32_t>(b);
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

std::string labelled(std::string text, const Label& label) {
  if (*label.name) text += std::string(" '") + label.name + "'";
  if (*label.where) text += std::string(" (") + label.where + ")";
  return text;
}

std::string said(const Card& card) {
  std::string text = labelled(orr::traffic::name(card.op), card.label);
  text += " of " + std::to_string(card.count) + " " + orr::dtype_name(card.dtype);
  if (orr::has_root(card.op)) text += ", root " + std::to_string(card.root);
  return text + ", operation " + std::to_string(card.sequence);
}

}  // namespace

Label label_of(const orr_coll& c) {
  Label label;
  cut(label.name, sizeof label.name, c.name);
  cut(label.where, sizeof label.where, c.where);
  return label;
}

Card card_of(const orr_coll& c, int ranks) {
  Card card{};
  card.op = c.op;
  card.dtype = c.op == ORR_COLL_BARRIER ? 0 : c.dtype;
  card.redop = c.redop;
  card.root = orr::has_root(c.op) ? c.root_or_peer : 0;
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

uint64_t fingerprint(const orr_coll& c, int ranks) {
  const int32_t dtype = c.op == ORR_COLL_BARRIER ? 0 : c.dtype;
  const int32_t root = orr::has_root(c.op) ? c.root_or_peer : 0;
  uint64_t h = mix(digest_of(c, ranks), halves(c.op, dtype));
  h = mix(h, halves(c.redop, root));
  return mix(mix(h, static_cast<uint64_t>(c.count)), c.sequence);
}

std::string disagreement(const Card& a, int rank_of_a, const Card& b, int rank_of_b) {
  std::string text = "ranks post different operations: rank " + std::to_string(rank_of_a) + " " +
                     said(a) + "; rank " + std::to_string(rank_of_b) + " " + said(b);
  if (said(a) == said(b)) text += "; counts, leaves or the reduction differ";
  return text;
}

std::string disagreement(const std::vector<Card>& cards, const std::vector<int>& world_of) {
  for (size_t r = 1; r < cards.size(); ++r)
    if (!agree(cards[0], cards[r]))
      return disagreement(cards[0], world_of[0], cards[r], world_of[r]);
  return "";
}

void check(const orr_coll& c, int rank, int ranks, bool any_source, bool device) {
  if (c.op < ORR_COLL_BARRIER || c.op > ORR_COLL_TREE_REDUCE_SCATTER)
    throw orr::Error(ORR_UNIMPLEMENTED, "there is no operation " + std::to_string(c.op));
  if (const std::string why = orr::refusal(c, rank, ranks, any_source, device); !why.empty())
    throw orr::Error(ORR_INVALID, why);
}

bool on_device(const orr_coll& c) {
  return orr::lies_on_device(c.send) || orr::lies_on_device(c.recv);
}

std::string in_operation(const orr_coll* c) {
  return c ? labelled(std::string(" in ") + orr::traffic::name(c->op), label_of(*c))
           : " while forming communicators";
}

std::string end_of_message(int64_t count, int32_t dtype, const Label& label) {
  return labelled(std::to_string(count) + " " + orr::dtype_name(dtype), label);
}

std::string unequal_ends(int sender, const std::string& sent, int receiver,
                         const std::string& wanted) {
  return "rank " + std::to_string(sender) + " sends " + sent + " to rank " +
         std::to_string(receiver) + ", which receives " + wanted;
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
  for (uint64_t word; bytes > 0;) {
    const size_t n = std::min(bytes, sizeof word);
    word = 0;
    std::memcpy(&word, p, n);
    h = mix(h, word);
    p += n, bytes -= n;
  }
  return h;
}

}  // namespace shared
