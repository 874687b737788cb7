// SPDX-License-Identifier: Apache-2.0
#include "program/op.h"

#include <numeric>
#include <stdexcept>
#include <unordered_map>

#include "base/error.h"
#include "base/text.h"
#include "program/custom_kind.h"
#include "program/op_group.h"

namespace orrery {

extern const OpDef pointwise_op, matmul_op, matmul_pointwise_op, reduce_op, argmax_op, topk_op,
    softmax_op, softmax_grad_op, layernorm_op, layernorm_grad_op, rmsnorm_op, rmsnorm_grad_op,
    norm_param_grad_op, attention_op, attention_grad_op, cross_entropy_op, cross_entropy_grad_op,
    gather_op, gather_matmul_op, scatter_add_op, scatter_matmul_op, slice_at_op, update_slice_op,
    iota_op, categorical_op, reshape_op, transpose_op, split_op, concat_op, batch_mean_op, total_op,
    stop_gradient_op, user_gradient_op, all_reduce_op, all_gather_op, reduce_scatter_op,
    broadcast_op, send_op, recv_op, all_to_all_op, permute_op, vary_op, coordinate_op, unshard_op,
    batch_sum_op, batch_gather_op, batch_slice_op, sample_index_op, sample_exchange_op, windows_op,
    fold_op, microbatch_sum_op;

const std::vector<const OpDef*>& all_op_defs() {
  // clang-format off
  static const std::vector<const OpDef*> defs = {
      &pointwise_op,          &matmul_op,             &matmul_pointwise_op,   &reduce_op,
      &argmax_op,             &topk_op,               &softmax_op,            &softmax_grad_op,
      &layernorm_op,          &layernorm_grad_op,     &rmsnorm_op,            &rmsnorm_grad_op,
      &norm_param_grad_op,    &attention_op,          &attention_grad_op,     &cross_entropy_op,
      &cross_entropy_grad_op, &gather_op,             &scatter_add_op,        &slice_at_op,
      &update_slice_op,       &iota_op,               &categorical_op,        &reshape_op,
      &transpose_op,          &split_op,              &concat_op,             &batch_mean_op,
      &total_op,              &stop_gradient_op,      &user_gradient_op,      &all_reduce_op,
      &all_gather_op,         &reduce_scatter_op,     &broadcast_op,          &send_op,
      &recv_op,               &all_to_all_op,         &permute_op,            &vary_op,
      &coordinate_op,         &batch_sum_op,          &batch_gather_op,       &batch_slice_op,
      &sample_index_op,       &sample_exchange_op,    &windows_op,            &fold_op,
      &microbatch_sum_op,     &unshard_op,            &gather_matmul_op,      &scatter_matmul_op};
  // clang-format on
  return defs;
}

const OpDef& op_def(const std::string& kind) {
  static const auto by_kind = [] {
    std::unordered_map<std::string, const OpDef*> all;
    for (const OpDef* def : all_op_defs()) all.emplace(def->kind, def);
    return all;
  }();
  if (const auto at = by_kind.find(kind); at != by_kind.end()) return *at->second;
  if (const OpDef* custom = custom_kind(kind)) return *custom;
  if (kind == group_op.kind) return group_op;
  std::vector<std::string> known;
  for (const OpDef* def : all_op_defs()) known.push_back(def->kind);
  fail(ORR_INVALID, "there is no op '{}'{}", kind, did_you_mean(kind, known));
}

void want_index(const Type& type) {
  if (type.dtype != ORR_I32 && type.dtype != ORR_I64)
    throw std::invalid_argument("indices must be i32 or i64, not " + to_string(type));
}

int32_t sum_dtype(const Attrs& attrs, int32_t summed) {
  return static_cast<int32_t>(attr_int(attrs, "dtype", summed));
}

OpArgs args_of(const Program& p, const Op& op) {
  OpArgs args{op.kind, op.attrs, op.expr, {}, op.group.get()};
  args.in.reserve(op.in.size());
  for (ValueId v : op.in) args.in.push_back(p.type(v));
  return args;
}

std::vector<Type> out_types(const Program& p, const Op& op) {
  std::vector<Type> types;
  types.reserve(op.out.size());
  for (ValueId v : op.out) types.push_back(p.type(v));
  return types;
}

Strided Strided::contiguous(const Type& type) {
  Strided x{type.dtype, type.dims, Dims(type.dims.size())};
  int64_t stride = 1;
  for (size_t i = type.dims.size(); i-- > 0; stride *= type.dims[i]) x.strides[i] = stride;
  return x;
}

bool Strided::is_contiguous() const {
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0; stride *= dims[i])
    if (dims[i] != 1 && strides[i] != stride) return false;
  return true;
}

