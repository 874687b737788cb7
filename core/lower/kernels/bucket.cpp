// SPDX-License-Identifier: Apache-2.0
//
// Collects the totals of a step into buckets (docs/design.md, "Sums in canonical order"). A bucket
// has totals of one dtype, in the order in which they are complete, up to the size that the
// strategy asked for. Ops of a rank with one tree node write straight into the bucket; if there are
// several, a copy puts them one after another. Where microbatches run in a call each, the bucket is
// the stack of nodes that wait (partition/timetable.h), and ops write straight into its top. With
// fast sums (Mesh::fast_sums) each microbatch's sums are added to the bucket behind their makers,
// those of 16 bits in f32 beside it: a sum of 16 bits would stop growing after some hundred.

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "base/error.h"
#include "lower/kernels/launcher.h"
#include "lower/kernels/moved_storages.h"
#include "lower/lower.h"
#include "lower/wholes.h"

namespace orrery {
namespace {

constexpr int64_t kAlign = 16;  // elements; members start on cache lines

int64_t aligned(int64_t n) { return (n + kAlign - 1) / kAlign * kAlign; }

class Filler {
 public:
  Filler(RankPlan& plan, const std::vector<int64_t>& dealt)
      : plan_(plan), mesh_(plan.mesh), microbatches_(plan.local.microbatches), dealt_(dealt) {
    for (const Total& t : plan.local.totals) total_of_.try_emplace(t.whole, &t);
  }

  void run() {
    note_writers();
    collect();
    std::stable_sort(buckets_.begin(), buckets_.end(), [&](const Exchange& a, const Exchange& b) {
      return completed(a) < completed(b);
    });
    for (Exchange& b : buckets_) settle(b);
    moves_.carry_out();
  }

 private:
  // What the members of a bucket have in common: the ranks that complete them; where microbatches
  // run in a call each, segment and chunk; where training state is sharded, the unit and the use of
  // its parameters; and whether they are pieces (Total::in_pieces). Each of these is a bucket
  // alone, so that it takes memory only when it is complete.
  using Key = std::tuple<std::string, std::string, int32_t, Segment, int, std::array<int64_t, 4>>;

  Key key_of(const Total& t) const {
    const Value& v = plan_.local.program.value(t.partial);
    const auto maker = static_cast<size_t>(v.producer);
    const std::array<int64_t, 4> members = {t.unit, t.use, t.early, t.in_pieces};
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
    return microbatches_on(mesh_, dealt_, t.axis, plan_.rank, t.gathered);
  }

  void collect() {
    std::map<Key, size_t> open;  // the bucket that still takes members
    for (const Total& t : plan_.local.totals) {
      const Value& v = plan_.local.program.value(t.whole);
      if (ranks(t.axis) == 1 && !microbatches_.one_by_one) continue;
      auto reduced = mesh_.reduced.find(t.logical);
      check_reduced(t, v, reduced == mesh_.reduced.end() ? "" : reduced->second.axis);
      int64_t limit = t.is_cut() || reduced == mesh_.reduced.end() ? 0 : reduced->second.bucket;
      size_t& at = open.try_emplace(key_of(t), SIZE_MAX).first->second;
      if (at == SIZE_MAX || full(buckets_[at], limit) || t.in_pieces) {
        at = buckets_.size();
        buckets_.push_back(fresh(v.type.dtype, t));
        if (t.is_cut()) buckets_[at].op = ORR_COLL_TREE_REDUCE_SCATTER;
      }
      Exchange& b = buckets_[at];
      if (reduced != mesh_.reduced.end()) b.origin = reduced->second.origin, b.where = v.site.line;
      if (t.is_cut()) b.origin = t.origin;
      b.totals.push_back(t.whole);
      add_member(b, t);
    }
    for (Exchange& b : buckets_)
      if (b.op == ORR_COLL_TREE_REDUCE_SCATTER) order_pieces(b);
  }

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

  // Puts the members in the order of the unit, so that a rank's pieces are neighbours.
  void order_pieces(Exchange& b) {
    std::sort(b.totals.begin(), b.totals.end(),
              [&](ValueId a, ValueId c) { return total(a).member < total(c).member; });
    b.count = 0;
    for (ValueId whole : b.totals) add_member(b, total(whole));
    for (size_t r = 0; r < static_cast<size_t>(ranks(b.axis)); ++r) {
      int64_t begin = 0, end = 0;
      for (ValueId whole : b.totals) {
        const Total& t = total(whole);
        if (t.count[r] == 0) continue;
        if (end == 0) begin = offsets_[whole] + t.begin[r];
        end = offsets_[whole] + t.begin[r] + t.count[r];
      }
      b.begins.push_back(begin), b.counts.push_back(end - begin);
    }
  }

