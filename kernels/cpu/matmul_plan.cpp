// SPDX-License-Identifier: Apache-2.0
//
// Chooses tiles by a small cost model, and makes the steps over K. See matmul_plan.h.
#include "matmul_plan.h"

#include <orrery/sdk/plugin.hpp>

#include "kernel.h"
#include "winograd_plan.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace orr_cpu {
namespace {

constexpr int64_t kKeepBytes = 1 << 20;     // a packed a that may stay in the L2 cache
constexpr int64_t kStoreBytes = 1 << 22;    // a packed b, each panel of which a tile loads once
constexpr int64_t kFarBytes = 1 << 24;      // one that may come from further away each time
constexpr int64_t kRevisitBytes = 1 << 19;  // an output tile that is added to more than once
constexpr int64_t kStreamBytes = 1 << 22;   // an output that the caches do not keep for its reader
constexpr int64_t kTileRows = 280;
constexpr int64_t kWindowRows = 140;
constexpr int64_t kTileCols = 1024;
constexpr int64_t kGroupCols = 128;
constexpr int64_t kVectorRows = 3;
constexpr int64_t kFew = 64;  // rows or columns, for which packing the other operand takes too long

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

MatmulStrides strides_of(const orr_tensor& t) {
  return {t.strides[t.rank - 3], t.strides[t.rank - 2], t.strides[t.rank - 1]};
}

// Dims [first, last) of t as one.
JoinedDim joined(const orr_tensor& t, int first, int last) {
  JoinedDim d{last - first, {}, {}};
  std::copy(t.dims + first, t.dims + last, d.dims);
  std::copy(t.strides + first, t.strides + last, d.strides);
  return d;
}

// The operand's last `cols` elements of each row are runs.
MatmulWindows windows_of(const orr_tensor& t, int64_t cols) {
  if (t.rank == 3) return {};
  int first = t.rank - 1;
  for (int64_t n = t.dims[first]; n < cols; n *= t.dims[first]) --first;
  return {t.dims[t.rank - 1], joined(t, first, t.rank - 1), joined(t, 1, first), {}, 0, 0};
}

// The largest divisor of n that makes panels of rows nearly full, or 0.
int64_t rows_in_line(int64_t n) {
  for (int64_t line = std::min<int64_t>(n, 32); line >= 8; --line)
    if (n % line == 0) return line;
  return 0;
}

// Orders the rows of A so that those of one position in several images follow one another: where
// the windows of a position reach into the border of the images, all of them do, and what is 0 in
// a whole panel is left out (ops.h, matmul).
void order_rows(MatmulWindows& w, int64_t y_row) {
  const int32_t n = w.apart.count;
  w.out = w.apart;
  int64_t rows = 1;
  for (int32_t d = n; d-- > 0; rows *= w.apart.dims[d]) w.out.strides[d] = rows * y_row;
  w.line = n > 1 ? rows_in_line(w.apart.dims[0]) : 0;
  w.block = w.line ? std::max<int64_t>(1, kWindowRows / w.line) * w.line : kWindowRows;
  if (!w.line) {
    w.line = rows;
    return;
  }
  for (JoinedDim* d : {&w.apart, &w.out}) {
    d->dims[n] = w.line, d->strides[n] = d->strides[0];
    d->dims[0] /= w.line, d->strides[0] *= w.line;
    d->count = n + 1;
  }
}

int64_t columns_of(const orr_tensor& t, int64_t rows) {
  if (t.rank == 3) return t.dims[2];
  return rows && t.dims[0] ? orr::elements(t) / (t.dims[0] * rows) : 0;
}

MatmulShape shape_of(const orr_op& op) {
  const orr_tensor& a = op.in[0];
  const orr_tensor& b = op.in[1];
  const orr_tensor& y = op.out[0];
  MatmulShape s{};
  s.dtype = a.dtype, s.rounds = orr_dtype_bytes(y.dtype) == 2;
  s.g = a.dims[0], s.m = y.dims[y.rank - 2], s.n = y.dims[y.rank - 1];
  s.k = columns_of(a, s.m);
  s.windows_a = windows_of(a, s.k), s.windows_b = windows_of(b, s.n);
  s.a = s.windows_a.run ? MatmulStrides{a.strides[0], 0, 1} : strides_of(a);
  s.b = s.windows_b.run ? MatmulStrides{b.strides[0], 0, 1} : strides_of(b);
  s.y = strides_of(y);
  s.node = y.rank == 4 ? y.strides[0] : s.g == 1 ? s.y.batch : s.g * s.m * s.n;
  s.leaf_lo = attr_int(op, "leaf_lo", 0);
  s.leaf_n = attr_int(op, "leaf_n", 1);
  s.leaf_total = attr_int(op, "leaf_total", 1);
  return s;
}

// y^T = b^T a^T: the same sums with rows and columns in each other's place.
void swap_roles(MatmulShape& s) {
  std::swap(s.m, s.n);
  std::swap(s.a, s.b);
  std::swap(s.a.row, s.a.col);
  std::swap(s.b.row, s.b.col);
  std::swap(s.y.row, s.y.col);
}

// The leaves' steps; the stack is a binary counter of finished subtrees.
std::vector<MatmulStep> make_steps(const MatmulShape& s, int32_t& levels) {
  std::vector<MatmulStep> steps;
  int64_t segment = s.k / s.leaf_n, lo = s.leaf_lo, end = s.leaf_lo + s.leaf_n, leaf = 0;
  levels = 1;
  for (int32_t node = 0; int64_t n = orr_tree_node(&lo, end, s.leaf_total); ++node) {
    int32_t depth = 0;
    for (int64_t i = 0; i < n; ++i, ++leaf) {
      int32_t merges = i + 1 == n ? depth : __builtin_ctzll(uint64_t(i) + 1);
      bool rounds = s.leaf_n > 1 && s.rounds;
      bool fused = merges > 0 && segment <= ORR_MATMUL_K && !rounds;
      int32_t level = fused ? depth - 1 : depth;
      levels = std::max(levels, level + 1);
      int64_t k = 0;
      do {
        int64_t kc = std::min<int64_t>(segment - k, ORR_MATMUL_K);
        steps.push_back({leaf * segment + k, int32_t(kc), level, k > 0 || fused, 0, -1, 0});
        k += kc;
      } while (k < segment);
      steps.back().merges = merges - fused;
      steps.back().rounds = rounds;
      depth += 1 - merges;
    }
    steps.back().node = node;
  }
  return steps;
}

std::vector<MatmulChunk> make_chunks(const std::vector<MatmulStep>& steps) {
  std::vector<MatmulChunk> chunks;
  for (int32_t i = 0; i < int32_t(steps.size()); ++i) {
    if (chunks.empty() || chunks.back().kc + steps[i].kc > ORR_MATMUL_K)
      chunks.push_back({i, i, steps[i].k0, 0});
    chunks.back().last = i + 1;
    chunks.back().kc += steps[i].kc;
  }
  return chunks;
}

template <class T>
T* copy_of(const std::vector<T>& v) {
  return std::copy(v.begin(), v.end(), new T[v.size()]) - v.size();
}

struct Tiling {
  int64_t tm, tn;
  bool m_inner, keep_a, keep_b;
  double cost;
};

// Cycles of the busiest slot, in a machine that does 32 multiply-adds in a cycle, 512 with tiles.
Tiling cost_of(const MatmulPlan& p, int64_t tm, int64_t tn, int64_t element) {
  const MatmulShape& s = p.shape;
  double rounds = double(ceil_div(s.g * ceil_div(s.m, tm) * ceil_div(s.n, tn), p.slots));
  int64_t cols = round_up(std::min(tn, s.n), p.micro.lanes), rows = std::min(tm, s.m);
  double k = double(s.k) + 16.0 * double(p.n_steps);
  double compute = k * (double(rows) + 0.5 * double(ceil_div(rows, p.micro.rows))) * double(cols) /
                   (p.tiles ? 512 : 32);
  double pack_a = p.read_a ? 0 : 0.4 * double(s.k * rows);
  double pack_b = p.read_b ? 0 : 0.4 * double(s.k * cols);
  bool fits_a = round_up(rows, p.micro.rows) * s.k * element <= kKeepBytes;
  bool fits_b = round_up(cols, p.micro.cols) * s.k * element <= kStoreBytes;
  // An operand that only one tile reads is packed in small parts, while memory loads the next part.
  bool reuses_b = tm < s.m;
  bool m_inner = fits_b && (!fits_a || pack_b >= pack_a) && !p.read_b;
  Tiling t{tm,
           tn,
           m_inner,
           fits_a && (!m_inner || tm >= s.m) && !p.read_a,
           (reuses_b || p.read_a) && fits_b && (m_inner || tn >= s.n) && !p.read_b,
           0};
  double a =
      t.keep_a ? pack_a / std::max(1.0, std::min(rounds, double(ceil_div(s.n, tn)))) : pack_a;
  double b =
      t.keep_b ? pack_b / std::max(1.0, std::min(rounds, double(ceil_div(s.m, tm)))) : pack_b;
  t.cost = rounds * (compute + a + b);
  return t;
}

// Tile edges of about equal length: `count` tiles of `grain` multiples that cover n.
int64_t edge(int64_t n, int64_t count, int64_t grain) {
  return round_up(ceil_div(n, count), grain);
}

// The best tiling of about `cols` columns and kTileRows rows or fewer; tm is 0 if there is none
// whose output, where it is added to more than once, stays in the cache.
Tiling tiling_of(const MatmulPlan& p, int64_t element, int64_t cols) {
  const MatmulShape& s = p.shape;
  Tiling best{0, 0, false, false, false, 0};
  int64_t more = 2 * p.slots;
  // An empty product has no tiles; any size will do for them.
  int64_t first_m = p.by_panels ? 1 : std::max<int64_t>(1, ceil_div(s.m, kTileRows));
  int64_t first_n = std::max<int64_t>(1, ceil_div(s.n, cols));
  for (int64_t i = first_m; i <= std::min(first_m + more, ceil_div(s.m, p.micro.rows)); ++i)
    for (int64_t j = first_n; j <= std::min(first_n + more, ceil_div(s.n, p.micro.lanes)); ++j) {
      const int64_t tm = edge(s.m, i, p.by_panels ? s.windows_a.block : p.micro.rows);
      const int64_t tn = edge(s.n, j, p.micro.lanes);
      if ((p.read_a && tn < s.n) || (p.read_b && tm < s.m)) continue;
      if (!p.by_panels && p.n_chunks > 1 && !p.read_a && j < ceil_div(s.n, p.micro.cols) &&
          tm * tn * element * p.levels > kRevisitBytes)
        continue;
      Tiling t = cost_of(p, tm, tn, element);
      if (!best.tm || t.cost < best.cost) best = t;
    }
  return best;
}

Tiling choose_tiling(const MatmulPlan& p, int64_t element) {
  int64_t cols = p.shape.k * element <= kKeepBytes / 256 ? kTileCols : kTileCols / 2;
  for (; cols > p.micro.cols; cols /= 2)
    if (const Tiling t = tiling_of(p, element, cols); t.tm) return t;
  return cost_of(p, p.micro.rows, p.micro.cols, element);
}

// Whether so many rows or columns, packed for all of K, stay in the cache while the micro-kernel
// reads the other operand, about once.
bool is_few(const MatmulShape& s, int64_t count) {
  const int64_t element = orr_dtype_bytes(s.dtype);
  return count > 0 && count <= kFew && kFew * s.k * element <= kKeepBytes && element >= 4;
}

bool reads_a(const MatmulShape& s) { return is_few(s, s.n) && (s.a.row == 1 || s.a.col == 1); }
bool reads_b(const MatmulShape& s, int64_t lanes) {
  return is_few(s, s.m) && s.b.col == 1 && s.n % lanes == 0 && s.b.row % lanes == 0;
}

// Whether b could be read where it lies if it were a: its elements along K are neighbours, and few
// lanes stay empty.
bool reads_swapped(const MatmulShape& s, int64_t lanes) {
  return s.dtype == ORR_F32 && !s.rounds && is_few(s, s.m) && s.b.row == 1 && s.n >= 2 * kFew &&
         round_up(s.m, lanes) - s.m <= lanes / 4;
}

}  // namespace

