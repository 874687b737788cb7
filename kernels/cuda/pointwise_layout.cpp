// SPDX-License-Identifier: Apache-2.0
#include "pointwise_layout.h"

#include <algorithm>

#include "op.h"

namespace orr_cuda {
namespace {

const orr_tensor& tensor(const orr_op& op, size_t t) {
  const auto inputs = static_cast<size_t>(op.n_in);
  return t < inputs ? op.in[t] : op.out[t - inputs];
}

void check_shapes(const orr_op& op, size_t tensors) {
  require(op.n_out >= 1, "a pointwise op needs an output");
  const orr_tensor& shape = op.out[0];
  for (size_t i = 0; i < tensors; ++i) {
    const orr_tensor& t = tensor(op, i);
    const bool input = i < static_cast<size_t>(op.n_in);
    require(orr_dtype_bytes(t.dtype) > 0, "a tensor has an unknown dtype");
    require(t.rank == shape.rank, "a tensor has another rank than output 0");
    for (int d = 0; d < t.rank; ++d)
      require(t.dims[d] == shape.dims[d] || (input && t.dims[d] == 1),
              "a tensor has other dims than output 0");
  }
}

// A dim of 1 where the output has more is read again and again, whatever its stride says.
int64_t stride(const orr_tensor& t, int d) { return t.dims[d] == 1 ? 0 : t.strides[d]; }

void append(Walk& walk, const orr_op& op, int d) {
  const int64_t length = op.out[0].dims[d];
  bool joins = !walk.dims.empty();
  for (size_t t = 0; t < walk.strides.size() && joins; ++t)
    joins = walk.strides[t].back() == stride(tensor(op, t), d) * length;
  if (joins)
    walk.dims.back() *= length;
  else
    walk.dims.push_back(length);
  for (size_t t = 0; t < walk.strides.size(); ++t) {
    if (joins) walk.strides[t].pop_back();
    walk.strides[t].push_back(stride(tensor(op, t), d));
  }
}

// 16 bytes of the narrowest tensor, but no more than 32 of the widest.
int widest_vector(const orr_op& op, size_t tensors) {
  int64_t least = 8, most = 1;
  for (size_t t = 0; t < tensors; ++t) {
    const int64_t bytes = orr_dtype_bytes(tensor(op, t).dtype);
    least = std::min(least, bytes), most = std::max(most, bytes);
  }
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
  if (walk.elements >= limit) return true;
  return std::any_of(walk.strides.begin(), walk.strides.end(),
                     [&](const std::vector<int64_t>& s) { return walk.last(s) >= limit; });
}

}  // namespace

int64_t Walk::last(const std::vector<int64_t>& strides) const {
  int64_t offset = 0;
  for (size_t d = 0; d < dims.size(); ++d) offset += (dims[d] - 1) * strides[d];
  return offset;
}

bool Walk::aligned(const std::vector<CUdeviceptr>& addresses) const {
  for (size_t t = 0; t < addresses.size(); ++t) {
    const int64_t load = strides[t].back() == 0 ? 1 : std::min<int64_t>(16, vector * bytes[t]);
    if (addresses[t] % static_cast<CUdeviceptr>(load) != 0) return false;
  }
  return true;
}

Walk::Walk(const orr_op& op) : strides(static_cast<size_t>(op.n_in + op.n_out)) {
  check_shapes(op, strides.size());
  for (size_t t = 0; t < strides.size(); ++t) bytes.push_back(orr_dtype_bytes(tensor(op, t).dtype));
  elements = orr::elements(op.out[0]);
  for (int d = 0; d < op.out[0].rank; ++d)
    if (op.out[0].dims[d] != 1) append(*this, op, d);
  if (dims.empty()) {
    dims.push_back(1);
    for (auto& s : strides) s.push_back(0);
  }
  vector = vector_of(*this, widest_vector(op, strides.size()));
  wide = needs_64_bits(*this);
}

Walk::Walk(const orr_op& op, int64_t columns) : Walk(op) {
  while (columns % vector != 0) vector /= 2;
}

}  // namespace orr_cuda
