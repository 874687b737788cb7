// SPDX-License-Identifier: Apache-2.0
#include "lower/kernels/launcher.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "lower/kernels/joined_ops.h"
#include "program/eight_bits.h"

namespace orrery {
namespace {

constexpr int64_t kMostRows = 4096;  // launches that one copy may become

bool is_short(const Place& x) {
  return is_real(x.layout.dtype) && orr_dtype_bytes(x.layout.dtype) == 2;
}

bool can_widen(const Op& op, const std::vector<Place>& in, const std::vector<Place>& out) {
  return op.attrs.has("dtype") && out[0].layout.dtype == ORR_F32 &&
         std::any_of(in.begin(), in.end(), is_short);
}

bool has_gaps(const std::vector<Place>& places) {
  return std::any_of(places.begin(), places.end(),
                     [](const Place& x) { return !x.layout.is_contiguous(); });
}

std::vector<Strided> layouts(const std::vector<Place>& places) {
  std::vector<Strided> out;
  for (const Place& x : places) out.push_back(x.layout);
  return out;
}

}  // namespace

int Launcher::new_storage(uint64_t bytes, const std::string& category) {
  Storage s;
  s.bytes = bytes, s.category = category;
  bool per_microbatch = segment_ != Segment::prologue && segment_ != Segment::update;
  if (plan_.local.microbatches.one_by_one && per_microbatch) s.by = Slots::ring;
  return plan_.add(std::move(s));
}

Place Launcher::new_place(const Type& type) {
  return {new_storage(type.bytes(), "activation"), 0, Strided::contiguous(type)};
}

// Copies the inputs that have more dims than all kernels take, unless the best kernel takes them.
void Launcher::copy_nested(const Op& op, KernelForm& form, std::vector<Place>& in,
                           const std::vector<Place>& out) {
  if (form.nested.empty() || !form.copy.empty()) return;
  std::vector<Strided> dense = layouts(in);
  for (int i : form.nested) {
    Strided& x = dense[static_cast<size_t>(i)];
    x = Strided::contiguous({x.dtype, x.dims});
  }
  const KernelForm other = op_def(op.kind).form(op, dense, layouts(out));
  const auto score = [&](const KernelForm& f) {
    Launch launch;
    launch.op = op, launch.in = abi_tensors(f.in), launch.out = abi_tensors(f.out);
    return kernels_.best(launch).score;
  };
  if (score(form) >= score(other)) return;
  for (int i : form.nested) {
    Place& x = in[static_cast<size_t>(i)];
    x = contiguous_copy(op, x);
  }
  form = op_def(op.kind).form(op, layouts(in), layouts(out));
}

bool Launcher::writes(const Op& op, const std::vector<Strided>& in, const Strided& out) const {
  Launch asked;
  if (score_as_it_is(kernels_, op, in, {out}, asked)) return true;
  std::vector<Strided> copied;
  for (const Strided& x : in) copied.push_back(Strided::contiguous({x.dtype, x.dims}));
  return score_as_it_is(kernels_, op, copied, {out}, asked) > 0;
}

void Launcher::add(const Op& op, std::vector<Place> in, const std::vector<Place>& out) {
  KernelForm form = op_def(op.kind).form(op, layouts(in), layouts(out));
  copy_nested(op, form, in, out);
  if (op.kind == "matmul_pointwise" && !taken_as_one(kernels_, op, layouts(in), layouts(out)))
    return add_unfused(op, in, out);
  Launch launch;
  launch.op = op;
  for (int attempt = 0;; ++attempt) {
    std::set<int> copies(form.copy.begin(), form.copy.end());
    if (copies.empty()) {
      launch.in = abi_tensors(form.in), launch.out = abi_tensors(form.out);
      if (op.kind == "matmul" && is_better_wider(kernels_, launch))
        return add_of_wider_factors(op, std::move(in), out);
      if (can_widen(op, in, out) && !kernels_.takes(launch))
        return add_widened(op, std::move(in), out);
      if (op.kind != "pointwise" && has_gaps(out) && !kernels_.takes(launch))
        return add_beside(op, in, out);
      orr_support support = kernels_.choose(launch);
      for (size_t i = 0; i < form.in.size(); ++i)
        if (!form.in[i].is_contiguous() && !(support.strided_in >> i & 1))
          copies.insert(static_cast<int>(i));
      bool out_fits = form.out_ok;
      for (size_t i = 0; i < form.out.size(); ++i)
        out_fits = out_fits && (form.out[i].is_contiguous() || (support.strided_out >> i & 1));
      if (copies.empty() && !out_fits && !has_gaps(out)) refuse_layouts(launch);
      if (copies.empty() && !out_fits) return add_beside(op, in, out);
    }
    if (copies.empty()) break;
    if (attempt > 2) refuse_layouts(launch);
    for (int i : copies) {
      Place& x = in[static_cast<size_t>(i)];
      x = x.layout.is_contiguous() ? transposed_copy(op, x) : contiguous_copy(op, x);
    }
    form = op_def(op.kind).form(op, layouts(in), layouts(out));
  }
  launch.in_at = std::move(in), launch.out_at = out;
  finish(std::move(launch));
}

// No copy of an input or output helps: the op repeats elements, and the kernel takes no strides.
void Launcher::refuse_layouts(const Launch& launch) const {
  fail(ORR_UNAVAILABLE,
       "{}{}: kernel plugin '{}' says that it takes no strides here (strided_in, strided_out of "
       "orrery/kernel.h), and no copy has the layout that it takes: choose other --kernels",
       launch.op.site.prefix(), launch.op.kind,
       plan_.kernel_names[static_cast<size_t>(launch.kernels)]);
}

// Adds a matmul_pointwise as the two ops that it stands for. If the product is an output as well,
// the matmul writes it there.
void Launcher::add_unfused(const Op& op, const std::vector<Place>& in,
                           const std::vector<Place>& out) {
  Op rest = op;
  rest.kind = "pointwise", rest.attrs = {{"dims", out[0].layout.dims}}, rest.expr.outputs.clear();
  std::vector<Place> in_rest(in.begin() + 1, in.end()), out_rest;
  Place& y = in_rest[0];
  y.storage = kNone;
  for (size_t j = 0; j < out.size(); ++j) {
    if (is_product(op, op.expr.outputs[j]))
      y = out[j];
    else
      out_rest.push_back(out[j]), rest.expr.outputs.push_back(op.expr.outputs[j]);
  }
  if (y.storage == kNone) y = new_place({product_dtype(op), out[0].layout.dims});
  add(product_of(op), {in[0], in[1]}, {y});
  add(rest, in_rest, out_rest);
}

void Launcher::copy(const Op& reason, const Place& from, const Place& to) {
  Op copy;
  copy.kind = "pointwise", copy.phase = reason.phase, copy.site = reason.site,
  copy.stage = reason.stage;
  int32_t x = copy.expr.push(ORR_FN_INPUT, from.layout.dtype, 0);
  const int32_t dtype = to.layout.dtype;
  copy.expr.outputs = {dtype == from.layout.dtype ? x : copy.expr.push(ORR_FN_CAST, dtype, x)};
  add_copy(copy, from, to, 1);
}

// Whether a kernel takes the strides of this copy. Where none does, no other copy can help.
// `plugin`: the one with the best kernel.
bool Launcher::copies(const Op& copy, const Place& from, const Place& to, int& plugin) const {
  const KernelForm form = op_def(copy.kind).form(copy, {from.layout}, {to.layout});
  Launch launch;
  launch.op = copy, launch.in = abi_tensors(form.in), launch.out = abi_tensors(form.out);
  const orr_support support = kernels_.choose(launch);
  plugin = launch.kernels;
  return (form.in[0].is_contiguous() || (support.strided_in & 1)) &&
         (form.out[0].is_contiguous() || (form.out_ok && (support.strided_out & 1)));
}

// Adds a copy, one of `n` alike that a larger one was divided into, or one of each of its rows.
void Launcher::add_copy(const Op& copy, const Place& from, const Place& to, int64_t n) {
  int plugin = 0;
  if (copies(copy, from, to, plugin)) return add(copy, {from}, {to});
  const int64_t rows = to.layout.dims[0];  // a tensor without dims is contiguous
  if (n * rows > kMostRows)
    fail(ORR_UNAVAILABLE,
         "{}a tensor of {} must be copied from or to memory with gaps, and kernel plugin '{}' says "
         "of 'pointwise' that it takes no such strides (strided_in, strided_out of "
         "orrery/kernel.h): that would be more than {} copies of a row. Choose other --kernels, or "
         "smaller microbatches",
         copy.site.prefix(), to_string({to.layout.dtype, to.layout.dims}),
         plan_.kernel_names[static_cast<size_t>(plugin)], kMostRows);
  const auto row = [](Place x, int64_t i) {
    x.offset += static_cast<uint64_t>(i * x.layout.strides[0] * orr_dtype_bytes(x.layout.dtype));
    x.layout.dims.erase(x.layout.dims.begin());
    x.layout.strides.erase(x.layout.strides.begin());
    return x;
  };
  for (int64_t i = 0; i < rows; ++i) add_copy(copy, row(from, i), row(to, i), n * rows);
}

Place Launcher::contiguous_copy(const Op& reason, const Place& from, int32_t dtype) {
  const Place to = new_place({dtype ? dtype : from.layout.dtype, from.layout.dims});
  copy(reason, from, to);
  return to;
}

// A copy whose last two dims lie in the other order: contiguous for an op that reads its transpose.
Place Launcher::transposed_copy(const Op& reason, const Place& from) {
  Dims dims = from.layout.dims;
  const size_t r = dims.size();
  if (r < 2) return contiguous_copy(reason, from);
  std::swap(dims[r - 1], dims[r - 2]);
  Place to = new_place({from.layout.dtype, dims});
  std::swap(to.layout.dims[r - 1], to.layout.dims[r - 2]);
  std::swap(to.layout.strides[r - 1], to.layout.strides[r - 2]);
  copy(reason, from, to);
  return to;
}

void Launcher::post(Exchange exchange) {
  plan_.order.push_back({Step::post, segment_, static_cast<int>(plan_.exchanges.size()), chunk_});
  plan_.exchanges.push_back(std::move(exchange));
}

// Adds an op whose kernel cannot write with strides: it writes contiguous tensors, and copies
// follow.
void Launcher::add_beside(const Op& op, const std::vector<Place>& in,
                          const std::vector<Place>& out) {
  std::vector<Place> beside;
  for (const Place& x : out)
    beside.push_back(x.layout.is_contiguous() ? x : new_place({x.layout.dtype, x.layout.dims}));
  add(op, in, beside);
  for (size_t i = 0; i < out.size(); ++i)
    if (beside[i].storage != out[i].storage) copy(op, beside[i], out[i]);
}

// Adds an op that sums 16-bit tensors to f32 and that no kernel computes (ops.h, ANOTHER DTYPE):
// its inputs are cast to f32 first.
void Launcher::add_widened(const Op& op, std::vector<Place> in, const std::vector<Place>& out) {
  for (Place& x : in)
    if (is_short(x)) x = contiguous_copy(op, x, ORR_F32);
  add(op, std::move(in), out);
}

// Adds a product of eight-bit factors that no kernel computes, or not as well (ops.h, EIGHT BITS):
// they are cast first.
void Launcher::add_of_wider_factors(const Op& op, std::vector<Place> in,
                                    const std::vector<Place>& out) {
  for (Place& x : in)
    if (is_eight_bits(x.layout.dtype))
      x = contiguous_copy(op, x, wider_factors(out[0].layout.dtype));
  add(op, std::move(in), out);
}

// Tells a product which of its tensors have padding (ops.h, matmul). Of one with an expression that
// has several results the words would not say which is meant.
void Launcher::note_padding(Launch& launch) const {
  if (launch.out_at.size() > 1) return;
  int64_t padded = 0, bit = 1;
  for (const Place* x : {&launch.in_at[0], &launch.in_at[1], &launch.out_at[0]}) {
    if (plan_.storage(x->storage).padded) padded |= bit;
    bit *= 2;
  }
  if (padded) launch.op.attrs.set("padded", padded);
}

void Launcher::finish(Launch launch) {
  if (launch.op.kind == "matmul" || launch.op.kind == "matmul_pointwise") note_padding(launch);
  const uint64_t workspace = kernels_.workspace_of(launch);
  if (workspace) launch.workspace = new_storage(workspace, "workspace");
  OpArgs args{launch.op.kind, launch.op.attrs, launch.op.expr, {}, launch.op.group.get()};
  std::vector<Type> outs;
  for (const Place& x : launch.in_at) args.in.push_back({x.layout.dtype, x.layout.dims});
  for (const Place& x : launch.out_at) outs.push_back({x.layout.dtype, x.layout.dims});
  launch.cost = op_def(launch.op.kind).cost(args, outs);
  plan_.order.push_back({Step::launch, segment_, static_cast<int>(plan_.launches.size()), chunk_});
  plan_.launches.push_back(std::move(launch));
}

}  // namespace orrery
