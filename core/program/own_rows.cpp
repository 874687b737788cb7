// SPDX-License-Identifier: Apache-2.0
//
// The ops that make such a value are added again for the samples: random numbers and repetitions
// are functions of the place in the whole tensor, so the rows have the same bits wherever they are
// made.
#include "program/own_rows.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "program/build.h"

namespace orrery {
namespace {

// Makes it a value of the samples along this dim: the op that makes it reads none.
ValueId of_samples(Program& p, ValueId v, size_t dim) {
  p.mutable_value(v).set_batch(Batch::sharded, static_cast<int32_t>(dim));
  return v;
}

ValueId rows_of(Program& p, ValueId v, size_t dim);

// The op with the outputs of its own that it gets when it is added again.
ValueId added_again(Program& p, Op op) {
  op.out.clear(), op.phase = p.phase(), op.twin = kNone;
  p.append(std::move(op));
  return p.ops().back().out[0];
}

bool draws(const Op& op) {
  return std::any_of(op.expr.instrs.begin(), op.expr.instrs.end(),
                     [](const orr_instr& i) { return i.fn == ORR_FN_RAND; });
}

int64_t in_front(const Dims& dims, size_t dim) {
  return std::accumulate(dims.begin(), dims.begin() + static_cast<long>(dim), int64_t{1},
                         std::multiplies<>());
}

// Of a value that is made whole everywhere: random numbers for samples need the batch first.
ValueId gathered_rows(Program& p, ValueId v, size_t dim) {
  return build::move_dim(p, own_rows(p, build::move_dim(p, v, dim, 0)), 0, dim);
}

// Of an elementwise op whose operands are repeated where they have fewer dims or extent 1.
ValueId rows_of_pointwise(Program& p, Op op, size_t dim) {
  const size_t rank = p.type(op.out[0]).dims.size();
  bool from_samples = false;
  for (ValueId& x : op.in) {
    const Dims dims = p.type(x).dims;
    const size_t missing = rank - dims.size();
    if (dim < missing || dims[dim - missing] == 1) continue;
    x = rows_of(p, x, dim - missing);
    if (x == kNone) return kNone;
    from_samples = true;
  }
  const ValueId y = added_again(p, std::move(op));
  return from_samples ? y : of_samples(p, y, dim);
}

// Of a reshape before and after which as many elements lie in front of the dim.
ValueId rows_of_reshape(Program& p, Op op, size_t dim) {
  const Dims from = p.type(op.in[0]).dims, to = p.type(op.out[0]).dims;
  for (size_t d = 0; d < from.size(); ++d) {
    if (from[d] != to[dim] || in_front(from, d) != in_front(to, dim)) continue;
    op.in[0] = rows_of(p, op.in[0], d);
    return op.in[0] == kNone ? kNone : added_again(p, std::move(op));
  }
  return kNone;
}

// Of rows of a table: those that the samples' own ids name.
ValueId rows_of_gather(Program& p, Op op, size_t dim) {
  if (dim >= p.type(op.in[1]).dims.size()) return kNone;
  op.in[1] = rows_of(p, op.in[1], dim);
  return op.in[1] == kNone ? kNone : added_again(p, std::move(op));
}

// What `v` has for each sample along a dim that has the batch's extent; kNone if its rows may
// differ by more than their place: those of parameters, of what the script hands in, of other ops.
ValueId rows_of(Program& p, ValueId v, size_t dim) {
  const OpId maker = p.value(v).producer;
  if (maker == kNone || p.value(v).batch() != Batch::none || !p.value(v).varying().empty())
    return kNone;
  Op op = p.ops()[static_cast<size_t>(maker)];
  if (op.kind == "pointwise" && draws(op) && in_front(p.type(v).dims, dim) > 1)
    return gathered_rows(p, v, dim);
  if (op.kind == "pointwise") return rows_of_pointwise(p, std::move(op), dim);
  if (op.kind == "gather") return rows_of_gather(p, std::move(op), dim);
  if (op.kind == "reshape") return rows_of_reshape(p, std::move(op), dim);
  if (op.kind == "transpose") {
    const auto from = static_cast<size_t>(attr_ints(op.attrs, "perm")[dim]);
    op.in[0] = rows_of(p, op.in[0], from);
    return op.in[0] == kNone ? kNone : added_again(p, std::move(op));
  }
  if (op.kind == "iota") return p.cast(build::sample_index(p), p.type(v).dtype);
  return kNone;
}

// The factor of the batch dims of all inputs of samples, if there is one.
int factor_of_batch(const Program& p, const Op& op, const Sharding& s) {
  int factor = kNone;
  for (size_t i = 0; i < op.in.size(); ++i) {
    const Value& v = p.value(op.in[i]);
    if (v.batch() != Batch::sharded) continue;
    const int its = s.in[i][static_cast<size_t>(v.batch_dim())];
    if (its == kNone || (factor != kNone && its != factor)) return kNone;
    factor = its;
  }
  return factor;
}

}  // namespace

ValueId own_rows(Program& p, ValueId x) {
  const Dims dims = p.type(x).dims;
  const ValueId table = build::reshape(p, x, {dims[0], p.type(x).elements() / dims[0]});
  return build::reshape(p, build::gather(p, table, build::sample_index(p)), dims);
}

void take_own_rows(Program& p, Op& op, const std::vector<Type>& out) {
  const auto is_of = [&](ValueId v, Batch batch) { return p.value(v).batch() == batch; };
  const auto any = [&](Batch batch) {
    return std::any_of(op.in.begin(), op.in.end(), [&](ValueId v) { return is_of(v, batch); });
  };
  if (p.phase() != Phase::forward || p.batch_size() < 2 || op.kind == "user_gradient") return;
  if (!any(Batch::sharded) || !any(Batch::none)) return;
  const Sharding s = op_def(op.kind).sharding(args_of(p, op), out);
  const int factor = factor_of_batch(p, op, s);
  const bool for_each = std::all_of(s.out.begin(), s.out.end(), [&](const std::vector<int>& dims) {
    return std::count(dims.begin(), dims.end(), factor) > 0;
  });
  if (factor == kNone || !for_each) return;
  for (size_t i = 0; i < op.in.size(); ++i) {
    const Dims dims = p.type(op.in[i]).dims;
    for (size_t d = 0; d < s.in[i].size() && is_of(op.in[i], Batch::none); ++d) {
      if (s.in[i][d] != factor || dims[d] != p.batch_size()) continue;
      const ValueId rows = rows_of(p, op.in[i], d);
      if (rows != kNone) op.in[i] = rows;
    }
  }
}

}  // namespace orrery
