// SPDX-License-Identifier: Apache-2.0
//
// windows: x[..., L..., C] -> y[..., O..., K..., C], the windows of ints "size" K over the n dims
// before the last: y[o, k] = x[o * stride + k * dilation] (ints "stride", "dilation"). No element
// moves: windows may overlap in memory, and lowering makes a view of them.
//
// fold: the other way, x[..., O..., K..., C] -> y[..., L..., C] (ints "length" L, "stride",
// "dilation"): what windows share is added up. Each is the other's gradient.
//
// Convolutions and pooling are made of these (scripts/orrery/nn/).
#include <algorithm>
#include <stdexcept>

#include "program/build.h"
#include "program/on_parts.h"
#include "program/strided.h"

namespace orrery {
namespace {

void want_positive(const char* name, const Dims& sizes, size_t n) {
  const bool positive = std::all_of(sizes.begin(), sizes.end(), [](int64_t s) { return s > 0; });
  if (sizes.size() != n || !positive)
    throw std::invalid_argument(std::string(name) + " " + to_string(sizes) + ": " +
                                std::to_string(n) + " sizes of at least 1 are wanted");
}

// How many windows there are along each dim.
Dims windows_along(const Dims& length, const Dims& size, const Dims& stride, const Dims& dilation) {
  if (size.empty() || size.size() > 3)
    throw std::invalid_argument("windows are taken of one to three dims, not of " +
                                std::to_string(size.size()));
  want_positive("windows of", size, size.size());
  want_positive("stride", stride, size.size());
  want_positive("dilation", dilation, size.size());
  Dims count;
  for (size_t i = 0; i < size.size(); ++i) {
    const int64_t span = (size[i] - 1) * dilation[i] + 1;
    if (span > length[i])
      throw std::invalid_argument("a window that spans " + std::to_string(span) +
                                  " does not fit into a length of " + std::to_string(length[i]) +
                                  ": pad it");
    count.push_back((length[i] - span) / stride[i] + 1);
  }
  return count;
}

Dims dims_of_windows(Dims dims, const Attrs& attrs) {
  const Dims size = attr_ints(attrs, "size");
  if (dims.size() < size.size() + 1)
    throw std::invalid_argument(to_string(dims) + " has no " + std::to_string(size.size()) +
                                " dims before its last");
  const auto first = dims.end() - 1 - static_cast<long>(size.size());
  const Dims count = windows_along(Dims(first, dims.end() - 1), size, attr_ints(attrs, "stride"),
                                   attr_ints(attrs, "dilation"));
  std::copy(count.begin(), count.end(), first);
  dims.insert(dims.end() - 1, size.begin(), size.end());
  return dims;
}

std::vector<Type> infer_windows(const OpArgs& args) {
  return {{args.in[0].dtype, dims_of_windows(args.in[0].dims, args.attrs)}};
}

std::vector<Type> infer_fold(const OpArgs& args) {
  const Dims length = attr_ints(args.attrs, "length");
  const Dims& x = args.in[0].dims;
  const size_t n = length.size();
  if (x.size() < 2 * n + 1)
    throw std::invalid_argument("needs [..., windows, their sizes, width] for a length of " +
                                to_string(length) + ", not " + to_string(x));
  if (args.in[0].dtype == ORR_BOOL) throw std::invalid_argument("cannot add bool: cast it first");
  const auto size = x.end() - 1 - static_cast<long>(n), count = size - static_cast<long>(n);
  const Dims there(count, size);
  const Dims fit = windows_along(length, Dims(size, x.end() - 1), attr_ints(args.attrs, "stride"),
                                 attr_ints(args.attrs, "dilation"));
  if (fit != there)
    throw std::invalid_argument(to_string(there) + " windows are given, a length of " +
                                to_string(length) + " has " + to_string(fit));
  Type out{args.in[0].dtype, Dims(x.begin(), count)};
  out.dims.insert(out.dims.end(), length.begin(), length.end());
  out.dims.push_back(x.back());
  return {out};
}

// All dims but those that windows are taken of.
Sharding sharding(const OpArgs& args, const std::vector<Type>& out) {
  const size_t n = attr_ints(args.attrs, "stride").size(),
               lead = std::min(args.in[0].dims.size(), out[0].dims.size()) - n - 1;
  auto factors = [&](const Type& t) {
    std::vector<int> f(t.dims.size(), kNone);
    for (size_t i = 0; i < lead; ++i) f[i] = static_cast<int>(i);
    f.back() = static_cast<int>(lead);
    return f;
  };
  return {{factors(args.in[0])}, {factors(out[0])}};
}

void windows_gradient(Gradient& g, const Op& op) {
  if (!g.wanted(op.in[0])) return;
  const Dims& x = g.p.type(op.in[0]).dims;
  const Dims stride = attr_ints(op.attrs, "stride");
  const Dims length(x.end() - 1 - static_cast<long>(stride.size()), x.end() - 1);
  g.add(op.in[0], build::fold(g.p, g.dy(), length, stride, attr_ints(op.attrs, "dilation")));
}

void fold_gradient(Gradient& g, const Op& op) {
  if (!g.wanted(op.in[0])) return;
  const Dims& x = g.p.type(op.in[0]).dims;
  const Dims stride = attr_ints(op.attrs, "stride");
  const Dims size(x.end() - 1 - static_cast<long>(stride.size()), x.end() - 1);
  g.add(op.in[0], build::windows(g.p, g.dy(), size, stride, attr_ints(op.attrs, "dilation")));
}

Cost cost(const OpArgs& args, const std::vector<Type>& out) {
  Cost c = touch_cost(args, out);
  c.flops = static_cast<double>(args.in[0].elements());
  return c;
}

// Dims in front of the windowed ones as one.
Strided with_one_lead(const Strided& x, size_t kept) {
  const auto first = x.dims.end() - static_cast<long>(kept);
  Dims dims{Type{x.dtype, Dims(x.dims.begin(), first)}.elements()};
  dims.insert(dims.end(), first, x.dims.end());
  return Strided::contiguous({x.dtype, dims});
}

KernelForm form(const Op& op, const std::vector<Strided>& in, const std::vector<Strided>& out) {
  const size_t n = attr_ints(op.attrs, "stride").size();
  KernelForm f = contiguous_form(in, out, "ff");
  f.in = {with_one_lead(in[0], 2 * n + 1)}, f.out = {with_one_lead(out[0], n + 1)};
  return f;
}

}  // namespace

Strided windows_of(const Strided& x, const Attrs& attrs) {
  const Dims stride = attr_ints(attrs, "stride"), dilation = attr_ints(attrs, "dilation");
  const size_t first = x.dims.size() - 1 - stride.size();
  Strided y = x;
  y.dims = dims_of_windows(x.dims, attrs);
  Dims within;
  for (size_t i = 0; i < stride.size(); ++i) {
    within.push_back(x.strides[first + i] * dilation[i]);
    y.strides[first + i] *= stride[i];
  }
  y.strides.insert(y.strides.end() - 1, within.begin(), within.end());
  return y;
}

extern const OpDef windows_op =
    OpDef{"windows", infer_windows, sharding, windows_gradient, no_cost, nullptr, &linear_parts}
        .with_eight_bits(takes_eight_bits);
extern const OpDef fold_op{"fold", infer_fold, sharding, fold_gradient, cost, form, &linear_parts};

}  // namespace orrery
