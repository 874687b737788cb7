// SPDX-License-Identifier: Apache-2.0
//
// Collects the totals of a step into buckets: this is where the all-reduce of gradients is made,
// and under sharded training state the reduce-scatter (docs/design.md, "Sums in canonical order").
// Three ranks with one microbatch each, and the gradients dw f32[100] and db f32[10]:
//
//   Total dw, Total db   ->   bucket 0: f32[128], dw at element 0 and db at 112, one exchange
//
// A bucket has totals of one dtype, in the order in which they are complete, up to the size that
// the strategy asked for. How summands get there depends on how a rank runs its microbatches:
//
// - all in one call, whose summands are one tree node: the op that makes them writes into the
// bucket;
// - all in one call, several nodes: a copy puts the nodes into the bucket, one after another;
// - a call each: the bucket is a stack of nodes that wait for their neighbours
//   (partition/timetable.h), and the op writes into its top;
// - a call each, with fast sums (Mesh::fast_sums): a launch adds each microbatch's summand to the
//   bucket. Those of 16 bits are added in f32 beside it, since a sum of 16 bits would stop growing
//   after some hundred.

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "base/error.h"
#include "lower/kernels/launch_inserter.h"
#include "lower/kernels/launcher.h"
#include "lower/kernels/moved_storages.h"
#include "lower/lower.h"
#include "lower/wholes.h"

namespace orrery {
namespace {

constexpr int64_t kAlign = 16;  // elements; members start on cache lines

int64_t aligned(int64_t n) { return (n + kAlign - 1) / kAlign * kAlign; }

class BucketFiller {
 public:
  BucketFiller(RankPlan& plan, const std::vector<int64_t>& first_microbatch)
      : plan_(plan),
        mesh_(plan.mesh),
        microbatches_(plan.local.microbatches),
        first_microbatch_(first_microbatch) {
    for (const Total& t : plan.local.totals) total_of_.try_emplace(t.whole, &t);
  }

  void run() {
    collect();
    std::stable_sort(buckets_.begin(), buckets_.end(), [&](const Exchange& a, const Exchange& b) {
      return completed_by(a) < completed_by(b);
    });
    for (Exchange& b : buckets_) finish(b);
    moves_.carry_out();
  }

 private:
  // What the members of a bucket have in common: the axis, and Total::gathered; the dtype; the
  // segment and chunk that make them, where microbatches run in a call each; unit and use of
  // SumShards; Total::early and in_pieces.
  using Key = std::tuple<std::string, std::string, int32_t, Segment, int, std::array<int64_t, 4>>;

  Key key_of(const Total& t) const {
    const Value& v = plan_.local.program.value(t.partial);
    const auto maker = static_cast<size_t>(v.producer);
    const SumShards whole, &pieces = t.is_cut() ? *t.pieces : whole;
    const std::array<int64_t, 4> members = {pieces.unit, pieces.use, t.early, t.in_pieces};
    if (!microbatches_.one_by_one)
      return {t.axis, t.gathered, v.type.dtype, Segment::backward, 0, members};
    const int stage = plan_.local.program.ops()[maker].stage;
    return {t.axis, "", v.type.dtype, plan_.segments[maker], stage, members};
  }

  // Whether a bucket is a stack of tree nodes.
  bool stacks() const { return microbatches_.one_by_one && !mesh_.fast_sums; }
  int ranks(const std::string& axis) const { return mesh_.size_of(axis); }

  // The microbatches of the ranks that complete a sum, by their coordinate on the axis.
  std::vector<int64_t> leaf_first(const Total& t) const {
    return microbatches_on(mesh_, first_microbatch_, t.axis, plan_.rank, t.gathered);
  }

