// SPDX-License-Identifier: Apache-2.0
#include "lower/kernels/padded_rows.h"

#include <algorithm>

#include <orrery/sdk/path.hpp>

#include "lower/kernels/joined_ops.h"
#include "program/strided.h"

namespace orrery {
namespace {

constexpr int64_t kStep = 64;      // elements: whole cache lines in any dtype
constexpr int64_t kLongRow = 256;  // elements from which the padding is small

Strided padded(const Type& type) {
  Strided x = Strided::contiguous(type);
  int64_t stride = (type.dims.back() + kStep - 1) / kStep * kStep;
  for (size_t i = type.dims.size() - 1; i-- > 0; stride *= type.dims[i]) x.strides[i] = stride;
  return x;
}

bool is_loss(const Op& op) { return op.kind == "cross_entropy" || op.kind == "cross_entropy_grad"; }

bool in_no_module(const Op& op) { return orr::path::inside(op.site.region.str()).empty(); }

// Whether a pipeline has these ops in one stage however it cuts the model into modules.
bool stay_together(const Op& maker, const Op& reader) {
  return maker.phase != Phase::forward || in_no_module(reader) ||
         reader.site.region == maker.site.region;
}

}  // namespace

PaddedRows::PaddedRows(const RankPlan& plan, const std::vector<std::vector<size_t>>& readers)
    : plan_(plan), readers_(readers), kernels_(plan.kernel_names) {
  const Program& p = plan.local.program;
  for (const Total& t : plan.local.totals) dense_.insert(t.partial);
  for (auto& [state, next] : p.updates()) dense_.insert(next);
  for (auto& [name, id] : p.outputs()) dense_.insert(id);
}

Strided PaddedRows::layout_of(ValueId v, const Op& maker) const {
  const Type& type = plan_.local.program.type(v);
  if (!pay_for(type)) return Strided::contiguous(type);
  const Strided x = padded(type);
  bool in_loss = is_loss(maker);
  const bool taken = takes(maker, {v}, x) && readers_take(v, x, maker, in_loss);
  return taken && in_loss ? x : Strided::contiguous(type);
}

bool PaddedRows::pay_for(const Type& type) const {
  if (plan_.row_alignment == 0 || type.dims.size() < 2 || type.elements() == 0) return false;
  const int64_t columns = type.dims.back(), bytes = columns * orr_dtype_bytes(type.dtype);
  return columns > kLongRow && static_cast<uint64_t>(bytes) % plan_.row_alignment != 0;
}

// Whether the best kernel for an op takes these values in this layout, all else being contiguous.
bool PaddedRows::takes(const Op& op, const std::vector<ValueId>& wide,
                       const Strided& layout) const {
  const auto layouts = [&](const std::vector<ValueId>& values) {
    std::vector<Strided> all;
    for (ValueId x : values)
      all.push_back(std::count(wide.begin(), wide.end(), x)
                        ? layout
                        : Strided::contiguous(plan_.local.program.type(x)));
    return all;
  };
  Launch asked;
  return score_as_it_is(kernels_, op, layouts(op.in), layouts(op.out), asked) > 0;
}

bool PaddedRows::readers_take(ValueId v, const Strided& layout, const Op& maker,
                              bool& in_loss) const {
  if (dense_.count(v)) return false;
  for (size_t i : readers_[static_cast<size_t>(v)]) {
    const Op& op = plan_.local.program.ops()[i];
    if (!stay_together(maker, op) || !reader_takes(op, v, layout, in_loss)) return false;
  }
  return true;
}

bool PaddedRows::reader_takes(const Op& op, ValueId v, const Strided& layout, bool& in_loss) const {
  const Program& p = plan_.local.program;
  if (op.kind == "reshape") {
    Strided view;
    return reshaped(layout, p.type(op.out[0]).dims, view) &&
           readers_take(op.out[0], view, op, in_loss);
  }
  in_loss = in_loss || is_loss(op);
  // What is added to logits makes logits, which lie as those do.
  std::vector<ValueId> wide = {v};
  for (ValueId y : op.out)
    if (op.kind == "pointwise" && p.type(y) == p.type(v)) wide.push_back(y);
  return takes(op, wide, layout) && std::all_of(wide.begin() + 1, wide.end(), [&](ValueId y) {
           return readers_take(y, layout, op, in_loss);
         });
}

uint64_t bytes_of(const Strided& x) {
  int64_t elements = 1;
  for (size_t i = 0; i < x.dims.size(); ++i) {
    if (x.dims[i] == 0) return 0;
    elements = std::max(elements, x.dims[i] * x.strides[i]);
  }
  return static_cast<uint64_t>(elements * orr_dtype_bytes(x.dtype));
}

}  // namespace orrery
