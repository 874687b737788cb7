// SPDX-License-Identifier: Apache-2.0
//
// Translates the logical program, op by op, into the program of one rank (partition/localize.h).
// Three ranks with one microbatch each, rank 1:
//
//   y = matmul(x, w)       x f32[6,4]    ->  y = matmul(x, w)       x f32[2,4]
//   dw = matmul(x, dy)     a sum over    ->  dw = matmul(x, dy)     leaf 1 of 3
//   g = total(dw)          the batch     ->  no op: a Total {dw, g}, over the axis of the ranks
//   w' = w - 0.1 g                       ->  w' = w - 0.1 g         behind all ops of samples
//
// Ops of samples come first, in their order. Ops that wait for sums over the batch come after them,
// in a second pass. Where samples themselves read such a sum, it is completed early, among the ops
// of samples; this needs all microbatches of a rank in one call.
#include "partition/localize.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "partition/samples/batch_rows.h"
#include "partition/samples/by_microbatch.h"
#include "partition/samples/flat_buffers.h"
#include "partition/samples/op_timing.h"
#include "partition/samples/random_keys.h"
#include "partition/samples/summands.h"
#include "program/build.h"
#include "program/custom_kind.h"
#include "program/op.h"
#include "program/state.h"

namespace orrery {
namespace {

class Localizer {
 public:
  Localizer(const Program& logical, const Microbatches& microbatches, const Mesh& mesh,
            const std::vector<int64_t>& first_microbatch, int rank)
      : from_(logical),
        microbatches_(microbatches),
        mesh_(mesh),
        first_microbatch_(first_microbatch),
        rank_(rank),
        timing_(find_timing(logical)),
        keys_(logical, microbatches, local_.program) {
    local_.microbatches = microbatches;
    rows_ = microbatches.rows_per_call();
    padded_ = (microbatches.before + microbatches.total) * microbatches.rows > logical.batch_size();
    map_.assign(from_.values().size(), kNone);
    gathered_ = find_gathered(from_, mesh_.gathered_axis());
    for (const Value& v : from_.values())
      if (v.state) local_.parts.push_back({v.state, v.part, v.tier});
    local_.flat_buffers = flat_buffers_of(from_);
  }

  LocalProgram run() {
    for (const bool late : {false, true})
      for (size_t i = 0; i < from_.ops().size(); ++i)
        if (timing_.live[i] && timing_.late[i] == late) translate(from_.ops()[i], late);
    for (auto& [state, next] : from_.updates())
      to().mutable_updates().emplace_back(value(state), new_value(value(next)));
    for (auto& [name, id] : from_.outputs()) to().output(name, new_value(value(id)));
    return std::move(local_);
  }

 private:
  Program& to() { return local_.program; }

  Type local_type(ValueId id) const {
    const Value& v = from_.value(id);
    Type t = v.type;
    if (v.batch() == Batch::sharded) {
      int64_t& d = t.dims[static_cast<size_t>(v.batch_dim())];
      d = d / from_.batch_size() * rows_;
      if (is_gathered(id)) d *= mesh_.size_of(mesh_.gathered_axis());
    }
    return t;
  }

  // The value of the rank's program that stands for `id`.
  ValueId value(ValueId id) {
    ValueId& found = map_[static_cast<size_t>(id)];
    if (found != kNone) return found;
    const Value& v = from_.value(id);
    found = to().new_value(local_type(id), v.role, v.name);
    Value& copy = to().mutable_value(found);
    copy.set_batch(v.batch(), v.batch_dim());
    copy.state = v.state, copy.part = v.part, copy.tier = v.tier, copy.site = v.site;
    return found;
  }

  const Op& maker_of(ValueId v) const {
    return from_.ops()[static_cast<size_t>(from_.value(v).producer)];
  }

  Summands summands_of(const Op& op) const {
    const std::string gathered = reads_gathered(op) ? mesh_.gathered_axis() : "";
    std::string axis = without_axis(op.completed_over.value_or(mesh_.batch_axis), gathered);
    if (is_scattered(op))  // the ranks of the op's axis are added already: replicas are left
      axis = mesh_.replicas_of(attr_text(op.attrs, "axis", ""));
    return summands_over(axis, gathered, mesh_, microbatches_, first_microbatch_, rank_);
  }

  size_t index_of(const Op& op) const { return static_cast<size_t>(&op - from_.ops().data()); }
  // Whether the op works on a sum that is reduce-scattered after each microbatch.
  bool is_scattered(const Op& op) const { return timing_.scattered[index_of(op)] != 0; }
  bool is_gathered(ValueId v) const { return gathered_[static_cast<size_t>(v)] != 0; }
  bool reads_gathered(const Op& op) const {
    return std::any_of(op.in.begin(), op.in.end(), [&](ValueId v) { return is_gathered(v); });
  }
  // Whether a total is cut: each rank gets only a piece of it (training state is sharded).
  static bool is_cut(const Op& op) { return op.exchange().pieces.has_value(); }