  // Divides the totals into buckets. A sum that no other rank has a summand of needs none, if all
  // of this rank's microbatches run in one call. Totals in pieces are a bucket each, which takes
  // memory only from when it is complete.
  void collect() {
    std::map<Key, size_t> open;  // the bucket that still takes members
    for (const Total& t : plan_.local.totals) {
      const Value& v = plan_.local.program.value(t.whole);
      if (ranks(t.axis) == 1 && !microbatches_.one_by_one) continue;
      auto reduced = mesh_.reduced.find(t.logical);
      check_reduced(t, v, reduced == mesh_.reduced.end() ? "" : reduced->second.axis);
      int64_t limit = t.is_cut() || reduced == mesh_.reduced.end() ? 0 : reduced->second.bucket;
      size_t& at = open.try_emplace(key_of(t), SIZE_MAX).first->second;
      if (at == SIZE_MAX || is_full(buckets_[at], limit) || t.in_pieces) {
        at = buckets_.size();
        buckets_.push_back(new_bucket(v.type.dtype, t));
        if (t.is_cut()) buckets_[at].op = ORR_COLL_TREE_REDUCE_SCATTER;
      }
      Exchange& b = buckets_[at];
      if (reduced != mesh_.reduced.end()) b.origin = reduced->second.origin, b.where = v.site.line;
      if (t.is_cut()) b.origin = t.pieces->origin;
      b.totals.push_back(t.whole);
      add_member(b, t);
    }
    for (Exchange& b : buckets_)
      if (b.op == ORR_COLL_TREE_REDUCE_SCATTER) order_pieces(b);
  }

  // Throws Error if no strategy has asked for the sum of a gradient over all axes that it needs.
  void check_reduced(const Total& t, const Value& v, const std::string& over) const {
    if (v.role != Role::grad || t.is_cut()) return;
    for (const std::string& axis : factors_of(t.axis))
      if (ranks(axis) > 1 && !has_axis(over, axis))
        fail(ORR_FAILED,
             "{}no strategy reduces the gradient of '{}' over axis '{}', whose {} ranks share the "
             "batch",
             v.site.prefix(), v.name, axis, ranks(axis));
  }

  void add_member(Exchange& b, const Total& t) {
    offsets_[t.whole] = b.count;
    b.count += aligned(plan_.local.program.type(t.partial).elements());
  }

  // Puts the members of a reduce-scatter in the order of the unit, in which a rank's pieces are
  // neighbours, and sets which elements each rank gets.
  void order_pieces(Exchange& b) {
    std::sort(b.totals.begin(), b.totals.end(), [&](ValueId a, ValueId c) {
      return total(a).pieces->member < total(c).pieces->member;
    });
    b.count = 0;
    for (ValueId whole : b.totals) add_member(b, total(whole));
    for (size_t r = 0; r < static_cast<size_t>(ranks(b.axis)); ++r) {
      int64_t begin = 0, end = 0;
      for (ValueId whole : b.totals) {
        const SumShards& pieces = *total(whole).pieces;
        if (pieces.count[r] == 0) continue;
        if (end == 0) begin = offsets_[whole] + pieces.begin[r];
        end = offsets_[whole] + pieces.begin[r] + pieces.count[r];
      }
      b.begins.push_back(begin), b.counts.push_back(end - begin);
    }
  }

  static bool is_full(const Exchange& b, int64_t limit) {
    return limit > 0 && b.count * orr_dtype_bytes(b.dtype) >= limit;
  }

  Exchange new_bucket(int32_t dtype, const Total& t) const {
    Exchange b;
    if (ranks(t.axis) > 1) b.axis = t.axis;
    b.dtype = dtype, b.nodes = t.nodes, b.leaf_first = leaf_first(t);
    // A plain all_reduce adds a summand of each rank, so each must have one: with fast sums, a rank
    // with microbatches has one leaf of the tree.
    const bool all_have_samples = b.leaf_first.back() == ranks(t.axis);
    b.op = mesh_.fast_sums && all_have_samples ? ORR_COLL_ALL_REDUCE : ORR_COLL_TREE_ALL_REDUCE;
    b.origin = mesh_.maker_of(t.axis);
    return b;
  }

  const Total& total(ValueId whole) const {
    const auto at = total_of_.find(whole);
    if (at == total_of_.end()) fail(ORR_FAILED, "a bucket holds a value that is no total");
    return *at->second;
  }

  // The op that makes the last of the bucket's summands.
  OpId completed_by(const Exchange& b) const {
    OpId last = kNone;
    for (ValueId v : b.totals)
      last = std::max(last, plan_.local.program.value(total(v).partial).producer);
    return last;
  }

  // How many tree nodes a bucket of such sums has memory for: as many as the rank with the most,
  // since registered memory has the same size on all ranks.
  int64_t most_nodes(const Total& t) {
    auto [known, fresh] = most_nodes_.try_emplace({t.axis, t.gathered}, 1);
    if (!fresh) return known->second;
    const std::string others = without_axis(mesh_.batch_axis, t.axis);
    for (int g = 0; g < mesh_.size_of(others); ++g) {
      const auto first = microbatches_on(mesh_, first_microbatch_, t.axis,
                                         mesh_.peer(others, g, plan_.rank), t.gathered);
      for (size_t r = 0; r + 1 < first.size(); ++r)
        known->second =
            std::max<int64_t>(known->second, nodes(first[r], first[r + 1], first.back()));
    }
    return known->second;
  }

