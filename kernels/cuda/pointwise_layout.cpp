// SPDX-License-Identifier: Apache-2.0
#include "pointwise_layout.h"

#include <algorithm>

#include "op.h"

namespace orr_cuda {
namespace {

using Tensors = std::vector<orr_tensor>;

Tensors tensors_of(const orr_op& op) {
  Tensors all(op.in, op.in + op.n_in);
  all.insert(all.end(), op.out, op.out + op.n_out);
  return all;
}

void check_shapes(const Tensors& tensors, size_t inputs) {
  require(tensors.size() > inputs, "a pointwise op needs an output");
  const orr_tensor& shape = tensors[inputs];
  for (size_t i = 0; i < tensors.size(); ++i) {
    const orr_tensor& t = tensors[i];
    require(orr_dtype_bytes(t.dtype) > 0, "a tensor has an unknown dtype");
    require(t.rank == shape.rank, "a tensor has another rank than output 0");
    for (int d = 0; d < t.rank; ++d)
      require(t.dims[d] == shape.dims[d] || (i < inputs && t.dims[d] == 1),
              "a tensor has other dims than output 0");
  }
}

// A dim of 1 where the output has more is read again and again, whatever its stride says.
int64_t stride(const orr_tensor& t, int d) { return t.dims[d] == 1 ? 0 : t.strides[d]; }

void append(Walk& walk, const Tensors& tensors, int d, int64_t length) {
  bool joins = true;
  for (size_t t = 0; t < tensors.size(); ++t)
    joins = joins && walk.strides[t].back() == stride(tensors[t], d) * length;
  joins = joins || walk.dims.back() == 1;  // there is none yet
  if (joins)
    walk.dims.back() *= length;
  else
    walk.dims.push_back(length);
  for (size_t t = 0; t < tensors.size(); ++t) {
    if (joins) walk.strides[t].pop_back();
    walk.strides[t].push_back(stride(tensors[t], d));
  }
}

// 16 bytes of the narrowest tensor, but no more than 32 of the widest.
int widest_vector(const std::vector<int64_t>& bytes) {
  const auto [least, most] = std::ranges::minmax(bytes);
  return static_cast<int>(std::min(16 / least, 32 / most));
}

// Rows of neighbours that a vector divides. A single row may have a tail.
int vector_of(const Walk& walk, int widest) {
  const auto fits = [&](int v) {
    for (const std::vector<int64_t>& s : walk.strides) {
      if (s.back() != 0 && s.back() != 1) return false;
      for (size_t d = 0; d + 1 < s.size(); ++d)
        if (s.back() == 1 && s[d] % v != 0) return false;
    }
    return walk.dims.size() == 1 || walk.dims.back() % v == 0;
  };
  int v = widest;
  while (v > 1 && !fits(v)) v /= 2;
  return v;
}

bool needs_64_bits(const Walk& walk) {
  constexpr int64_t limit = int64_t{1} << 31;
  const auto far = [&](const std::vector<int64_t>& s) { return walk.last(s) >= limit; };
  return walk.elements >= limit || std::ranges::any_of(walk.strides, far);
}

}  // namespace

int64_t Walk::last(const std::vector<int64_t>& strides) const {
  int64_t offset = 0;
  for (size_t d = 0; d < dims.size(); ++d) offset += (dims[d] - 1) * strides[d];
  return offset;
}

Reach Walk::reach(size_t tensor) const {
  const std::vector<int64_t>& by = strides[tensor];
  const auto size = [&](int64_t n) { return static_cast<uint64_t>(n * bytes[tensor]); };
  const uint64_t all = size(last(by) + 1);
  if (by.size() != 2 || by[1] != 1 || by[0] < dims[1]) return Reach(all);
  return {all, size(dims[1]), size(by[0])};
}

bool Walk::aligned(const std::vector<CUdeviceptr>& addresses) const {
  for (size_t t = 0; t < strides.size(); ++t) {
    const int64_t load = strides[t].back() == 0 ? 1 : std::min<int64_t>(16, vector * bytes[t]);
    if (addresses[t] % static_cast<CUdeviceptr>(load) != 0) return false;
  }
  return true;
}

Walk::Walk(const orr_op& op) : dims{1} {
  const Tensors tensors = tensors_of(op);
  check_shapes(tensors, static_cast<size_t>(op.n_in));
  strides.assign(tensors.size(), {0});
  for (const orr_tensor& t : tensors) bytes.push_back(orr_dtype_bytes(t.dtype));
  const orr_tensor& shape = op.out[0];
  elements = orr::elements(shape);
  for (int d = 0; d < shape.rank; ++d)
    if (shape.dims[d] != 1) append(*this, tensors, d, shape.dims[d]);
  vector = vector_of(*this, widest_vector(bytes));
  wide = needs_64_bits(*this);
}

Walk::Walk(const orr_op& op, int64_t columns) : Walk(op) {
  while (columns % vector != 0) vector /= 2;
}

}  // namespace orr_cuda