  // Declares a total of which this rank gets a piece: it will be a reduce-scatter.
  void add_cut_total(const Op& op) {
    if (auto known = totals_.find(op.in[0]); known != totals_.end())
      return take_piece(op, known->second);
    const Summands summands = summands_of(maker_of(op.in[0]));
    Total& t = local_.totals.emplace_back();
    t.partial = value(op.in[0]), t.whole = value(op.out[0]), t.logical = op.in[0];
    t.axis = summands.axis, t.nodes = summands.nodes();
    t.pieces = op.exchange().pieces;
    to().mutable_value(t.whole).role = Role::grad;
  }

  // The same for a sum that every rank has completed already, because samples read it: no exchange
  // is needed, the rank takes its piece of the sum.
  void take_piece(const Op& op, ValueId whole) {
    const std::string axis = summands_of(maker_of(op.in[0])).axis;
    const auto me = static_cast<size_t>(mesh_.coordinate(axis, rank_));
    const SumShards& pieces = *op.exchange().pieces;
    const int64_t begin = pieces.begin[me], count = pieces.count[me];
    const int64_t n = to().type(whole).elements();
    if (count == 0) return;  // this rank's piece is empty: nothing reads it
    const ValueId piece = add_part(to(), add_reshape(to(), whole, {n}), begin, count);
    map_[static_cast<size_t>(op.out[0])] = add_reshape(to(), piece, from_.type(op.out[0]).dims);
  }

  // v as the new value of a state or as a result of the step. A v that is itself a state (a step
  // that swaps two states) is copied first, because that state may change in the same step.
  ValueId new_value(ValueId next) {
    if (!to().value(next).state) return next;
    to().set_phase(Phase::update);
    return to().pointwise(ORR_FN_INPUT, {next});
  }

  // Adds the total of `here`, which stands for the sum `logical` or is a summand of it. The caller
  // names the axis: without one, the rank completes the sum alone.
  Total& add_total(ValueId here, ValueId logical) {
    const Value& v = from_.value(logical);
    Total& t = local_.totals.emplace_back();
    t.partial = here, t.logical = logical;
    t.whole = to().new_value(v.type, v.role == Role::grad ? Role::grad : Role::activation, v.name);
    to().mutable_value(t.whole).site = v.site;
    return t;
  }

  // The completed sum over the batch. `early`: samples read it.
  ValueId total_of(ValueId partial, bool early = false) {
    const Op& maker = maker_of(partial);
    if (!is_scattered(maker) && !reads_any(from_, maker, Batch::sharded)) return value(partial);
    if (early && maker.completed_over)
      fail(ORR_INVALID,
           "{}a parameter meets here what is made of the whole batch before samples do, and a "
           "strategy wants each rank's own part of its gradient: let samples meet the parameter "
           "first, or leave the strategy out",
           maker.site.prefix());
    const Summands summands = summands_of(maker);
    // A sum over some of the batch axes only may leave no other rank to add with. If all
    // microbatches of this rank run in one call too, the op itself makes the complete sum.
    const bool over_some = maker.completed_over || !summands.gathered.empty();
    if (over_some && summands.axis.empty() && !microbatches_.one_by_one) return value(partial);
    auto [at, fresh] = totals_.emplace(partial, kNone);
    if (fresh && sums_by_rank_.count(partial)) {
      at->second = add_sums_by_rank(partial, summands);
    } else if (fresh) {
      Total& t = add_total(value(partial), partial);
      at->second = t.whole;
      t.axis = summands.axis, t.nodes = summands.nodes(), t.gathered = summands.gathered;
      t.early = early ? timing_.group.at(partial) : kNone;
      t.in_pieces = is_scattered(maker);
    }
    return at->second;
  }

  // Emits what stands for an op, and gives it the op's chunk of the pipeline.
  void translate(const Op& op, bool late) {
    size_t before = to().ops().size();
    emit(op, late);
    for (size_t i = before; i < to().ops().size(); ++i) to().mutable_ops()[i].stage = op.stage;
  }

