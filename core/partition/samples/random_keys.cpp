// SPDX-License-Identifier: Apache-2.0
#include "partition/samples/random_keys.h"

#include "base/error.h"
#include "program/rewrite.h"

namespace orrery {

void RandomKeys::set(const Op& op, Op& copy) {
  const Value& out = from_.value(op.out[0]);
  for (const orr_instr& i : op.expr.instrs)
    if (i.fn == ORR_FN_RAND) key_random(copy, copy.expr.instrs[static_cast<size_t>(i.c)], out, op);
  if (op.attrs.has("rng_id")) copy.in.back() = first_element(numbers_per_row(out, op), op);
}

// How many random numbers the op draws for each row of `out`. It draws one for each element, but
// attention one for each of its weights.
int64_t RandomKeys::numbers_per_row(const Value& out, const Op& op) const {
  const int64_t per_row = elements_per_row(out, op);
  if (op.kind == "categorical") return per_row;
  const size_t q = op.kind == "attention" ? 0 : 1;
  const Dims &rows = from_.type(op.in[q]).dims, &keys = from_.type(op.in[q + 1]).dims;
  const int64_t heads = attr_int(op.attrs, "heads", 1);
  return per_row / rows[2] * keys[1] * attr_int(op.attrs, "head_total", heads);
}

// Makes the register `base` of a pointwise op the index of the rank's first element.
void RandomKeys::key_random(Op& copy, orr_instr& base, const Value& out, const Op& op) {
  if (!microbatches_.one_by_one) {
    base.imm = static_cast<double>(microbatches_.first_row() * elements_per_row(out, op));
    return;
  }
  copy.in.push_back(first_element(elements_per_row(out, op), op));
  base.fn = ORR_FN_INPUT, base.a = static_cast<int32_t>(copy.in.size()) - 1, base.imm = 0;
}

// The global index of the first element that a call computes, as an i64 scalar.
ValueId RandomKeys::first_element(int64_t per_row, const Op& op) {
  if (auto known = first_elements_.find({op.stage, per_row}); known != first_elements_.end())
    return known->second;
  ValueId first;
  if (microbatches_.one_by_one) {
    Op times;
    times.kind = "pointwise", times.in = {to_.scalar_input("$row", ORR_I64)};
    int32_t row = times.expr.push(ORR_FN_INPUT, ORR_I64, 0);
    int32_t width =
        times.expr.push(ORR_FN_CONST, ORR_I64, -1, -1, -1, static_cast<double>(per_row));
    times.expr.outputs = {times.expr.push(ORR_FN_MUL, ORR_I64, row, width)};
    times.attrs.set("dims", Dims{});
    first = append_op(to_, std::move(times), {ORR_I64, {}});
    to_.mutable_value(first).set_batch(Batch::sharded);  // it differs for every microbatch
  } else {
    first = to_.constant(static_cast<double>(microbatches_.first_row() * per_row), ORR_I64);
  }
  return first_elements_[{op.stage, per_row}] = first;
}

int64_t RandomKeys::elements_per_row(const Value& v, const Op& op) const {
  int64_t outer = 1, per_row = 1;
  for (size_t d = 0; d < v.type.dims.size(); ++d) {
    if (static_cast<int32_t>(d) < v.batch_dim()) outer *= v.type.dims[d];
    if (static_cast<int32_t>(d) > v.batch_dim()) per_row *= v.type.dims[d];
  }
  if (outer != 1 && microbatches_.rows_per_call() < from_.batch_size())
    throw Error(ORR_FAILED, op.site.prefix() +
                                "random numbers need the batch in the first dim of " +
                                to_string(v.type.dims));
  return per_row * (v.type.dims[static_cast<size_t>(v.batch_dim())] / from_.batch_size());
}

}  // namespace orrery
