// SPDX-License-Identifier: Apache-2.0
//
// Collects the totals of a step into buckets (design sections 5 and 8): in the order in which they
// are complete, of one dtype, up to the size that the strategy asked for. A rank with one tree node
// computes straight into the bucket; with several, a copy puts node after node.
#include <algorithm>
#include <map>

#include "base/error.h"
#include "lower/lower.h"

namespace orrery {
namespace {

constexpr int64_t kAlign = 16;  // elements; members start on cache lines

int64_t aligned(int64_t n) { return (n + kAlign - 1) / kAlign * kAlign; }

class Filler {
 public:
  Filler(RankPlan& plan, const LowerRequest& request) : plan_(plan), request_(request) {}

  void run() {
    const Spread& spread = *request_.spread;
    ranks_ = spread.batch_ranks();
    if (ranks_ == 1) return;
    leaf_first_ = deal_leaves(plan_.local.leaves.total, ranks_);
    std::map<int32_t, size_t> open;  // dtype -> bucket still taking members
    for (const Total& t : plan_.local.totals) {
      const Value& v = plan_.local.program.value(t.whole);
      auto reduced = spread.reduced.find(t.origin);
      if (v.role == Role::grad && reduced == spread.reduced.end())
        fail(ORR_FAILED, "{}no strategy reduces the gradient of '{}' over the {} ranks that share the batch",
             v.site.prefix(), v.name, ranks_);
      int64_t limit = reduced == spread.reduced.end() ? 0 : reduced->second.bucket;
      size_t& at = open.try_emplace(v.type.dtype, SIZE_MAX).first->second;
      if (at == SIZE_MAX || full(plan_.buckets[at], limit)) {
        at = plan_.buckets.size();
        plan_.buckets.push_back(fresh(v.type.dtype));
      }
      Bucket& b = plan_.buckets[at];
      if (reduced != spread.reduced.end()) b.cause = reduced->second.cause, b.where = v.site.line;
      b.totals.push_back(t.whole);
      offsets_[t.whole] = b.count;
      b.count += aligned(v.type.elements());
    }
    std::stable_sort(plan_.buckets.begin(), plan_.buckets.end(),
                     [&](const Bucket& a, const Bucket& b) { return completed(a) < completed(b); });
    for (size_t i = 0; i < plan_.buckets.size(); ++i) settle(plan_.buckets[i], i);
  }

 private:
  static bool full(const Bucket& b, int64_t limit) {
    return limit > 0 && b.count * orr_dtype_bytes(b.dtype) >= limit;
  }

  Bucket fresh(int32_t dtype) const {
    Bucket b;
    b.dtype = dtype, b.nodes = plan_.local.nodes, b.leaf_first = leaf_first_;
    b.cause = request_.spread->batch_axis;
    return b;
  }

  const Total& total(ValueId whole) const {
    for (const Total& t : plan_.local.totals)
      if (t.whole == whole) return t;
    fail(ORR_FAILED, "a bucket holds a value that is no total");
  }

  OpId completed(const Bucket& b) const {
    OpId last = kNone;
    for (ValueId v : b.totals)
      last = std::max(last, plan_.local.program.value(total(v).partial).producer);
    return last;
  }

  void settle(Bucket& b, size_t index) {
    int64_t element = orr_dtype_bytes(b.dtype), most = 1;
    for (int r = 0; r < ranks_; ++r)
      most = std::max(most, orr_tree_nodes(leaf_first_[static_cast<size_t>(r)],
                                           leaf_first_[static_cast<size_t>(r) + 1], leaf_first_.back()));
    b.name = fmt::format("bucket {}", index);
    b.bytes_sent = orrery::bytes_sent(b, request_.rank);
    Storage s;
    s.region = Region::comm, s.category = "gradient";
    s.bytes = static_cast<uint64_t>(most * b.count * element);
    plan_.storages.push_back(s);
    b.storage = static_cast<int>(plan_.storages.size()) - 1;
    for (ValueId whole : b.totals) {
      uint64_t offset = static_cast<uint64_t>(offsets_[whole] * element);
      ValueId partial = total(whole).partial;
      if (b.nodes == 1) {
        move(plan_.places[static_cast<size_t>(partial)].storage, b.storage, offset);
        plan_.places[static_cast<size_t>(whole)] = plan_.places[static_cast<size_t>(partial)];
      } else {
        move(plan_.places[static_cast<size_t>(whole)].storage, b.storage, offset);
        pack(b, partial, offset);
      }
    }
  }

  // Everything in storage `from` now lies in `to`.
  void move(int from, int to, uint64_t offset) {
    auto fix = [&](Place& at) {
      if (at.storage == from) at.storage = to, at.offset += offset;
    };
    for (Place& at : plan_.places) fix(at);
    for (Launch& l : plan_.launches) {
      for (Place& at : l.in_at) fix(at);
      for (Place& at : l.out_at) fix(at);
    }
    plan_.storages[static_cast<size_t>(from)].bytes = 0;
  }

  // Copies [nodes, n] into the bucket, `count` elements apart, right after its maker.
  void pack(const Bucket& b, ValueId partial, uint64_t offset) {
    const Place& from = plan_.places[static_cast<size_t>(partial)];
    int64_t n = plan_.local.program.type(partial).elements();
    auto maker = std::find_if(plan_.launches.begin(), plan_.launches.end(), [&](const Launch& l) {
      return std::any_of(l.out_at.begin(), l.out_at.end(),
                         [&](const Place& at) { return at.storage == from.storage; });
    });
    Place source{from.storage, from.offset, {b.dtype, {b.nodes, n}, {n, 1}}};
    Place target{b.storage, offset, {b.dtype, {b.nodes, n}, {b.count, 1}}};
    std::vector<Launch> copies = copy_launches(plan_, maker->op, source, target);
    plan_.launches.insert(maker + 1, copies.begin(), copies.end());
  }

  RankPlan& plan_;
  const LowerRequest& request_;
  int ranks_ = 1;
  std::vector<int64_t> leaf_first_;
  std::map<ValueId, int64_t> offsets_;
};

}  // namespace

void fill_buckets(RankPlan& plan, const LowerRequest& request) { Filler(plan, request).run(); }

// The `local` backend's definition of tree all-reduce traffic: a rank gives its nodes to the owners of
// the other slices and its finished slice to all others. Slices are cut at multiples of kAlign.
uint64_t bytes_sent(const Bucket& b, int rank) {
  int64_t ranks = static_cast<int64_t>(b.leaf_first.size()) - 1;
  auto cut = [&](int64_t r) { return std::min(b.count, aligned((b.count * r + ranks - 1) / ranks)); };
  int64_t share = cut(rank + 1) - cut(rank);
  return static_cast<uint64_t>((b.nodes * (b.count - share) + share * (ranks - 1)) *
                               orr_dtype_bytes(b.dtype));
}

}  // namespace orrery
