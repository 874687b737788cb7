// SPDX-License-Identifier: Apache-2.0
//
// Replaces the all-reduce of an embedding's gradient by a gather of rows (partition/passes.h).
// Three ranks with 2 tokens each, a table f32[1000,8]:
//
//   sum f32[1000,8] of each rank, all-reduced   ->   all_gather of 6 rows f32[8] and their indices;
//                                                    each rank adds the 6 rows to a table of zeros
#include "partition/passes.h"

#include <algorithm>
#include <set>

#include "partition/shared/gather.h"
#include "program/build.h"
#include "program/op.h"

namespace orrery {
namespace {

class RowGatherer {
 public:
  RowGatherer(LocalProgram& local, const Mesh& mesh, int rank)
      : local_(local), p_(local.program), mesh_(mesh), rank_(rank) {
    for (size_t i = 0; i < p_.ops().size(); ++i)
      for (ValueId v : p_.ops()[i].in) readers_[v].push_back(i);
    for (auto& [state, next] : p_.updates()) kept_.insert(next);
    for (auto& [name, id] : p_.outputs()) kept_.insert(id);
  }

  void run() {
    for (const Total& t : local_.totals) consider(t);
    if (sums_.empty()) return;
    std::erase_if(local_.totals, [&](const Total& t) { return partials_.count(t.partial) > 0; });
    std::vector<Op> ops;
    std::swap(ops, p_.mutable_ops());
    for (size_t i = 0; i < ops.size(); ++i) emit(std::move(ops[i]), i);
  }

 private:
  struct Sum {
    Op op;  // the scatter_add
    ValueId whole;
    ValueId base;  // the gradient that the rows are added to; kNone: a table of zeros
    std::string origin;
  };

  const Op* maker(ValueId v) const {
    OpId op = p_.value(v).producer;
    return op == kNone ? nullptr : &p_.ops()[static_cast<size_t>(op)];
  }

  int64_t tokens_of_a_microbatch(const Op& op) const {
    return p_.type(op.in[0]).elements() / local_.microbatches.in_shapes();
  }

  // Plans the sum of `t` from gathered rows, if the tokens are few. It is computed before the op
  // that first reads it. If that op only adds it to another gradient, it is computed in place of
  // that op, by adding the rows to the other gradient.
  void consider(const Total& t) {
    const Op* op = maker(t.partial);
    if (!op || op->kind != "scatter_add" || t.axis != mesh_.batch_axis || t.is_cut() ||
        t.early != kNone || kept_.count(t.whole) || readers_[t.whole].empty())
      return;
    bool few = 2 * tokens_of_a_microbatch(*op) * local_.microbatches.total <=
               attr_int(op->attrs, "rows", 0);
    if (!few) return;
    size_t first = *std::min_element(readers_[t.whole].begin(), readers_[t.whole].end());
    ValueId base = partner(t.whole, p_.ops()[first]);
    if (planned_.count(base)) base = kNone;  // the rows of that sum will be added to this one
    if (mesh_.batch_ranks() == 1 && base == kNone) return;
    auto reduced = mesh_.reduced.find(t.logical);
    std::string origin = reduced == mesh_.reduced.end() ? "" : reduced->second.origin;
    if (origin.empty()) origin = mesh_.maker_of(mesh_.batch_axis);
    partials_.insert(t.partial), planned_.insert(t.whole);
    std::vector<Sum>& sums = sums_[first];  // one without a base may be the base of another
    sums.insert(base == kNone ? sums.begin() : sums.end(), {*op, t.whole, base, origin});
  }

  // The other operand, if `add` adds v to it and nothing else reads either; else kNone.
  ValueId partner(ValueId v, const Op& add) {
    if (add.kind != "pointwise" || add.in.size() != 2 || add.expr.instrs.size() != 3 ||
        readers_[v].size() != 1)
      return kNone;
    const orr_instr& last = add.expr.instrs[2];
    bool sum = last.fn == ORR_FN_ADD && last.a != last.b && add.expr.instrs[0].fn == ORR_FN_INPUT &&
               add.expr.instrs[1].fn == ORR_FN_INPUT;
    ValueId other = add.in[add.in[0] == v ? 1 : 0];
    bool alone = readers_[other].size() == 1 && !kept_.count(other) && !p_.value(other).state;
    return sum && alone && p_.type(other) == p_.type(v) && p_.type(add.out[0]) == p_.type(v)
               ? other
               : kNone;
  }

  void emit(Op op, size_t i) {
    bool replaced =
        std::any_of(op.out.begin(), op.out.end(), [&](ValueId v) { return partials_.count(v); });
    if (replaced) return;
    bool added = false;
    for (const Sum& sum : sums_[i]) added |= sum.base != kNone, emit_sum(sum, op);
    if (!added) p_.append(std::move(op));
  }

  void emit_sum(const Sum& sum, const Op& reader) {
    Op op = sum.op;
    p_.set_phase(reader.phase), p_.set_site(op.site);
    if (mesh_.batch_ranks() > 1)
      for (ValueId& v : op.in) v = gathered(v, sum);
    op.phase = reader.phase;
    op.attrs.set("leaf_lo", int64_t{0}), op.attrs.set("leaf_n", local_.microbatches.total),
        op.attrs.set("leaf_total", local_.microbatches.total);
    op.out = {sum.base == kNone ? sum.whole : reader.out[0]};
    if (sum.base != kNone) op.in.push_back(sum.base);
    p_.append(std::move(op));
  }

  // The rows v of all ranks, in the order of the microbatches.
  ValueId gathered(ValueId v, const Sum& sum) {
    Dims dims = p_.type(v).dims;
    const int64_t microbatch = p_.type(v).elements() / local_.microbatches.in_shapes();
    ShardedTensor rows;
    for (int64_t first : assign_microbatches(local_.microbatches.total, mesh_))
      rows.cuts.push_back(first * microbatch);
    if (local_.microbatches.count() > 0) rows.own = {v};
    const std::string& axis = mesh_.batch_axis;
    const ValueId all = gather_together(p_, {rows}, p_.type(v).dtype,
                                        {axis, sum.origin, mesh_.coordinate(axis, rank_)})[0];
    dims[0] = dims[0] / local_.microbatches.in_shapes() * local_.microbatches.total;
    return build::reshape(p_, all, dims);
  }

  LocalProgram& local_;
  Program& p_;
  const Mesh& mesh_;
  int rank_;
  std::map<ValueId, std::vector<size_t>> readers_;
  std::set<ValueId> kept_, partials_, planned_;
  std::map<size_t, std::vector<Sum>> sums_;  // by the op before which they are computed
};

}  // namespace

void gather_rows(LocalProgram& local, const Mesh& mesh, int rank) {
  if (!local.microbatches.one_by_one) RowGatherer(local, mesh, rank).run();
}

}  // namespace orrery
