// SPDX-License-Identifier: Apache-2.0
#include "partition/localize.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "partition/samples/batch_rows.h"
#include "partition/samples/flat_buffers.h"
#include "partition/samples/random_keys.h"
#include "partition/samples/turns.h"
#include "program/build.h"
#include "program/op.h"
#include "program/state.h"

namespace orrery {
namespace {

class Localizer {
 public:
  Localizer(const Program& logical, const Microbatches& microbatches, const Mesh& mesh,
            const std::vector<int64_t>& dealt, int rank)
      : from_(logical),
        microbatches_(microbatches),
        mesh_(mesh),
        dealt_(dealt),
        rank_(rank),
        turns_(find_turns(logical)),
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
    for (size_t pass = 0; pass < 2; ++pass)  // the update comes after everything per sample
      for (size_t i = 0; i < from_.ops().size(); ++i)
        if (turns_.live[i] && turns_.late[i] == (pass == 1)) translate(from_.ops()[i], pass == 1);
    for (auto& [state, next] : from_.updates())
      to().mutable_updates().emplace_back(value(state), own(value(next)));
    for (auto& [name, id] : from_.outputs()) to().output(name, own(value(id)));
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
  // A sum over the batch is a tree over the sums of its microbatches. This rank adds those of
  // [lo, lo + n) of `total`; the ranks of `axis` add the others, "" if there are none.
  struct Summands {
    std::string axis, gathered;
    int64_t lo, n, total;
    int64_t nodes() const { return orr_tree_nodes(lo, lo + n, total); }
  };
  Summands summands_of(const Op& op) const {
    const std::string gathered = reads_gathered(op) ? mesh_.gathered_axis() : "";
    std::string axis = without_axis(attr_text(op.attrs, "among", mesh_.batch_axis), gathered);
    if (is_own(op))  // a piece of what the ranks of the axis have added already
      axis = mesh_.replicas_of(attr_text(op.attrs, "axis", ""));
    if (axis == mesh_.batch_axis && !mesh_.fast_sums)
      return {axis, "", microbatches_.first, microbatches_.count(), microbatches_.total};
    const std::vector<int64_t> first = microbatches_among(mesh_, dealt_, axis, rank_, gathered);
    const auto me = static_cast<size_t>(mesh_.coordinate(axis, rank_));
    return {axis, gathered, first[me], first[me + 1] - first[me], first.back()};
  }
  size_t index_of(const Op& op) const { return static_cast<size_t>(&op - from_.ops().data()); }
  bool is_own(const Op& op) const { return turns_.own[index_of(op)] != 0; }
  bool is_gathered(ValueId v) const { return gathered_[static_cast<size_t>(v)] != 0; }
  bool reads_gathered(const Op& op) const {
    return std::any_of(op.in.begin(), op.in.end(), [&](ValueId v) { return is_gathered(v); });
  }
  static bool is_cut(const Op& op) { return op.kind == "total" && op.attrs.has("count"); }

  // Declares the total of a sum over the batch of which this rank gets a piece.
  void cut_total(const Op& op) {
    if (auto known = totals_.find(op.in[0]); known != totals_.end())
      return cut_whole(op, known->second);
    const Summands summands = summands_of(maker_of(op.in[0]));
    Total t{value(op.in[0]),
            value(op.out[0]),
            op.in[0],
            summands.axis,
            summands.nodes(),
            attr_ints(op.attrs, "begin"),
            attr_ints(op.attrs, "count"),
            attr_int(op.attrs, "unit", 0),
            attr_int(op.attrs, "use", 0),
            attr_int(op.attrs, "member", 0),
            attr_text(op.attrs, "origin", ""),
            attr_int(op.attrs, "free", 0) != 0};
    to().mutable_value(t.whole).role = Role::grad;
    local_.totals.push_back(std::move(t));
  }

  // The same for a sum that all ranks have already, because samples read it: takes the piece of it.
  void cut_whole(const Op& op, ValueId whole) {
    const std::string axis = summands_of(maker_of(op.in[0])).axis;
    const auto me = static_cast<size_t>(mesh_.coordinate(axis, rank_));
    const int64_t begin = attr_ints(op.attrs, "begin")[me], n = to().type(whole).elements();
    const int64_t count = attr_ints(op.attrs, "count")[me];
    if (count == 0) return;  // this rank's piece is empty: nothing reads it
    const ValueId piece = add_part(to(), add_reshape(to(), whole, {n}), begin, count);
    map_[static_cast<size_t>(op.out[0])] = add_reshape(to(), piece, from_.type(op.out[0]).dims);
  }

