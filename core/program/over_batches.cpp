// SPDX-License-Identifier: Apache-2.0
#include "program/over_batches.h"

#include <algorithm>
#include <set>

#include "program/op.h"
#include "program/relate.h"
#include "program/rewrite.h"
#include "program/state.h"

namespace orrery {
namespace {

using SumOf = std::function<std::shared_ptr<State>(size_t i, const Type& type)>;

class Sums {
 public:
  Sums(Program& p, const SumOf& sum_of) : p_(p), sum_of_(sum_of) {}

  // v, computed of the sums of all batches so far.
  ValueId of(ValueId v) {
    const Batch batch = p_.value(v).batch();
    if (batch != Batch::partial && batch != Batch::mean) return v;
    if (auto known = known_.find(v); known != known_.end()) return known->second;
    return known_[v] = batch == Batch::partial ? added(v) : computed(v);
  }

  std::vector<std::shared_ptr<State>> sums;

 private:
  ValueId added(ValueId v) {
    const Type type = p_.type(v);
    const int32_t dtype = is_real(type.dtype) ? ORR_F64 : ORR_I64;
    sums.push_back(sum_of_(sums.size(), {dtype, type.dims}));
    const ValueId state = p_.state_value(sums.back());
    const ValueId goes_on =
        p_.pointwise(ORR_FN_NE, {p_.scalar_input(kContinues, ORR_F32), Operand::number(0)});
    const ValueId before = p_.pointwise(ORR_FN_SELECT, {goes_on, state, Operand::number(0)});
    const ValueId all = p_.pointwise(ORR_FN_ADD, {before, p_.cast(v, dtype)});
    p_.update(state, all);
    return p_.cast(all, type.dtype);
  }

  ValueId computed(ValueId v) {
    Op op = p_.ops()[static_cast<size_t>(p_.value(v).producer)];
    for (ValueId& x : op.in) x = of(x);
    if (op.kind == "batch_mean") return p_.pointwise(ORR_FN_DIV, {op.in[0], op.in[1]});
    const std::vector<ValueId> made = op.out;
    op.out.clear();
    p_.append(std::move(op));
    const std::vector<ValueId> out = p_.ops().back().out;
    for (size_t j = 0; j < made.size(); ++j) known_[made[j]] = out[j];
    return known_.at(v);
  }

  Program& p_;
  const SumOf& sum_of_;
  std::map<ValueId, ValueId> known_;
};

// The ops by which a sample meets the others of its batch, or learns its place among them.
bool joins_samples(const Op& op) {
  static const std::set<std::string> kinds = {"batch_gather", "batch_slice", "batch_sum",
                                              "microbatch_sum", "sample_index"};
  return kinds.count(op.kind) > 0;
}

// By op: whether both compute the same, but for the extents of tensors.
bool is_alike(const Op& a, const Op& b) {
  return a.kind == b.kind &&
         std::equal(a.expr.outputs.begin(), a.expr.outputs.end(), b.expr.outputs.begin(),
                    b.expr.outputs.end()) &&
         std::equal(a.expr.instrs.begin(), a.expr.instrs.end(), b.expr.instrs.begin(),
                    b.expr.instrs.end(), [](const orr_instr& x, const orr_instr& y) {
                      return x.fn == y.fn && x.dtype == y.dtype && x.a == y.a && x.b == y.b &&
                             x.c == y.c && (x.imm == y.imm || (x.imm != x.imm && y.imm != y.imm));
                    });
}

std::vector<const Op*> behind(const Program& p, const std::vector<ValueId>& results) {
  const std::vector<bool> needed = ops_behind(p, results);
  std::vector<const Op*> ops;
  for (size_t i = 0; i < needed.size(); ++i)
    if (needed[i]) ops.push_back(&p.ops()[i]);
  return ops;
}

}  // namespace

OverBatches add_up_batches(Program& p, size_t first, const SumOf& sum_of) {
  OverBatches made;
  Sums sums(p, sum_of);
  for (size_t i = first; i < p.outputs().size(); ++i) {
    const auto [name, v] = p.outputs()[i];
    if (p.value(v).batch() == Batch::sharded) made.rows[name] = p.value(v).batch_dim();
    const ValueId all = sums.of(v);
    p.mutable_outputs()[i].second = all;
  }
  made.sums = std::move(sums.sums);
  return made;
}

std::string why_not_of_sums(const Program& p, const std::vector<ValueId>& results,
                            const Program& of_other_size, const std::vector<ValueId>& others) {
  const std::vector<const Op*> ops = behind(p, results), other = behind(of_other_size, others);
  for (const Op* op : ops)
    if (joins_samples(*op)) return op->site.prefix() + "samples read others of their batch here";
  for (size_t i = 0; i < std::min(ops.size(), other.size()); ++i)
    if (!is_alike(*ops[i], *other[i]))
      return ops[i]->site.prefix() + name_of(*ops[i]) +
             " depends on how many samples the batch has (write a mean as x:mean(), not as a sum "
             "divided by the size)";
  if (ops.size() != other.size())
    return "the function makes other values for another number of samples";
  return "";
}

}  // namespace orrery
