// SPDX-License-Identifier: Apache-2.0
//
// Plans one matmul: tiles of the output for threads and caches, and steps over K in the order that
// ops.h prescribes. A plan determines the work of each thread, but never the order of a sum.
#pragma once

#include <orrery/kernel.h>
#include <orrery/ops.h>

namespace orr_cpu {

// Strides in elements of a [G, rows, cols] operand.
struct MatmulStrides {
  int64_t batch, row, col;
};

// One dim of a matrix that is made of several dims of a tensor, the last one fastest.
struct JoinedDim {
  int32_t count;
  int64_t dims[ORR_MAX_RANK], strides[ORR_MAX_RANK];
};

// An operand of more than three dims (ops.h, matmul), such as the windows of a convolution. Along
// the dim of A's K or B's N it is runs of neighbours, `run` elements each; 0: the operand has
// strides.
struct MatmulWindows {
  int64_t run;
  JoinedDim runs;   // where each run begins
  JoinedDim apart;  // the other dim
  JoinedDim out;    // of A: where the result has the rows
  // Rows that are multiplied by all of K before the next ones: their elements, which windows share,
  // stay in the L2 cache. And rows of a panel: so many lie at equal distances in the result.
  int64_t block, line;
};

// y[g,m,n] = sum over k of a[g,m,k] * b[g,k,n]; `node` is the stride between the nodes of leaves.
struct MatmulShape {
  int32_t dtype;  // of a and b
  bool rounds;    // y has 16 bits: every node of the leaves is rounded to it
  int64_t g, m, n, k;
  MatmulStrides a, b, y;
  MatmulWindows windows_a, windows_b;
  int64_t node;
  int64_t leaf_lo, leaf_n, leaf_total;
};

// One run of the micro-kernel over at most ORR_MATMUL_K elements of K, into level `level` of the
// stack of partial sums. Then the top level is added to the one below, `merges` times. If node >=
// 0, level 0 is then that finished node. `rounds`: a leaf of 16 bits ends here; it and every sum of
// it is rounded to the output's type.
struct MatmulStep {
  int64_t k0;
  int32_t kc;
  int32_t level;
  int32_t add;
  int32_t merges;
  int32_t node;
  int32_t rounds;
};

// The steps [first, last), whose operands are packed together: those of K from k0 on, at most
// ORR_MATMUL_K elements, unless the plan has only one chunk.
struct MatmulChunk {
  int32_t first, last;
  int64_t k0, kc;
};

// How many columns the vector path (matmul_vector.h) sums at a time.
enum { kVectorCols = 512 };

// The micro-tile of an instruction set, in elements.
struct MicroTile {
  int64_t rows, cols, lanes;
  bool pairs = false;  // it multiplies pairs of bf16
  bool tiles = false;  // it is AMX's, for the products that use_amx says
};

// AMX's: two by two tiles of 16 rows and 16 columns, each of which adds kAmxK elements of K.
constexpr int kAmxRows = 32, kAmxCols = 32, kAmxK = 32;
constexpr MicroTile kAmxTile{kAmxRows, kAmxCols, 16, true, true};
// The distance of packed rows of a in floats, an odd number of cache lines.
constexpr int64_t kAmxStride = ORR_MATMUL_K / 2 + 16;

struct MatmulPlan {
  explicit MatmulPlan(const orr_op& op, MicroTile micro, int32_t slots);
  ~MatmulPlan();
  MatmulPlan(const MatmulPlan&) = delete;
  MatmulPlan& operator=(const MatmulPlan&) = delete;

  MatmulShape shape;  // with a and b swapped (y^T = b^T a^T) if that fills the lanes better
  MicroTile micro;
  int32_t slots;  // how many tasks run at a time, each with its own scratch
  bool swapped;   // a and b are swapped in `shape`
  bool vector;    // at most three rows: b is read once, in place
  int64_t tile_m, tile_n, tiles_m, tiles_n;
  bool read_a, read_b;      // the operand is multiplied where it lies, and not packed
  bool m_inner;             // tiles of one column follow one another
  bool keep_a, keep_b;      // the packed operand has all of K, and is used for the next tile too
  bool by_rows;             // a is packed as rows (kRowStride)
  bool by_panels;           // a is packed panel by panel, each when it is multiplied
  bool pairs;               // bf16 is packed in pairs along K
  bool tiles;               // and by AMX's tiles (matmul_amx.h)
  bool streams;             // y is too large for the caches: stores bypass them
  int64_t panels, panel_a;  // panels of a in a tile, and elements of a panel for one chunk
  int64_t group;            // columns of b that are packed at a time
  int32_t levels;           // of the stack of partial sums
  MatmulStep* steps;
  MatmulChunk* chunks;
  int32_t n_steps, n_chunks;
  // Scratch in elements of the accumulator: shared first, then one block per slot.
  int64_t shared, slot_a, slot_b, slot_stack;

  int64_t slot_elements() const;
  uint64_t workspace() const;  // bytes
};

// For the table of ops. It takes all shapes and strides that ops.h allows, in every real dtype.
void matmul_supports(const orr_op& op, orr_support& out);
uint64_t matmul_workspace(const orr_op& op);  // enough for every instruction set

// Whether AMX's tiles compute this product, where the machine has them (amx_works).
bool use_amx(const orr_op& op);

}  // namespace orr_cpu