  void emit(const Op& op, bool late) {
    to().set_site(op.site);
    to().set_phase(late ? Phase::update : op.phase);
    if (is_cut(op)) return add_cut_total(op);
    if (is_scattered(op)) return emit_scattered(op);
    if (const ValueId v = stand_in(op); v != kNone) {
      map_[static_cast<size_t>(op.out[0])] = v;
      return;
    }
    if (microbatches_.one_by_one && reads_gathered(op) && sums_samples(op)) return emit_by_rank(op);
    Op copy = op;
    copy.phase = to().phase(), copy.completed_over.reset();
    const bool early = timing_.early[index_of(op)];
    for (ValueId& v : copy.in) v = whole_of(v, early);
    if (padded_ && op.phase == Phase::forward && sums_samples(op)) leave_padding_out(op, copy);
    for (ValueId& v : copy.out) v = value(v);
    if (custom_kind(op.kind) && sums_samples(op) && !microbatches_.one_by_one)
      return append_by_microbatch(to(), copy, summands_of(op));
    fit_attributes(op, copy);
    to().append(std::move(copy));
  }

  // Emits an op on a sum that is reduce-scattered after each microbatch: nothing is completed yet.
  void emit_scattered(const Op& op) {
    Op copy = op;
    copy.phase = to().phase();
    for (ValueId& v : copy.in) v = value(v);
    for (ValueId& v : copy.out) v = value(v);
    to().append(std::move(copy));
  }

  // v, or the completed sum if v is a sum over the batch.
  ValueId whole_of(ValueId v, bool early = false) {
    return from_.value(v).batch() == Batch::partial ? total_of(v, early) : value(v);
  }

  // The value that stands for the result of an op that needs no kernel on this rank; kNone if the
  // op needs one.
  ValueId stand_in(const Op& op) {
    if (op.kind == "total") return whole_of(op.in[0]);
    if (op.kind == "stop_gradient" || op.kind == "user_gradient" || op.kind == "vary" ||
        op.kind == "unshard")
      return value(op.in[0]);
    if (op.kind == "batch_mean")
      return to().pointwise(ORR_FN_DIV, {total_of(op.in[0]), total_of(op.in[1])});
    if (op.kind == "coordinate")
      return to().constant(mesh_.coordinate(attr_text(op.attrs, "axis", ""), rank_), ORR_I64);
    if (op.kind == "sample_exchange") {
      const ValueId all = is_gathered(op.in[0]) ? op.in[0] : op.out[0];
      return add_sample_exchange(to(), op, value(op.in[0]), local_type(all).dims,
                                 from_.value(all).batch_dim());
    }
    if (is_over_one_rank(op))
      return build::reshape(to(), whole_of(op.in[0]), local_type(op.out[0]).dims);
    return of_whole_batch(op);
  }

  // A collective over an axis of one rank: the same elements, perhaps in other dims.
  bool is_over_one_rank(const Op& op) const {
    return is_exchange(op.kind) && op.in.size() == 1 && op.out.size() == 1 &&
           mesh_.size_of(attr_text(op.attrs, "axis", "")) == 1;
  }

  // Emits an op that sums over the samples of several ranks as one op for each of these ranks. In a
  // call this rank has one microbatch of each, and these are not neighbours in the batch: their
  // sums belong to different nodes of the tree.
  void emit_by_rank(const Op& op) {
    const int ranks = mesh_.size_of(mesh_.gathered_axis());
    for (int r = 0; r < ranks; ++r) {
      Op copy = op;
      copy.phase = to().phase();
      for (ValueId& v : copy.in) v = is_gathered(v) ? samples_of(v, r) : value(v);
      for (ValueId& v : copy.out) {
        std::vector<ValueId>& sums = sums_by_rank_[v];
        sums.push_back(to().new_value(from_.type(v), Role::activation));
        to().mutable_value(sums.back()).set_batch(Batch::partial);
        v = sums.back();
      }
      copy.completed_over.reset();
      to().append(std::move(copy));
    }
  }

  // The samples of one rank, taken from a value with the samples of several.
  ValueId samples_of(ValueId v, int rank) {
    std::vector<ValueId>& parts = samples_[v];
    if (parts.empty())
      parts = split_samples(to(), value(v), from_.value(v).batch_dim(),
                            mesh_.size_of(mesh_.gathered_axis()));
    return parts[static_cast<size_t>(rank)];
  }

  // Adds the sums that emit_by_rank has made, then those of the other ranks. Each rank's
  // microbatches are a node of the tree, and so are those of all of them (check_gathered in
  // edit/complete.cpp).
  ValueId add_sums_by_rank(ValueId partial, const Summands& summands) {
    std::vector<ValueId> nodes;
    for (ValueId sum : sums_by_rank_.at(partial)) nodes.push_back(add_total(sum, partial).whole);
    const ValueId here = build::tree(to(), std::move(nodes));
    if (mesh_.size_of(summands.axis) == 1) return here;
    const auto reduced = mesh_.reduced.find(partial);
    const std::string origin = reduced == mesh_.reduced.end() ? "" : reduced->second.origin;
    const ValueId sum =
        to().add1("all_reduce", {here}, {{"axis", summands.axis}, {"origin", origin}});
    to().mutable_ops()[static_cast<size_t>(to().value(sum).producer)].set_exchange({.tree = true});
    return sum;
  }