  int64_t nodes(int64_t first, int64_t last, int64_t total) const {
    return stacks() ? NodeStack(first, last, total).slots : orr_tree_nodes(first, last, total);
  }

  // Gives the bucket memory, its members their places in it, and what lowering must know of it.
  void finish(Exchange& b) {
    const Total& first = total(b.totals[0]);
    const int me = mesh_.coordinate(b.axis, plan_.rank);
    const int storage = add_storage(b, first);
    b.send = b.recv = {storage, 0, Strided::contiguous({b.dtype, {b.count}})};
    if (!b.begins.empty())
      b.recv.offset =
          static_cast<uint64_t>(b.begins[static_cast<size_t>(me)] * orr_dtype_bytes(b.dtype));
    const uint64_t pieces_at = is_freed_early(b) ? receive_outside(b, storage) : 0;
    for (ValueId whole : b.totals) place_member(b, total(whole), storage, pieces_at);
    b.name = first.in_pieces ? fmt::format("pieces {}", named_shards_++)
                             : fmt::format("bucket {}", named_buckets_++);
    b.bytes_sent = b.sent_by(me, ranks(b.axis));
    if (microbatches_.one_by_one) {
      const auto key = key_of(first);
      b.segment = std::get<3>(key), b.chunk = std::get<4>(key);
      if (stacks()) add_merge(b);
    }
    plan_.exchanges.push_back(std::move(b));
  }

  // A bucket that is exchanged lies in memory that the communicator has registered, and that has
  // one size on all ranks. Pieces differ in size from rank to rank, and so lie elsewhere.
  int add_storage(const Exchange& b, const Total& first) {
    Storage s;
    s.region = b.axis.empty() || first.in_pieces ? Region::arena : Region::comm;
    s.category = first.is_cut() ? kFullGradients : "gradient";
    s.bytes = static_cast<uint64_t>(b.count * orr_dtype_bytes(b.dtype));
    s.slots = most_nodes(first);
    if (stacks()) s.by = Slots::stack;
    return plan_.add(s);
  }

  // Lets the op that makes a summand write into the bucket, or adds launches that copy or add it
  // there. Readers of the completed sum then find it in the bucket; a rank's piece of a
  // reduce-scatter they find where it is received, `pieces_at` bytes of the bucket being left out.
  void place_member(const Exchange& b, const Total& t, int storage, uint64_t pieces_at) {
    const int64_t element = orr_dtype_bytes(b.dtype);
    const auto offset = static_cast<uint64_t>(offsets_[t.whole] * element);
    const bool direct = stacks() || (b.nodes == 1 && !microbatches_.one_by_one);
    if (direct)
      moves_.move(place_of(t.partial), storage, offset);
    else if (microbatches_.one_by_one)
      accumulate(b, t.partial, storage, offset);
    else
      pack(b, t.partial, storage, offset);
    if (t.is_cut()) {
      const auto me = static_cast<size_t>(mesh_.coordinate(b.axis, plan_.rank));
      const uint64_t piece = offset + static_cast<uint64_t>(t.pieces->begin[me] * element);
      moves_.move(place_of(t.whole), b.recv.storage, piece - pieces_at);
    } else if (direct) {
      place_of(t.whole) = place_of(t.partial);
    } else {
      moves_.move(place_of(t.whole), storage, offset);
    }
  }

  Place& place_of(ValueId v) { return plan_.places[static_cast<size_t>(v)]; }

  // Whether the bucket's memory may be used by others once each rank has its piece of the sums.
  bool is_freed_early(const Exchange& b) const {
    const Total& first = total(b.totals[0]);
    return !microbatches_.one_by_one && first.is_cut() && first.pieces->free;
  }

  // Has this rank's pieces received outside the bucket, so that other buckets can use its memory
  // afterwards. Returns where in the bucket the pieces begin, in bytes.
  uint64_t receive_outside(Exchange& b, int storage) {
    plan_.storage(storage).reused = true;
    uint64_t pieces_at = b.recv.offset;
    Storage s;
    s.category = "gradient";
    s.bytes =
        static_cast<uint64_t>(b.counts[static_cast<size_t>(mesh_.coordinate(b.axis, plan_.rank))] *
                              orr_dtype_bytes(b.dtype));
    b.recv.storage = plan_.add(s), b.recv.offset = 0;
    return pieces_at;
  }

