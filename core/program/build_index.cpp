// SPDX-License-Identifier: Apache-2.0
//
// Operations that make indices, and that read and write elements by them.
#include "base/error.h"
#include "program/build.h"
#include "program/elements.h"

namespace orrery::build {

ValueId argmax(Program& p, ValueId x) {
  if (p.type(x).elements() == 0) p.fail_here("argmax: there is none in " + to_string(p.type(x)));
  return p.add1("argmax", {x});
}

std::vector<ValueId> topk(Program& p, ValueId x, int64_t k) {
  return p.add("topk", {x}, {{"k", k}});
}

ValueId sample_index(Program& p) {
  if (!p.batch_size()) p.fail_here("sample_index: there is no batch here");
  return p.add1("sample_index", {}, {{"dims", Dims{p.batch_size()}}});
}

ValueId iota(Program& p, int64_t n, int32_t dtype) {
  if (n > 0 && !fits(static_cast<double>(n - 1), dtype))
    p.fail_here(fmt::format("iota: {} does not fit into {}", n - 1, dtype_name(dtype)));
  return p.add1("iota", {},
                {{"n", n}, {"dtype", static_cast<int64_t>(dtype)}, {"start", int64_t{0}}});
}

ValueId categorical(Program& p, ValueId logits) {
  ValueId base = p.constant(0, ORR_I64);
  return p.add1("categorical", {logits, p.seed(), p.step(), base}, {{"rng_id", p.next_rng_id()}});
}

ValueId gather(Program& p, ValueId table, ValueId index) {
  return p.add1("gather", {table, index});
}

ValueId take(Program& p, ValueId x, ValueId index) {
  const Dims dims = p.type(index).dims;
  ValueId found = gather(p, reshape(p, x, {-1, 1}), reshape(p, index, {-1}));
  return reshape(p, found, dims);
}

// A table of zeros with so many rows, to which `values` are added at the rows `index`.
static ValueId scattered(Program& p, int64_t rows, ValueId index, ValueId values) {
  return p.add1("scatter_add", {index, values}, {{"rows", rows}});
}

ValueId put(Program& p, ValueId x, ValueId index, const Operand& value) {
  const Type type = p.type(x);
  const int64_t n = type.elements();
  index = reshape(p, index, {-1});
  const int64_t k = p.type(index).elements();
  ValueId named = scattered(p, n, index, broadcast(p, p.constant(1, ORR_F32), {k, 1}));
  named = reshape(p, p.pointwise(ORR_FN_GT, {named, Operand::number(0)}), type.dims);
  if (value.id == kNone) return p.pointwise(ORR_FN_SELECT, {named, value, x});
  ValueId values =
      reshape(p, broadcast(p, p.cast(value.id, type.dtype), p.type(index).dims), {k, 1});
  ValueId there = reshape(p, scattered(p, n, index, values), type.dims);
  return p.pointwise(ORR_FN_SELECT, {named, there, x});
}

ValueId scatter_add(Program& p, ValueId x, ValueId index, ValueId rows) {
  const Type type = p.type(x);
  if (type.dims.empty()) p.fail_here("scatter_add: a scalar has no rows");
  const int64_t n = type.dims[0], k = p.type(index).elements();
  const int64_t width = type.elements() / std::max<int64_t>(n, 1);
  if (p.type(rows).elements() != k * width || p.type(rows).dtype != type.dtype)
    p.fail_here(fmt::format("scatter_add: {} rows of {} are wanted for {} positions, not {}", k,
                            to_string(type), k, to_string(p.type(rows))));
  ValueId there = scattered(p, n, reshape(p, index, {-1}), reshape(p, rows, {k, width}));
  return p.pointwise(ORR_FN_ADD, {x, reshape(p, there, type.dims)});
}

}  // namespace orrery::build