  static bool full(const Exchange& b, int64_t limit) {
    return limit > 0 && b.count * orr_dtype_bytes(b.dtype) >= limit;
  }

  Exchange fresh(int32_t dtype, const Total& t) const {
    Exchange b;
    if (ranks(t.axis) > 1) b.axis = t.axis;
    b.dtype = dtype, b.nodes = t.nodes, b.leaf_first = leaf_first(t);
    // Each rank has microbatches, so that a plain all_reduce adds the same summands as the tree.
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

  OpId completed(const Exchange& b) const {
    OpId last = kNone;
    for (ValueId v : b.totals)
      last = std::max(last, plan_.local.program.value(total(v).partial).producer);
    return last;
  }

  // How many tree nodes a bucket of such sums has room for: the largest number of any rank that
  // shares the batch, because registered memory has the same size on all ranks.
  int64_t room(const Total& t) {
    auto [known, fresh] = room_.try_emplace({t.axis, t.gathered}, 1);
    if (!fresh) return known->second;
    const std::string others = without_axis(mesh_.batch_axis, t.axis);
    for (int g = 0; g < mesh_.size_of(others); ++g) {
      const auto first =
          microbatches_on(mesh_, dealt_, t.axis, mesh_.peer(others, g, plan_.rank), t.gathered);
      for (size_t r = 0; r + 1 < first.size(); ++r)
        known->second =
            std::max<int64_t>(known->second, nodes(first[r], first[r + 1], first.back()));
    }
    return known->second;
  }

  int64_t nodes(int64_t first, int64_t last, int64_t total) const {
    return stacks() ? NodeStack(first, last, total).slots : orr_tree_nodes(first, last, total);
  }

  void settle(Exchange& b) {
    int64_t element = orr_dtype_bytes(b.dtype);
    Storage s;
    // Pieces differ in size from rank to rank; registered memory has one size.
    const bool pieces = total(b.totals[0]).in_pieces;
    s.region = b.axis.empty() || pieces ? Region::arena : Region::comm;
    s.category = total(b.totals[0]).is_cut() ? kFullGradients : "gradient";
    s.bytes = static_cast<uint64_t>(b.count * element);
    s.slots = room(total(b.totals[0]));
    if (stacks()) s.by = Slots::stack;
    const int storage = plan_.add(s);
    b.send = b.recv = {storage, 0, Strided::contiguous({b.dtype, {b.count}})};
    const int me = mesh_.coordinate(b.axis, plan_.rank);
    if (!b.begins.empty())
      b.recv.offset = static_cast<uint64_t>(b.begins[static_cast<size_t>(me)] * element);
    uint64_t pieces_at = lends(b) ? lend(b, storage) : 0;
    for (ValueId whole : b.totals) {
      uint64_t offset = static_cast<uint64_t>(offsets_[whole] * element);
      const Total& t = total(whole);
      ValueId partial = t.partial;
      bool direct = stacks() || (b.nodes == 1 && !microbatches_.one_by_one);
      if (direct)
        moves_.move(plan_.places[static_cast<size_t>(partial)], storage, offset);
      else if (microbatches_.one_by_one)
        accumulate(b, partial, storage, offset);
      else
        pack(b, partial, storage, offset);
      if (t.is_cut()) {
        uint64_t piece = offset + static_cast<uint64_t>(t.begin[static_cast<size_t>(me)] * element);
        moves_.move(plan_.places[static_cast<size_t>(whole)], b.recv.storage, piece - pieces_at);
      } else if (direct) {
        plan_.places[static_cast<size_t>(whole)] = plan_.places[static_cast<size_t>(partial)];
      } else {
        moves_.move(plan_.places[static_cast<size_t>(whole)], storage, offset);
      }
    }
    b.name = pieces ? fmt::format("pieces {}", named_shards_++)
                    : fmt::format("bucket {}", named_buckets_++);
    b.bytes_sent = b.sent_by(me, ranks(b.axis));
    if (microbatches_.one_by_one) {
      const auto key = key_of(total(b.totals[0]));
      b.segment = std::get<3>(key), b.chunk = std::get<4>(key);
      if (stacks()) add_merge(b);
    }
    plan_.exchanges.push_back(std::move(b));
  }

  bool lends(const Exchange& b) const {
    return !microbatches_.one_by_one && total(b.totals[0]).free;
  }

  // Lets this rank's pieces be received outside the bucket, so that other buckets can use its
  // memory afterwards. Returns where in the bucket the pieces begin, in bytes.
  uint64_t lend(Exchange& b, int storage) {
    plan_.storage(storage).lent = true;
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
  // the bucket, `count` elements apart.
  void pack(const Exchange& b, ValueId partial, int storage, uint64_t offset) {
    const Place from = moves_.moved(plan_.places[static_cast<size_t>(partial)]);
    int64_t n = plan_.local.program.type(partial).elements();
    Place source{from.storage, from.offset, {b.dtype, {b.nodes, n}, {n, 1}}};
    Place target{storage, offset, {b.dtype, {b.nodes, n}, {b.count, 1}}};
    behind_maker(from.storage, [&](Launcher& launcher, const Op& maker) {
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
    behind_maker(from.storage, [&](Launcher& launcher, const Op& maker) {
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

  // By storage: the first step of the template that writes it, before any are added. Those add
  // writers of new storages only, and everything is moved to new storages.
  void note_writers() {
    writers_.resize(plan_.storages.size(), {Step::wait, Segment::backward, kNone});
    const auto note = [&](const Place& at, const Step& s) {
      if (at.storage == kNone) return;
      Step& first = writers_[static_cast<size_t>(at.storage)];
      if (first.index == kNone) first = s;
    };
    for (const Step& s : plan_.order) {
      if (s.kind == Step::post)
        note(plan_.exchanges[static_cast<size_t>(s.index)].recv, s);
      else
        for (const Place& at : plan_.launches[static_cast<size_t>(s.index)].out_at) note(at, s);
    }
  }

  // Whether a step is the first one of the template that writes the storage, or, of a new storage,
  // writes it at all.
  bool writes(const Step& s, int storage) const {
    if (static_cast<size_t>(storage) < writers_.size()) {
      const Step& first = writers_[static_cast<size_t>(storage)];
      return s.kind == first.kind && s.index == first.index;
    }
    if (s.kind == Step::post)
      return moves_.moved(plan_.exchanges[static_cast<size_t>(s.index)].recv.storage) == storage;
    const std::vector<Place>& out = plan_.launches[static_cast<size_t>(s.index)].out_at;
    return std::any_of(out.begin(), out.end(),
                       [&](const Place& at) { return moves_.moved(at.storage) == storage; });
  }

  // The first step of the template that writes the storage.
  size_t writer(int storage) const {
    const auto at = std::find_if(plan_.order.begin(), plan_.order.end(),
                                 [&](const Step& s) { return writes(s, storage); });
    if (at == plan_.order.end()) fail(ORR_FAILED, "nothing writes a sum of the batch");
    return static_cast<size_t>(at - plan_.order.begin());
  }

  // Where launches go that use what this step of the template writes: right behind a launch and
  // those that were added there; of an exchange that sends pieces, before the next of these, so
  // that it travels meanwhile.
  size_t behind(size_t writer) const {
    const Step& maker = plan_.order[writer];
    size_t next = writer + 1;
    for (; next < plan_.order.size(); ++next) {
      const Step& s = plan_.order[next];
      if (maker.kind == Step::launch && !added_.count(s.kind == Step::launch ? s.index : kNone))
        break;
      if (maker.kind == Step::post && s.kind == Step::post && s.segment == maker.segment &&
          s.chunk == maker.chunk &&
          plan_.exchanges[static_cast<size_t>(s.index)].op ==
              plan_.exchanges[static_cast<size_t>(maker.index)].op)
        break;
    }
    return next;
  }

  // Adds launches behind the step that writes the storage. Those of one maker are in the order of
  // the buckets, on every rank.
  template <class Add>
  void behind_maker(int storage, Add&& add) {
    const size_t maker = writer(storage);
    const auto after = static_cast<int64_t>(behind(maker)),
               end = static_cast<int64_t>(plan_.order.size());
    const Step step = plan_.order[maker];
    Launcher launcher(plan_);
    launcher.at(step.segment, step.chunk);
    Op op;
    op.phase = Phase::backward;
    if (step.kind == Step::launch)
      op = plan_.launches[static_cast<size_t>(step.index)].op;
    else
      op.site.line = plan_.exchanges[static_cast<size_t>(step.index)].where;
    add(launcher, op);
    for (auto s = plan_.order.begin() + end; s != plan_.order.end(); ++s) added_.insert(s->index);
    std::rotate(plan_.order.begin() + after, plan_.order.begin() + end, plan_.order.end());
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
  const std::vector<int64_t>& dealt_;
  std::vector<Exchange> buckets_;
  int named_buckets_ = 0, named_shards_ = 0;
  std::map<ValueId, int64_t> offsets_;
  std::map<std::pair<std::string, std::string>, int64_t> room_;  // by Total::axis and gathered
  std::set<int> added_;                                          // launches that fill buckets
  std::map<ValueId, const Total*> total_of_;                     // by Total::whole
  std::vector<Step> writers_;
  MovedStorages moves_{plan_};
};

}  // namespace

void fill_buckets(RankPlan& plan, const std::vector<int64_t>& dealt) { Filler(plan, dealt).run(); }

}  // namespace orrery