orr_tensor Strided::abi() const {
  if (dims.size() > ORR_MAX_RANK)
    fail(ORR_INVALID, "a tensor of rank {} is beyond the limit of {}", dims.size(), +ORR_MAX_RANK);
  orr_tensor t{};
  t.dtype = dtype;
  t.rank = static_cast<int32_t>(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) t.dims[i] = dims[i], t.strides[i] = strides[i];
  return t;
}

bool merge_dims(const Strided& x, size_t begin, size_t end, int64_t& dim, int64_t& stride) {
  dim = 1, stride = 1;
  bool first = true;
  for (size_t i = end; i-- > begin;) {
    if (x.dims[i] == 1) continue;
    if (first)
      stride = x.strides[i], first = false;
    else if (x.strides[i] != dim * stride)
      return false;
    dim *= x.dims[i];
  }
  return true;
}

bool regroup(const Strided& x, const std::vector<std::pair<size_t, size_t>>& groups, Strided& out) {
  out.dtype = x.dtype;
  out.dims.assign(groups.size(), 1);
  out.strides.assign(groups.size(), 1);
  for (size_t g = 0; g < groups.size(); ++g)
    if (!merge_dims(x, groups[g].first, groups[g].second, out.dims[g], out.strides[g]))
      return false;
  return true;
}

Dims strides_in(const Strided& x, const Dims& dims) {
  Dims strides(dims.size(), 0);
  size_t shift = dims.size() - x.dims.size();
  for (size_t i = 0; i < x.dims.size(); ++i) strides[shift + i] = x.dims[i] == 1 ? 0 : x.strides[i];
  return strides;
}

Cost touch_cost(const OpArgs& args, const std::vector<Type>& out) {
  Cost cost;
  for (const Type& t : args.in) cost.bytes += static_cast<double>(t.bytes());
  for (const Type& t : out) {
    cost.bytes += static_cast<double>(t.bytes());
    cost.flops += static_cast<double>(t.elements());
  }
  return cost;
}

Cost no_cost(const OpArgs&, const std::vector<Type>&) { return {}; }

Strided as_rows(const Strided& x) {
  int64_t last = x.dims.empty() ? 1 : x.dims.back(), rows = 1;
  for (size_t i = 0; i + 1 < x.dims.size(); ++i) rows *= x.dims[i];
  return Strided::contiguous({x.dtype, {rows, last}});
}

Strided as_flat(const Strided& x) {
  return Strided::contiguous({x.dtype, {Type{x.dtype, x.dims}.elements()}});
}

// Puts x in the shape 'f', 'r' or 'R' (op.h); returns false if its strides do not allow that.
static bool shaped(const Strided& x, char letter, Strided& to) {
  to = letter == 'f' ? as_flat(x) : as_rows(x);
  if (x.is_contiguous()) return true;
  const size_t r = x.dims.size();
  return letter == 'R' && regroup(x, {{0, r - 1}, {r - 1, r}}, to) && to.strides[1] == 1;
}

KernelForm contiguous_form(const std::vector<Strided>& in, const std::vector<Strided>& out,
                           const char* shape) {
  KernelForm form;
  for (size_t i = 0; i < in.size(); ++i)
    if (!shaped(in[i], *shape++, form.in.emplace_back())) form.copy.push_back(static_cast<int>(i));
  for (const Strided& x : out)
    form.out_ok = shaped(x, *shape++, form.out.emplace_back()) && form.out_ok;
  return form;
}

KernelForm contiguous_form(const std::vector<Strided>& in, const std::vector<Strided>& out) {
  KernelForm form;
  for (size_t i = 0; i < in.size(); ++i) {
    if (!in[i].is_contiguous()) form.copy.push_back(static_cast<int>(i));
    form.in.push_back(Strided::contiguous({in[i].dtype, in[i].dims}));
  }
  for (const Strided& x : out) {
    form.out_ok = form.out_ok && x.is_contiguous();
    form.out.push_back(Strided::contiguous({x.dtype, x.dims}));
  }
  return form;
}

Sharding same_dims_sharding(const OpArgs& args, const std::vector<Type>& out) {
  std::vector<int> factors(out[0].dims.size());
  std::iota(factors.begin(), factors.end(), 0);
  return {std::vector(args.in.size(), factors), {factors}};
}

Sharding row_sharding(const OpArgs& args, const std::vector<Type>& out, size_t rank, size_t tail) {
  auto dims_of = [&](const Type& t) {
    std::vector<int> factors(t.dims.size(), kNone);
    size_t lead = rank - tail;
    if (t.dims.size() + tail >= rank && t.dims.size() >= lead)
      for (size_t i = 0; i < lead; ++i) factors[i] = static_cast<int>(i);
    return factors;
  };
  Sharding s;
  for (const Type& t : args.in) s.in.push_back(dims_of(t));
  for (const Type& t : out) s.out.push_back(dims_of(t));
  return s;
}

}  // namespace orrery
