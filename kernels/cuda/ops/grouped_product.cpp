// SPDX-License-Identifier: Apache-2.0
//
// gather_matmul and scatter_matmul: rows are sorted by matrix, and one launch makes the products of
// all matrices; with leaves one more adds their sums.
#include "../device/grouped_product.h"

#include <algorithm>
#include <orrery/sdk/kind_checks.hpp>

#include "../device/window_product.h"
#include "fold_launch.h"
#include "token_sort.h"

namespace orr_cuda {
namespace {

constexpr int64_t kMost = int64_t{1} << 31, kRows = 64, kColumns = 128;
// Of every 128 bytes of K, rows and columns, of which y takes the place in the end.
constexpr unsigned kShared = kProductStages * (kRows + kColumns) * 128;

bool aligned(CUdeviceptr at) { return at % 16 == 0; }
bool in_packets(int64_t elements, int32_t dtype) {
  return elements * orr_dtype_bytes(dtype) % 16 == 0;
}

// The arithmetic of the op's products, as the names of functions say it.
std::string arithmetic_of(const orr_op& op) {
  const bool fast = attr_text(op, "numerics", "") == "fast";
  return op.in[0].dtype == ORR_F32 && fast ? "tf32" : dtype_name(op.in[0].dtype);
}

std::string outside_of(int64_t matrices) {
  return "index {value} in row {row} is outside the " + std::to_string(matrices) +
         " matrices (0.." + std::to_string(matrices - 1) + ", or -1 for none)";
}

void require_sizes(const orr_op& op, int64_t matrices, int64_t a, int64_t b) {
  require(op.in[2].dims[0] < kMost && matrices < 1 << 16, "2^31 rows or 2^16 matrices, or more");
  require(a < kMost && b < kMost, "matrices of 2^31 rows or columns, or more");
}

void supports_gather(const orr_op& op, orr_support& out) {
  require_gather_matmul(op);
  require_sizes(op, op.in[1].dims[0], op.in[1].dims[1], op.in[1].dims[2]);
  out.strided_in = 2;
  orr::copy_text(out.numerics, "cuda.grouped." + arithmetic_of(op) + "/1");
}

uint64_t measure_gather(const orr_op& op) {
  return TokenSort::workspace(op.in[2].dims[0], op.in[1].dims[0]);
}

struct GatherMatmul : Prepared {
  explicit GatherMatmul(const orr_op& op)
      : sort_(op, outside_of(op.in[1].dims[0]), op.in[2], op.in[1].dims[0], true),
        none_(find_function("gather_none")) {
    const orr_tensor &x = op.in[0], &w = op.in[1];
    const bool by_rows = w.strides[2] == 1 || w.dims[2] == 1;
    dtype_ = x.dtype, n_ = x.dims[0], wide_ = op.in[2].dtype == ORR_I64;
    const bool f64 = dtype_ == ORR_F64;
    product_ = find_function(std::string("gather_product_") +
                             (f64       ? ""
                              : by_rows ? "n_"
                                        : "k_") +
                             arithmetic_of(op));
    if (!f64) allow_shared(product_, kShared);
    args_.by.matrices = int32_t(w.dims[0]), args_.by.rows = int32_t(n_);
    args_.n = int32_t(w.dims[2]), args_.depth = int32_t(w.dims[1]);
    args_.tiles_n = int32_t(divide_up(w.dims[2], kColumns));
    args_.matrix = w.strides[0], args_.a.row = x.dims[1];
    args_.b.row = by_rows || f64 ? w.strides[1] : w.strides[2], args_.b_column = w.strides[2];
    along_b_ = by_rows ? w.dims[2] : w.dims[1];
  }

  void launch(CUstream stream, const Buffers& b) override {
    if (n_ == 0 || args_.n == 0) return;
    const TokenSort::Sorted sorted = sort_.enqueue(stream, b.in[2], b.workspace);
    args_.by.start = sorted.start, args_.by.order = sorted.order;
    args_.a.x = pointer(b.in[0]), args_.b.x = pointer(b.in[1]), args_.y = pointer(b.out[0]);
    const auto whole = [&](int64_t n) { return in_packets(n, dtype_); };
    args_.a.packets = aligned(b.in[0]) && whole(args_.a.row);
    args_.b.packets =
        aligned(b.in[1]) && whole(along_b_) && whole(args_.b.row) && whole(args_.matrix);
    args_.y_packets = aligned(b.out[0]) && whole(args_.n);
    const GatherNoneArgs none{pointer(b.in[2]), wide_, pointer(b.out[0]), n_,
                              args_.n * orr_dtype_bytes(dtype_)};
    enqueue(stream, none_, {unsigned(n_)}, {kGroupedThreads}, 0, none);
    // Every matrix that has rows may have a tile that is not full.
    const int64_t tiles = n_ / kRows + std::min<int64_t>(n_, args_.by.matrices);
    if (dtype_ == ORR_F64)
      enqueue(stream, product_, {unsigned(divide_up(n_ * args_.n, int64_t{kGroupedThreads}))},
              {kGroupedThreads}, 0, args_);
    else
      enqueue(stream, product_, {unsigned(tiles * args_.tiles_n)}, {kProductThreads}, kShared,
              args_);
  }