MatmulPlan::MatmulPlan(const orr_op& op, MicroTile micro_tile, int32_t workers)
    : shape(shape_of(op)), micro(micro_tile), slots(workers) {
  MatmulShape& s = shape;
  tiles = micro.tiles;
  bool narrow = s.n <= kVectorRows && s.m > kVectorRows;
  const bool windows = s.windows_a.run || s.windows_b.run;
  swapped = !windows && (narrow || (s.n < micro.cols && s.m >= 2 * s.n && s.n % micro.lanes) ||
                         (s.m > kVectorRows && reads_swapped(s, micro.lanes)));
  if (swapped) swap_roles(s);
  by_panels = s.windows_a.run > 0;
  if (by_panels) order_rows(s.windows_a, s.y.row);
  vector = !windows && s.m > 0 && s.m <= kVectorRows && s.leaf_n == 1 && s.dtype != ORR_F64;
  read_a = !windows && !vector && reads_a(s);
  read_b = !windows && !vector && !read_a && reads_b(s, micro.lanes);
  std::vector<MatmulStep> list = make_steps(s, levels);
  std::vector<MatmulChunk> groups = make_chunks(list);
  n_steps = int32_t(list.size()), n_chunks = int32_t(groups.size());
  int64_t element = s.dtype == ORR_F64 ? 8 : 4, longest = 0;
  for (const MatmulChunk& c : groups) longest = std::max(longest, c.kc);
  Tiling t = choose_tiling(*this, element);
  tile_m = t.tm, tile_n = t.tn;
  tiles_m = ceil_div(s.m, tile_m), tiles_n = ceil_div(s.n, tile_n);
  m_inner = t.m_inner, keep_a = t.keep_a && !by_panels, keep_b = t.keep_b;
  int64_t cols = round_up(tile_n, micro.cols);
  if (by_panels) keep_b = cols * s.k * element <= kFarBytes;
  int64_t rows = round_up(tile_m, micro.rows);
  // Panels of lines may be half as long as others.
  int64_t most_panels = by_panels ? 2 * ceil_div(s.windows_a.block, micro.rows) : rows / micro.rows;
  int64_t micro_rows = read_a ? 1 : most_panels;
  int64_t micro_tiles = n_chunks > 1 ? micro_rows * (cols / micro.cols) : 1;
  streams = n_steps == 1 && s.y.col == 1 && s.y.row % 16 == 0 &&
            s.g * s.m * s.n * element >= kStreamBytes;
  // Neighbouring panels are written together: an odd number of lines keeps them in different sets.
  by_rows = s.a.col == 1 || tiles;
  // A pair does not reach from one leaf into the next.
  pairs = tiles || (micro.pairs && s.dtype == ORR_BF16 && op.out[0].dtype == ORR_BF16 &&
                    (s.leaf_n == 1 || s.k / s.leaf_n % 2 == 0));
  panels = by_panels ? 1 : most_panels;
  panel_a = tiles     ? micro.rows * kAmxStride
            : by_rows ? micro.rows * (ORR_MATMUL_K + 16)
                      : round_up(micro.rows * longest + micro.lanes, 32) + 16;
  slot_a = read_a ? 0 : round_up(panels * panel_a * (keep_a ? n_chunks : 1), 64);
  group = keep_b || by_panels ? cols : std::min(cols, kGroupCols);
  slot_b = read_b ? 0 : round_up(group * (keep_b ? s.k : longest) + micro.lanes, 64);
  slot_stack = round_up(micro_tiles * levels * micro.rows * micro.cols, 64);
  shared = 0;
  if (vector) {
    shared = round_up(s.m * s.k, 64);
    slot_a = slot_b = 0;
    slot_stack = 2 * kVectorRows * kVectorCols;
  }
  steps = copy_of(list), chunks = copy_of(groups);
}