  // The result of an op that gathers the batch or takes samples of it; kNone for other ops.
  ValueId of_whole_batch(const Op& op) {
    if (op.kind == "batch_sum") return whole_of(op.in[0], true);
    if (op.kind == "microbatch_sum") {
      const int64_t ranks = is_gathered(op.in[0]) ? mesh_.size_of(mesh_.gathered_axis()) : 1;
      const int64_t here = rows_ / microbatches_.rows * ranks;
      return add_microbatch_sum(to(), value(op.in[0]), here, attr_text(op.attrs, "fn", "sum"));
    }
    const BatchRows samples{from_.batch_size(), microbatches_, first_microbatch_, mesh_};
    if (op.kind == "batch_gather")
      return add_batch_gather(to(), samples, value(op.in[0]), from_.type(op.out[0]));
    if (op.kind == "batch_slice")
      return add_batch_slice(to(), samples, value(op.in[0]), local_type(op.out[0]));
    if (op.kind == "sample_index")
      return add_sample_index(
          to(), samples, rows_,
          microbatches_.one_by_one ? keys_.first_element(1, op) : ValueId{kNone});
    return kNone;
  }

  bool sums_samples(const Op& op) const {
    return !op.out.empty() && from_.value(op.out[0]).batch() == Batch::partial &&
           reads_any(from_, op, Batch::sharded);
  }

  // A sum over the batch that the script wrote must not count the rows that pad the batch: an
  // input of the op is multiplied by the samples' weights, 0 for these rows. Gradients of a loss
  // already have this weight in them.
  void leave_padding_out(const Op& op, Op& copy) {
    if (custom_kind(op.kind))
      fail(ORR_INVALID,
           "{}{} sums over the batch, whose last microbatch is padded here: choose `microbatches` "
           "that divide the samples of a step",
           op.site.prefix(), op.kind);
    const size_t at = weighed_input(from_, op);
    copy.in[at] =
        add_weighed(to(), copy.in[at], from_.value(op.in[at]).batch_dim(), rows_, weight());
  }

  // The weights of this rank's samples, added as an input if the program has none.
  ValueId weight() {
    for (size_t v = 0; v < from_.values().size(); ++v)
      if (from_.values()[v].role == Role::batch && from_.values()[v].name == "$weight")
        return value(static_cast<ValueId>(v));
    if (weight_ == kNone)
      weight_ = of_samples(to(), to().new_value({ORR_F32, {rows_}}, Role::batch, "$weight"));
    return weight_;
  }

  // Sets the attributes that depend on the rank: dims, leaves of a sum, keys of random numbers.
  void fit_attributes(const Op& op, Op& copy) {
    if (op.out.empty()) return;
    const Value& out = from_.value(op.out[0]);
    if (copy.attrs.has("dims")) copy.attrs.set("dims", to().type(copy.out[0]).dims);
    if (out.batch() == Batch::partial && reads_any(from_, op, Batch::sharded) &&
        !microbatches_.one_by_one) {
      set_summands(copy.attrs, summands_of(op), microbatches_.idle());
    }
    if (out.batch() == Batch::sharded) keys_.set(op, copy);
  }

  const Program& from_;
  Microbatches microbatches_;
  const Mesh& mesh_;
  const std::vector<int64_t>& first_microbatch_;  // by rank of the batch axis
  int rank_;
  int64_t rows_ = 0;
  bool padded_ = false;  // some rank has more rows than samples
  ValueId weight_ = kNone;
  const OpTiming timing_;
  LocalProgram local_;
  RandomKeys keys_;
  std::vector<ValueId> map_;           // by value of the logical program: what `value` returns
  std::map<ValueId, ValueId> totals_;  // by partial sum: the completed one
  std::vector<char> gathered_;         // by value: find_gathered
  // For values that have the samples of several ranks: the samples of each rank, and, of sums over
  // samples, the sum of each rank's.
  std::map<ValueId, std::vector<ValueId>> samples_, sums_by_rank_;
};

}  // namespace

LocalProgram localize(const Program& logical, const Microbatches& microbatches, const Mesh& mesh,
                      const std::vector<int64_t>& first_microbatch, int rank) {
  LocalProgram local = Localizer(logical, microbatches, mesh, first_microbatch, rank).run();
  // Order totals by the op that completes them, which is the order in which they can be sent.
  const Program& p = local.program;
  std::stable_sort(local.totals.begin(), local.totals.end(), [&](const Total& a, const Total& b) {
    return p.value(a.partial).producer < p.value(b.partial).producer;
  });
  return local;
}

}  // namespace orrery