  TokenSort sort_;
  Function none_, product_;
  GatherProductArgs args_{};
  int64_t n_, along_b_;
  int32_t dtype_;
  bool wide_;
};

int64_t matrices_of(const orr_op& op) { return attr_int(op, "matrices", 0); }

// Whether leaves are summed alone, in f32.
bool in_sums(const orr_op& op) { return op.in[0].dtype != ORR_F64 && Leaves(op).n > 1; }

void supports_scatter(const orr_op& op, orr_support& out) {
  require_scatter_matmul(op);
  const int32_t from = op.in[0].dtype, to = op.out[0].dtype;
  require(from == to || to == ORR_F32, "sums of f32 are stored as such");
  require_sizes(op, matrices_of(op), op.in[0].dims[1], op.in[1].dims[1]);
  require(Leaves(op).n < 1 << 16, "2^16 leaves, or more");
  orr::copy_text(out.numerics, "cuda.grouped." + arithmetic_of(op) + "/1");
}

uint64_t sort_bytes(const orr_op& op) {
  return round_up(TokenSort::workspace(op.in[2].dims[0], matrices_of(op)), 256);
}

uint64_t measure_scatter(const orr_op& op) {
  const int64_t matrix = op.in[0].dims[1] * op.in[1].dims[1];
  const int64_t sums = in_sums(op) ? Leaves(op).n * matrices_of(op) * matrix : 0;
  return sort_bytes(op) + uint64_t(sums) * sizeof(float);
}

struct ScatterMatmul : Prepared {
  explicit ScatterMatmul(const orr_op& op)
      : sort_(op, outside_of(matrices_of(op)), op.in[2], matrices_of(op), true),
        leaves_(op),
        from_(op.in[0].dtype),
        to_(op.out[0].dtype),
        sums_at_(sort_bytes(op)),
        in_sums_(in_sums(op)) {
    product_ = find_function("scatter_product_" + arithmetic_of(op));
    if (from_ != ORR_F64) allow_shared(product_, kShared);
    const int64_t d = op.in[0].dims[1], f = op.in[1].dims[1];
    args_.by.matrices = int32_t(matrices_of(op)), args_.by.rows = int32_t(op.in[2].dims[0]);
    args_.a.row = d, args_.b.row = f, args_.m = int32_t(d), args_.n = int32_t(f);
    args_.tiles_n = int32_t(divide_up(f, kColumns));
    args_.leaf_rows = int32_t(op.in[2].dims[0] / leaves_.n);
    args_.nodes = fill_nodes(leaves_, args_.node);
    elements_ = matrices_of(op) * d * f;
    if (!in_sums_) return;
    sum_ = find_function(std::string("window_product_sum_") + dtype_name(to_));
    sum_args_.elements = sum_args_.y_node = elements_, sum_args_.y_row = f;
    sum_args_.n = args_.n, sum_args_.parts = 1;
    sum_args_.nodes = fill_nodes(leaves_, sum_args_.node);
  }

  void launch(CUstream stream, const Buffers& b) override {
    if (elements_ == 0) return;
    const TokenSort::Sorted sorted = sort_.enqueue(stream, b.in[2], b.workspace);
    args_.by.start = sorted.start, args_.by.order = sorted.order;
    args_.a.x = pointer(b.in[0]), args_.b.x = pointer(b.in[1]), args_.y = pointer(b.out[0]);
    args_.a.packets = aligned(b.in[0]) && in_packets(args_.m, from_);
    args_.b.packets = aligned(b.in[1]) && in_packets(args_.n, from_);
    args_.y_packets = aligned(b.out[0]) && in_packets(args_.n, from_);
    if (from_ == ORR_F64) {
      const int64_t blocks = divide_up(elements_, int64_t{kGroupedThreads});
      return enqueue(stream, product_, {unsigned(blocks)}, {kGroupedThreads}, 0, args_);
    }
    // f32 of 16 bits is what sums are: with one leaf y takes them at once.
    args_.sums = in_sums_       ? pointer<float>(b.workspace + sums_at_)
                 : from_ != to_ ? pointer<float>(b.out[0])
                                : nullptr;
    const int64_t tiles = divide_up(int64_t{args_.m}, kRows) * args_.tiles_n;
    enqueue(stream, product_, {unsigned(tiles), unsigned(args_.by.matrices), unsigned(leaves_.n)},
            {kProductThreads}, kShared, args_);
    if (!in_sums_) return;
    sum_args_.sums = args_.sums, sum_args_.y = args_.y;
    const int64_t blocks = divide_up(elements_, int64_t{kProductThreads});
    enqueue(stream, sum_, {unsigned(blocks)}, {kProductThreads}, 0, sum_args_);
  }

  TokenSort sort_;
  Leaves leaves_;
  int32_t from_, to_;
  uint64_t sums_at_;
  bool in_sums_;
  int64_t elements_;
  Function product_, sum_{};
  ScatterProductArgs args_{};
  WindowSumArgs sum_args_{};
};

}  // namespace

const Family gather_matmul_family = {"gather_matmul", supports_gather, measure_gather,
                                     prepare_as<GatherMatmul>};
const Family scatter_matmul_family = {"scatter_matmul", supports_scatter, measure_scatter,
                                      prepare_as<ScatterMatmul>};

}  // namespace orr_cuda