  // For a new value or a result that is itself the old value of a state: that state may change in
  // the same step, so an op copies the value first.
  ValueId own(ValueId next) {
    if (!to().value(next).state) return next;
    to().set_phase(Phase::update);
    return to().pointwise(ORR_FN_INPUT, {next});
  }

  // Adds the total of the sum, or summand, `here`. Until the caller names an axis, the rank
  // completes it alone.
  Total& add_total(ValueId here, ValueId logical) {
    const Value& v = from_.value(logical);
    Total& t = local_.totals.emplace_back();
    t.partial = here, t.logical = logical;
    t.whole = to().new_value(v.type, v.role == Role::grad ? Role::grad : Role::activation, v.name);
    to().mutable_value(t.whole).site = v.site;
    return t;
  }

  // The completed sum over the batch.
  ValueId total_of(ValueId partial, bool early = false) {
    const Op& maker = maker_of(partial);
    if (!is_own(maker) && !reads_any(from_, maker, Batch::sharded)) return value(partial);
    if (early && maker.attrs.has("among"))
      throw Error(
          ORR_INVALID,
          maker.site.prefix() +
              "a parameter meets here what is made of the whole batch before samples do, and "
              "a strategy wants each rank's own part of its gradient: let samples meet "
              "the parameter first, or leave the strategy out");
    const Summands summands = summands_of(maker);
    // Not a sum of all ranks: of those that train together, or of what is left after a gather. If
    // this rank alone adds, and all microbatches at once, the sum is complete as it is made.
    const bool by_some = maker.attrs.has("among") || !summands.gathered.empty();
    if (by_some && summands.axis.empty() && !microbatches_.one_by_one) return value(partial);
    auto [at, fresh] = totals_.emplace(partial, kNone);
    if (fresh && apart_.count(partial)) {
      at->second = join(partial, summands);
    } else if (fresh) {
      Total& t = add_total(value(partial), partial);
      at->second = t.whole;
      t.axis = summands.axis, t.nodes = summands.nodes(), t.gathered = summands.gathered;
      t.early = early ? turns_.group.at(partial) : kNone;
      t.in_pieces = is_own(maker);
    }
    return at->second;
  }

  void translate(const Op& op, bool late) {
    size_t before = to().ops().size();
    emit(op, late);
    for (size_t i = before; i < to().ops().size(); ++i) to().mutable_ops()[i].stage = op.stage;
  }

  void emit(const Op& op, bool late) {
    to().set_site(op.site);
    to().set_phase(late ? Phase::update : op.phase);
    if (is_cut(op)) return cut_total(op);
    if (is_own(op)) return emit_own(op);
    if (const ValueId v = stand_in(op); v != kNone) {
      map_[static_cast<size_t>(op.out[0])] = v;
      return;
    }
    if (microbatches_.one_by_one && reads_gathered(op) && sums_samples(op)) return emit_apart(op);
    Op copy = op;
    copy.phase = to().phase();
    const bool early = turns_.early[index_of(op)];
    for (ValueId& v : copy.in) v = whole_of(v, early);
    if (padded_ && op.phase == Phase::forward && sums_samples(op)) leave_padding_out(op, copy);
    for (ValueId& v : copy.out) v = value(v);
    fit_attributes(op, copy);
    to().append(std::move(copy));
  }

  void emit_own(const Op& op) {
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
    if (is_among_one(op))
      return build::reshape(to(), whole_of(op.in[0]), local_type(op.out[0]).dims);
    return of_whole_batch(op);
  }

  // A collective over an axis of one rank: the same elements, perhaps in other dims.
  bool is_among_one(const Op& op) const {
    return is_exchange(op.kind) && op.in.size() == 1 && op.out.size() == 1 &&
           mesh_.size_of(attr_text(op.attrs, "axis", "")) == 1;
  }