MatmulPlan::~MatmulPlan() {
  delete[] steps;
  delete[] chunks;
}

int64_t MatmulPlan::slot_elements() const { return slot_a + slot_b + slot_stack; }

uint64_t MatmulPlan::workspace() const {
  int64_t element = shape.dtype == ORR_F64 ? 8 : 4;
  return uint64_t((shared + slots * slot_elements()) * element + 64);
}

void matmul_supports(const orr_op& op, orr_support& out) {
  int32_t dtype = op.in[0].dtype;
  if (dtype != ORR_F32 && dtype != ORR_BF16 && dtype != ORR_F16 && dtype != ORR_F64)
    return refuse(out, "only f32, bf16, f16 and f64");
  if (op.in[1].dtype != dtype) return refuse(out, "only operands of one type");
  if (dtype == ORR_BF16 && (op.in[0].rank > 3 || op.in[1].rank > 3))
    return refuse(out, "no bf16 operands of more than three dims");
  if (!sums_into(dtype, op.out[0].dtype))
    return refuse(out, "no result of that type from such operands");
  const bool pairs = dtype == ORR_BF16 && op.out[0].dtype == ORR_BF16;
  accept(out, use_winograd(op)             ? "matmul/winograd4"
              : use_amx(op) && amx_works() ? "matmul/amx"
              : pairs                      ? "matmul/k256-pairs"
                                           : "matmul/k256");
  out.strided_in = 3, out.takes = ORR_TAKES_GROUPED_SUMS;
  out.strided_out = 1;
}

uint64_t matmul_workspace(const orr_op& op) {
  if (use_winograd(op)) return WinogradPlan(op, threads()).workspace();
  int64_t lanes = op.in[0].dtype == ORR_F64 ? 8 : 16;
  MatmulPlan narrow(op, {6, lanes, lanes}, threads());
  MatmulPlan wide(op, {14, 2 * lanes, lanes}, threads());
  const uint64_t bytes = std::max(narrow.workspace(), wide.workspace());
  return use_amx(op) ? std::max(bytes, MatmulPlan(op, kAmxTile, threads()).workspace()) : bytes;
}

// Few rows or columns are read where they lie (MatmulPlan::vector); a leaf begins on a whole tile.
bool use_amx(const orr_op& op) {
  if (op.in[0].dtype != ORR_BF16 || std::strcmp(attr_text(op, "numerics", ""), "fast"))
    return false;
  if (op.in[0].rank > 3 || op.in[1].rank > 3) return false;
  const MatmulShape s = shape_of(op);
  return s.m > kVectorRows && s.n > kVectorRows && s.k >= kAmxK &&
         (s.leaf_n == 1 || s.k / s.leaf_n % kAmxK == 0);
}

}  // namespace orr_cpu