  // Adds a launch right behind the maker of `partial` that copies its tree nodes, [nodes, n], into
  // the bucket: node i goes to element i * count of it.
  void pack(const Exchange& b, ValueId partial, int storage, uint64_t offset) {
    const Place from = moves_.moved(plan_.places[static_cast<size_t>(partial)]);
    int64_t n = plan_.local.program.type(partial).elements();
    Place source{from.storage, from.offset, {b.dtype, {b.nodes, n}, {n, 1}}};
    Place target{storage, offset, {b.dtype, {b.nodes, n}, {b.count, 1}}};
    inserter_.behind_maker(from.storage, [&](Launcher& launcher, const Op& maker) {
      launcher.copy(maker, source, target);
    });
  }

  // Where the microbatches' sums of `from` are added up before the bucket gets them: `to`, in it,
  // or f32 beside it.
  Place added_at(const Place& from, const Place& to) {
    const int32_t dtype = from.layout.dtype;
    if (!is_real(dtype) || orr_dtype_bytes(dtype) != 2 || microbatches_.calls() == 1) return to;
    Place sum{kNone, 0, from.layout};
    sum.layout.dtype = ORR_F32;
    Storage s;
    s.category = "gradient";
    s.bytes = Type{ORR_F32, from.layout.dims}.bytes();
    sum.storage = plan_.add(s);
    return sum;
  }

  // Adds launches right behind the maker of `partial`: the first microbatch's sum is copied, later
  // ones are added to it, and after the last the bucket gets what was added up beside it.
  void accumulate(const Exchange& b, ValueId partial, int storage, uint64_t offset) {
    const Place from = moves_.moved(plan_.places[static_cast<size_t>(partial)]);
    const Place to{storage, offset, from.layout}, sum = added_at(from, to);
    inserter_.behind_maker(from.storage, [&](Launcher& launcher, const Op& maker) {
      size_t n = plan_.launches.size();
      const auto run_at = [&](When when) {
        for (; n < plan_.launches.size(); ++n) plan_.launches[n].when = when;
      };
      launcher.copy(maker, from, sum);
      run_at(When::first);
      launcher.add(addition(b, sum.layout.dtype), {sum, from}, {sum});
      run_at(When::later);
      if (sum.storage != to.storage) launcher.copy(maker, sum, to);
      run_at(When::last);
    });
  }

  // Adds a sum of the bucket's dtype to one of `dtype`.
  static Op addition(const Exchange& b, int32_t dtype) {
    Op add;
    add.kind = "pointwise", add.phase = Phase::backward;
    add.site.line = b.where;
    int32_t left = add.expr.push(ORR_FN_INPUT, dtype, 0),
            right = add.expr.push(ORR_FN_INPUT, b.dtype, 1);
    if (dtype != b.dtype) right = add.expr.push(ORR_FN_CAST, dtype, right);
    add.expr.outputs = {add.expr.push(ORR_FN_ADD, dtype, left, right)};
    return add;
  }

  // Adds the launch that adds the node on top of the stack to the one below it. A step of it says
  // by its depth which nodes these are.
  void add_merge(Exchange& b) {
    const Op add = addition(b, b.dtype);
    Place top = b.send, below = b.send;
    below.offset -= plan_.storage(b.send.storage).bytes;
    Launcher launcher(plan_);
    launcher.at(b.segment, b.chunk);
    launcher.add(add, {below, top}, {below});
    b.merge = plan_.order.back().index;
    plan_.order.pop_back();
  }

  RankPlan& plan_;
  const Mesh& mesh_;
  const Microbatches& microbatches_;
  const std::vector<int64_t>& first_microbatch_;
  std::vector<Exchange> buckets_;
  int named_buckets_ = 0, named_shards_ = 0;
  std::map<ValueId, int64_t> offsets_;  // by Total::whole: its place in its bucket, in elements
  std::map<std::pair<std::string, std::string>, int64_t> most_nodes_;  // by Total::axis, gathered
  std::map<ValueId, const Total*> total_of_;                           // by Total::whole
  MovedStorages moves_{plan_};
  LaunchInserter inserter_{plan_, moves_};
};

}  // namespace

void fill_buckets(RankPlan& plan, const std::vector<int64_t>& first_microbatch) {
  BucketFiller(plan, first_microbatch).run();
}

}  // namespace orrery