  // Emits an op that sums over the samples of several ranks as one op for each of these ranks,
  // because their microbatches are not neighbours in the batch.
  void emit_apart(const Op& op) {
    const int ranks = mesh_.size_of(mesh_.gathered_axis());
    for (int r = 0; r < ranks; ++r) {
      Op copy = op;
      copy.phase = to().phase();
      for (ValueId& v : copy.in) v = is_gathered(v) ? samples_of(v, r) : value(v);
      for (ValueId& v : copy.out) {
        std::vector<ValueId>& sums = apart_[v];
        sums.push_back(to().new_value(from_.type(v), Role::activation));
        to().mutable_value(sums.back()).set_batch(Batch::partial);
        v = sums.back();
      }
      copy.attrs.erase("among");
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

  // The completed sum of one that emit_apart has taken apart: each rank's microbatches are a node
  // of the tree, and so are those of all of them (check_gathered in edit/apply.cpp).
  ValueId join(ValueId partial, const Summands& summands) {
    std::vector<ValueId> nodes;
    for (ValueId sum : apart_.at(partial)) nodes.push_back(add_total(sum, partial).whole);
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
    const DealtSamples samples{from_.batch_size(), microbatches_, dealt_, mesh_};
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

  // A sum over the batch that the script wrote must not count the rows that pad the batch. One
  // input of the op is multiplied by the samples' weights, which are 0 for these rows: the last
  // input of samples, in which reduce, matmul and scatter_add are linear, or sum squares; for
  // norm_param_grad the cotangent, its first. Gradients of a loss already have this weight in them.
  void leave_padding_out(const Op& op, Op& copy) {
    size_t last = op.kind == "norm_param_grad" ? 0 : op.in.size() - 1;
    while (from_.value(op.in[last]).batch() != Batch::sharded) --last;
    copy.in[last] =
        add_weighed(to(), copy.in[last], from_.value(op.in[last]).batch_dim(), rows_, weight());
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

  void fit_attributes(const Op& op, Op& copy) {
    if (op.out.empty()) return;
    const Value& out = from_.value(op.out[0]);
    if (copy.attrs.has("dims")) copy.attrs.set("dims", to().type(copy.out[0]).dims);
    if (out.batch() == Batch::partial && reads_any(from_, op, Batch::sharded) &&
        !microbatches_.one_by_one) {
      const Summands summands = summands_of(op);
      copy.attrs.set("leaf_lo", summands.lo);
      copy.attrs.set("leaf_n", microbatches_.idle() ? 1 : summands.n);
      copy.attrs.set("leaf_total", std::max<int64_t>(summands.total, 1));
    }
    copy.attrs.erase("among");
    if (out.batch() != Batch::sharded) return;
    keys_.set(op, copy);
  }

  const Program& from_;
  Microbatches microbatches_;
  const Mesh& mesh_;
  const std::vector<int64_t>& dealt_;
  int rank_;
  int64_t rows_ = 0;
  bool padded_ = false;  // some rank has more rows than samples
  ValueId weight_ = kNone;
  const Turns turns_;
  LocalProgram local_;
  RandomKeys keys_;
  std::vector<ValueId> map_;
  std::map<ValueId, ValueId> totals_;
  std::vector<char> gathered_;  // samples of all ranks of the axis over which they travel
  // Of samples that were gathered from all ranks of an axis: the part that came from each rank, and
  // the sum of each part.
  std::map<ValueId, std::vector<ValueId>> samples_, apart_;
};

}  // namespace

bool is_awaited(const Op& op) {
  return op.kind == "send" || op.kind == "recv" || op.kind == "total" || op.kind == "batch_sum" ||
         op.kind == "batch_gather" || op.exchange().awaited;
}

LocalProgram localize(const Program& logical, const Microbatches& microbatches, const Mesh& mesh,
                      const std::vector<int64_t>& dealt, int rank) {
  LocalProgram local = Localizer(logical, microbatches, mesh, dealt, rank).run();
  // Order totals by the op that completes them, which is the order in which they can be sent.
  const Program& p = local.program;
  std::stable_sort(local.totals.begin(), local.totals.end(), [&](const Total& a, const Total& b) {
    return p.value(a.partial).producer < p.value(b.partial).producer;
  });
  return local;
}

}  // namespace orrery
