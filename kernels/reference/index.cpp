// SPDX-License-Identifier: Apache-2.0
//
// Rows and slices at run-time indices: gather, scatter_add, slice_at, update_slice; and iota.
#include <cstring>
#include <orrery/sdk/kind_checks.hpp>
#include <vector>

#include "leaves.h"
#include "op.h"

namespace reference {
namespace {

std::string outside(const char* kind, int64_t index, int64_t row, int64_t rows) {
  return std::string(kind) + ": index " + std::to_string(index) + " in row " + std::to_string(row) +
         " is outside the " + std::to_string(rows) + " rows of the table (0.." +
         std::to_string(rows - 1) + ")";
}

// Indices are checked before anything is written, so that the first bad one is named.
void check_indices(const Call& call, int input, const char* kind, int64_t n, int64_t rows) {
  for (int64_t i = 0; i < n; ++i) {
    int64_t index = call.integer(input, i);
    if (index < 0 || index >= rows) throw orr::Error(ORR_INVALID, outside(kind, index, i, rows));
  }
}

void run_gather(const Call& call) {
  const orr_tensor& table = call.op.in[0];
  int64_t n = call.op.in[1].dims[0], bytes = table.dims[1] * orr_dtype_bytes(table.dtype);
  check_indices(call, 1, "gather", n, table.dims[0]);
  orr::parallel_for(n, [&](int64_t i) {
    std::memcpy(call.output<char>(0) + i * bytes, call.input<char>(0) + call.integer(1, i) * bytes,
                size_t(bytes));
  });
}

uint64_t scatter_elements(const orr_op& op) {
  return uint64_t(orr::attr_int(op, "rows", 0) * op.in[1].dims[1]);
}

// The accumulators of the leaf that is being added, the sum if a base is added to it, the leaves'
// partial sums.
uint64_t scatter_workspace(const orr_op& op) {
  uint64_t n = scatter_elements(op),
           sum = op.n_in == 3 ? n * uint64_t(orr_dtype_bytes(op.out[0].dtype)) : 0;
  return n * sizeof(double) + sum + leaves_workspace(op, int64_t(n), op.out[0].dtype);
}

// to[V,C] = the rows of one leaf, added in token order. Tasks share columns out, not tokens.
template <class T, class Y>
void scatter_leaf(const Call& call, int64_t first, int64_t n, Acc<T>* acc, Y* to) {
  constexpr int64_t kPiece = 64;
  int64_t rows = orr::attr_int(call.op, "rows", 0), columns = call.op.in[1].dims[1];
  const T* dy = call.input<T>(1);
  orr::parallel_for((columns + kPiece - 1) / kPiece, [&, rows, columns](int64_t piece) {
    int64_t c0 = piece * kPiece, c1 = std::min(columns, c0 + kPiece);
    for (int64_t r = 0; r < rows; ++r) std::fill(acc + r * columns + c0, acc + r * columns + c1, 0);
    for (int64_t i = first; i < first + n; ++i) {
      Acc<T>* row = acc + call.integer(0, i) * columns;
      for (int64_t c = c0; c < c1; ++c) row[c] = plus(row[c], get(dy[i * columns + c]));
    }
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = c0; c < c1; ++c) put(to[r * columns + c], acc[r * columns + c]);
  });
}

// Rows without tokens are the base's.
template <class T>
void add_to_base(const Call& call, const T* sum) {
  int64_t rows = orr::attr_int(call.op, "rows", 0), columns = call.op.in[1].dims[1];
  std::vector<bool> met(size_t(rows), false);
  for (int64_t i = 0; i < call.op.in[0].dims[0]; ++i) met[size_t(call.integer(0, i))] = true;
  const T* base = call.input<T>(2);
  T* out = call.output<T>(0);
  for (int64_t e = 0; e < rows * columns; ++e)
    if (met[size_t(e / columns)])
      put(out[e], plus(get(base[e]), get(sum[e])));
    else
      out[e] = base[e];
}

void run_scatter_add(const Call& call) {
  int64_t n = call.op.in[0].dims[0], length = n / Leaves(call.op).n;
  int64_t count = int64_t(scatter_elements(call.op));
  check_indices(call, 0, "scatter_add", n, orr::attr_int(call.op, "rows", 0));
  with_sum(call.op.in[1].dtype, call.op.out[0].dtype, [&]<class T, class Y>(Type<T>, Type<Y>) {
    auto* acc = reinterpret_cast<Acc<T>*>(call.workspace);
    Y* scratch = reinterpret_cast<Y*>(call.workspace + uint64_t(count) * sizeof(double));
    const bool based = call.op.n_in == 3;
    Y* sum = based ? scratch : call.output<Y>(0);
    sum_leaves(call.op, sum, count, based ? scratch + count : scratch,
               [&](int64_t leaf, Y* to) { scatter_leaf<T>(call, leaf * length, length, acc, to); });
    if (based) add_to_base(call, sum);
  });
}

// Sizes in bytes of one outer slab of x and of its part, and where the part begins in it.
struct Part {
  Part(const Call& call, const orr_tensor& part, int at_input, const char* kind) {
    const orr_tensor& x = call.op.in[0];
    int64_t at = call.integer(at_input), row = x.dims[2] * orr_dtype_bytes(x.dtype);
    if (at < 0 || at + part.dims[1] > x.dims[1])
      throw orr::Error(ORR_INVALID, std::string(kind) + ": at " + std::to_string(at) +
                                        " with length " + std::to_string(part.dims[1]) +
                                        " is outside the dim of " + std::to_string(x.dims[1]));
    outer = x.dims[0], slab = size_t(x.dims[1] * row), bytes = size_t(part.dims[1] * row);
    offset = size_t(at * row);
  }
  int64_t outer;
  size_t slab, bytes, offset;
};

void run_slice_at(const Call& call) {
  Part p(call, call.op.out[0], 1, "slice_at");
  for (size_t o = 0; o < size_t(p.outer); ++o)
    std::memcpy(call.output<char>(0) + o * p.bytes, call.input<char>(0) + o * p.slab + p.offset,
                p.bytes);
}

void run_update_slice(const Call& call) {
  Part p(call, call.op.in[1], 2, "update_slice");
  const char *x = call.input<char>(0), *u = call.input<char>(1);
  char* y = call.output<char>(0);
  if (x != y) std::memcpy(y, x, size_t(p.outer) * p.slab);
  for (size_t o = 0; o < size_t(p.outer); ++o)
    std::memcpy(y + o * p.slab + p.offset, u + o * p.bytes, p.bytes);
}

void run_iota(const Call& call) {
  int64_t start = orr::attr_int(call.op, "start", 0), n = call.op.out[0].dims[0];
  with_any(call.op.out[0].dtype, [&]<class T>(Type<T>) {
    for (int64_t i = 0; i < n; ++i) put(call.output<T>(0)[i], Acc<T>(start + i));
  });
}

int32_t inplace_first(const orr_op&) { return 1; }
int32_t inplace_base(const orr_op& op) { return op.n_in == 3 ? 3 : 0; }

}  // namespace

const Family gather_family = {
    "gather", "reference.gather.1", require_gather, run_gather, nullptr, 0, 0, nullptr};
const Family scatter_add_family = {"scatter_add",
                                   "reference.scatter_add.1",
                                   require_scatter_add,
                                   run_scatter_add,
                                   scatter_workspace,
                                   0,
                                   0,
                                   inplace_base};
const Family slice_at_family = {
    "slice_at", "reference.slice_at.1", require_slice_at, run_slice_at, nullptr, 0, 0, nullptr};
const Family update_slice_family = {"update_slice",
                                    "reference.update_slice.1",
                                    require_update_slice,
                                    run_update_slice,
                                    nullptr,
                                    0,
                                    0,
                                    inplace_first};
const Family iota_family = {"iota", "reference.iota.1", require_iota, run_iota, nullptr, 0, 0,
                            nullptr};

}  // namespace reference
