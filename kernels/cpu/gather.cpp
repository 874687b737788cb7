// SPDX-License-Identifier: Apache-2.0
//
// Ops that move rows: gather, slice_at, update_slice; and iota.
#include "integers.h"
#include "vec.h"

namespace orr_cpu::ORR_ISA {
namespace {

struct Gather : Kernel {
  explicit Gather(const orr_op& op)
      : get(op, 1),
        rows(op.in[0].dims[0]),
        n(op.in[1].dims[0]),
        bytes(op.in[0].dims[1] * orr_dtype_bytes(op.in[0].dtype)) {}

  void launch(const orr_buffer* in, const orr_buffer* out, const orr_buffer*) override {
    const char* table = host<char>(in[0]);
    const void* index = host<void>(in[1]);
    char* y = host<char>(out[0]);
    check_indices("gather", get, index, n, rows);
    parallel_ranges(n, larger(1, 65536 / larger(1, bytes)), [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i)
        __builtin_memcpy(y + i * bytes, table + get(index, i) * bytes, size_t(bytes));
    });
  }

  Integers get;
  int64_t rows, n, bytes;
};

// Copies `bytes` per outer index between slabs, in pieces that the threads share.
void copy_slabs(char* to, int64_t to_slab, const char* from, int64_t from_slab, int64_t outer,
                int64_t bytes) {
  const int64_t piece = 1 << 16, pieces = ceil_div(larger(1, bytes), piece);
  parallel_ranges(outer * pieces, larger(1, piece / larger(1, bytes)),
                  [&](int64_t first, int64_t last) {
                    for (int64_t i = first; i < last; ++i) {
                      int64_t o = i / pieces, at = (i - o * pieces) * piece;
                      __builtin_memcpy(to + o * to_slab + at, from + o * from_slab + at,
                                       size_t(smaller(piece, bytes - at)));
                    }
                  });
}

// The geometry of x[O,D,I] and its part [O,n,I] at a runtime position, in bytes.
struct Part {
  Part(const orr_op& op, const orr_tensor& part, int at_input)
      : get(op, at_input),
        outer(op.in[0].dims[0]),
        depth(op.in[0].dims[1]),
        n(part.dims[1]),
        row(op.in[0].dims[2] * orr_dtype_bytes(op.in[0].dtype)) {}
  int64_t offset(const char* kind, const orr_buffer& at) const {
    int64_t first = get(host<void>(at), 0);
    if (first < 0 || first + n > depth)
      fail(ORR_INVALID, "%s: at %lld with length %lld is outside the dim of %lld", kind,
           (long long)first, (long long)n, (long long)depth);
    return first * row;
  }
  Integers get;
  int64_t outer, depth, n, row;
};

struct SliceAt : Kernel {
  explicit SliceAt(const orr_op& op) : p(op, op.out[0], 1) {}
  void launch(const orr_buffer* in, const orr_buffer* out, const orr_buffer*) override {
    const char* x = host<char>(in[0]) + p.offset("slice_at", in[1]);
    copy_slabs(host<char>(out[0]), p.n * p.row, x, p.depth * p.row, p.outer, p.n * p.row);
  }
  Part p;
};

struct UpdateSlice : Kernel {
  explicit UpdateSlice(const orr_op& op) : p(op, op.in[1], 2) {}
  void launch(const orr_buffer* in, const orr_buffer* out, const orr_buffer*) override {
    int64_t offset = p.offset("update_slice", in[2]), slab = p.depth * p.row;
    char *x = host<char>(in[0]), *y = host<char>(out[0]);
    if (x != y) copy_slabs(y, slab, x, slab, p.outer, slab);
    copy_slabs(y + offset, slab, host<char>(in[1]), p.n * p.row, p.outer, p.n * p.row);
  }
  Part p;
};

struct Iota : Kernel {
  explicit Iota(const orr_op& op)
      : dtype(op.out[0].dtype), n(op.out[0].dims[0]), start(attr_int(op, "start", 0)) {}
  void launch(const orr_buffer*, const orr_buffer* out, const orr_buffer*) override {
    void* y = host<void>(out[0]);
    for (int64_t i = 0; i < n; ++i) put(y, i, start + i);
  }
  void put(void* y, int64_t i, int64_t value) const {
    switch (dtype) {
      case ORR_F32: ((float*)y)[i] = float(value); break;
      case ORR_F64: ((double*)y)[i] = double(value); break;
      case ORR_BF16: store_one((bf16*)y + i, float(value)); break;
      case ORR_F16: store_one((f16*)y + i, float(value)); break;
      case ORR_I32: ((int32_t*)y)[i] = int32_t(value); break;
      case ORR_I64: ((int64_t*)y)[i] = value; break;
      default: ((uint8_t*)y)[i] = uint8_t(value);
    }
  }
  int32_t dtype;
  int64_t n, start;
};

}  // namespace

Kernel* make_gather(const orr_op& op) { return new Gather(op); }
Kernel* make_slice_at(const orr_op& op) { return new SliceAt(op); }
Kernel* make_update_slice(const orr_op& op) { return new UpdateSlice(op); }
Kernel* make_iota(const orr_op& op) { return new Iota(op); }

}  // namespace orr_cpu::ORR_ISA
