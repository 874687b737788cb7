// SPDX-License-Identifier: Apache-2.0
//
// matmul of the cpu kernels against plain loops in the order of ops.h: equal bits for every shape,
// layout, type, number of threads and instruction set.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "cpu_direct.h"
#include "matmul_plan.h"

namespace {

using namespace orr_test;

float to_float(uint16_t x) {
  uint32_t bits = uint32_t(x) << 16;
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}
uint16_t to_bf16(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// How an element of storage type S is read and written.
template <class S>
struct Storage {
  using T = S;
  static T get(S x) { return x; }
  static S put(T x) { return x; }
};
template <>
struct Storage<uint16_t> {
  using T = float;
  static float get(uint16_t x) { return to_float(x); }
  static uint16_t put(float x) { return to_bf16(x); }
};

struct Case {
  int64_t g, m, n, k;
  bool a_t, b_t;    // the unit stride is on the other of the two last dims
  int64_t pad = 0;  // extra elements between rows
  int64_t leaf_lo = 0, leaf_n = 1, leaf_total = 1;
  bool share_b = false;  // stride 0 on G
  bool tiles = false;    // "numerics" = "fast", by AMX
};

std::vector<int64_t> strides(int64_t rows, int64_t cols, bool transposed, int64_t pad, bool share) {
  int64_t row = transposed ? 1 : cols + pad, col = transposed ? rows + pad : 1;
  return {share ? 0 : transposed ? cols * col : rows * row, row, col};
}

// Numbers in (-1, 1), and some so small that they, or products of them, are subnormal.
template <class S>
Bytes random_bytes(int64_t count, uint32_t seed) {
  Bytes b(uint64_t(count) * sizeof(S));
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (int64_t i = 0; i < count; ++i)
    static_cast<S*>(b.data())[i] = Storage<S>::put(std::ldexp(uniform(engine), i % 13 == 0  ? -129
                                                                               : i % 5 == 0 ? -66
                                                                                            : 0));
  return b;
}

// As a node of the tree is kept: in the type of the output.
template <class S>
typename Storage<S>::T rounded(typename Storage<S>::T x) {
  return Storage<S>::get(Storage<S>::put(x));
}

// A block of K, in the order of ops.h: bf16 in pairs, the second first, what is subnormal as 0.
template <class S>
typename Storage<S>::T block_of(int64_t depth, const S* a, int64_t a_step, const S* b,
                                int64_t b_step) {
  using T = typename Storage<S>::T;
  constexpr bool pairs = std::is_same_v<S, uint16_t>;
  const auto kept = [](T x) {
    return pairs && std::fabs(x) < std::numeric_limits<T>::min() ? std::copysign(T(0), x) : x;
  };
  T block = 0;
  for (int64_t i = 0; i < depth + (pairs ? depth % 2 : 0); ++i) {
    const int64_t k = pairs ? i ^ 1 : i;
    const T x = k < depth ? kept(Storage<S>::get(a[k * a_step])) : T(0);
    const T y = k < depth ? kept(Storage<S>::get(b[k * b_step])) : T(0);
    block = kept(std::fma(x, y, block));
  }
  return block;
}

// All of a leaf in the order of AMX's tdpbf16ps, as Intel's manual has it: of 32 elements of K
// those of even and those of odd number by themselves, each from +0; what is subnormal as 0.
float by_tiles(int64_t depth, const uint16_t* a, int64_t a_step, const uint16_t* b,
               int64_t b_step) {
  const auto kept = [](float x) {
    return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x;
  };
  float sum = 0;
  for (int64_t k0 = 0; k0 < depth; k0 += 32) {
    float part[2] = {0, 0};
    for (int64_t k = k0; k < k0 + 32; ++k) {
      const float x = k < depth ? kept(to_float(a[k * a_step])) : 0;
      const float y = k < depth ? kept(to_float(b[k * b_step])) : 0;
      part[k % 2] = kept(std::fma(x, y, part[k % 2]));
    }
    sum = kept(sum + kept(part[0] + part[1]));
  }
  return sum;
}

// The product of one leaf, then the tree over leaves, for one element.
template <class S>
std::vector<typename Storage<S>::T> nodes_of(const Case& c, const S* a, int64_t a_step, const S* b,
                                             int64_t b_step) {
  using T = typename Storage<S>::T;
  int64_t segment = c.k / c.leaf_n;
  std::vector<T> leaves;
  for (int64_t leaf = 0; leaf < c.leaf_n; ++leaf) {
    T sum = 0;
    if constexpr (std::is_same_v<S, uint16_t>)
      if (c.tiles)
        sum = by_tiles(segment, a + leaf * segment * a_step, a_step, b + leaf * segment * b_step,
                       b_step);
    for (int64_t k0 = 0; k0 < (c.tiles ? 0 : segment); k0 += ORR_MATMUL_K) {
      const int64_t at = leaf * segment + k0, depth = std::min<int64_t>(segment - k0, ORR_MATMUL_K);
      const T block = block_of(depth, a + at * a_step, a_step, b + at * b_step, b_step);
      sum = k0 ? sum + block : block;
    }
    leaves.push_back(c.leaf_n > 1 ? rounded<S>(sum) : sum);
  }
  std::vector<T> nodes;
  int64_t lo = c.leaf_lo, first = 0;
  while (int64_t n = orr_tree_node(&lo, c.leaf_lo + c.leaf_n, c.leaf_total)) {
    std::vector<T> level(leaves.begin() + first, leaves.begin() + first + n);
    for (; level.size() > 1; level.resize((level.size() + 1) / 2))
      for (size_t i = 0; i < level.size(); i += 2)
        level[i / 2] = i + 1 < level.size() ? rounded<S>(level[i] + level[i + 1]) : level[i];
    nodes.push_back(level[0]);
    first += n;
  }
  return nodes;
}

template <class S>
void check(const Case& c, int32_t dtype, Make make) {
  auto sa = strides(c.m, c.k, c.a_t, c.pad, false), sb = strides(c.k, c.n, c.b_t, c.pad, c.share_b);
  int64_t nodes = orr_tree_nodes(c.leaf_lo, c.leaf_lo + c.leaf_n, c.leaf_total);
  int64_t y_row = c.n + c.pad, y_batch = y_row * c.m;
  Bytes a = random_bytes<S>((c.m + c.pad) * (c.k + c.pad) * c.g, 1);
  Bytes b = random_bytes<S>((c.n + c.pad) * (c.k + c.pad) * c.g, 2);
  Bytes y(uint64_t(y_batch * c.g * nodes) * sizeof(S), y_row % 16 == 0);
  orr_tensor in[] = {tensor(dtype, {c.g, c.m, c.k}, sa), tensor(dtype, {c.g, c.k, c.n}, sb)};
  orr_tensor out = nodes > 1 ? tensor(dtype, {nodes, 1, c.m, c.n}, {y_batch, y_batch, y_row, 1})
                             : tensor(dtype, {c.g, c.m, c.n}, {y_batch, y_row, 1});
  Attributes attrs;
  attrs.add("leaf_lo", c.leaf_lo).add("leaf_n", c.leaf_n).add("leaf_total", c.leaf_total);
  if (c.tiles) attrs.add_text("numerics", "fast");
  orr_op op{sizeof(orr_op), 2,      1,      int32_t(attrs.list.size()),
            "matmul",       in,     &out,   attrs.list.data(),
            nullptr,        "test", nullptr};
  if (c.tiles && !orr_cpu::use_amx(op)) return;
  ASSERT_TRUE(run(make, op, orr_cpu::matmul_workspace(op), {&a, &b}, {&y}));
  const S *pa = static_cast<S*>(a.data()), *pb = static_cast<S*>(b.data());
  const S* py = static_cast<S*>(y.data());
  for (int64_t g = 0; g < c.g; ++g)
    for (int64_t m = 0; m < c.m; ++m)
      for (int64_t n = 0; n < c.n; ++n) {
        auto want =
            nodes_of<S>(c, pa + g * sa[0] + m * sa[1], sa[2], pb + g * sb[0] + n * sb[2], sb[1]);
        for (int64_t i = 0; i < nodes; ++i) {
          S w = Storage<S>::put(want[i]), got = py[(g + i) * y_batch + m * y_row + n];
          ASSERT_EQ(0, std::memcmp(&w, &got, sizeof(S)))
              << "g " << g << " m " << m << " n " << n << " node " << i << " of " << c.m << "x"
              << c.n << "x" << c.k << " threads " << thread_count;
        }
      }
}

const Case cases[] = {
    {1, 1, 1, 1, false, false},
    {1, 1, 700, 300, false, false},
    {1, 2, 700, 301, false, true},
    {1, 3, 37, 513, true, true},
    {2, 3, 530, 20, true, false, 3},
    {1, 300, 2, 260, false, false},
    {1, 31, 1, 770, true, true},
    {1, 4, 16, 5, false, false},
    {1, 14, 32, 256, false, true},
    {1, 15, 33, 257, true, false},
    {1, 128, 10, 512, false, true},
    {1, 128, 10, 512, true, false},
    {1, 10, 128, 96, true, false},
    {1, 29, 47, 600, false, true, 5},
    {1, 29, 47, 600, true, true, 1},
    {3, 20, 50, 70, false, true},
    {5, 64, 64, 32, true, false, 0, 0, 1, 1, true},
    {1, 32, 144, 300, false, true},  // of few rows or columns: the other operand is not packed
    {2, 45, 130, 40, false, true, 3},
    {1, 32, 144, 300, false, false},
    {3, 20, 48, 40, true, false},
    {1, 60, 64, 4 * 30, true, false, 0, 0, 4, 4},
    {1, 100, 40, 300, true, false},
    {2, 100, 33, 40, false, true, 1},
    {1, 100, 40, 4 * 30, true, false, 0, 0, 4, 4},
    {1, 300, 1100, 40, false, false},
    {1, 290, 530, 300, true, true},
    {1, 1030, 1040, 5, true, false},  // y goes past the caches
    {1, 1030, 1040, 1, true, false},  // all strides of a and b are 1
    {1, 30, 50, 64, true, false, 0, 0, 4, 4},
    {1, 30, 50, 4 * 300, true, false, 0, 0, 4, 4},
    {1, 290, 70, 512, true, false, 0, 0, 2, 2},
    {1, 17, 40, 90, true, false, 0, 1, 6, 7},
    {1, 17, 40, 70, true, false, 0, 0, 7, 7},
    {1, 17, 40, 3 * 270, false, true, 2, 2, 3, 8},
    {1, 2, 100, 64, true, false, 0, 0, 4, 4},
    {1, 100, 2, 96, true, false, 0, 4, 2, 6},
};

// The windows of a convolution, as an operand: x[images, height + 2 pad, width + 2 pad, channels],
// whose border is 0.
struct Windows {
  int64_t images, height, width, channels, size, stride, dilation, pad;
  int64_t outputs, leaves = 1;

  int64_t along(int64_t n) const { return (n + 2 * pad - (size - 1) * dilation - 1) / stride + 1; }
  int64_t positions() const { return images * along(height) * along(width); }
  int64_t columns() const { return size * size * channels; }
  int64_t row() const { return (width + 2 * pad) * channels; }
  int64_t image() const { return (height + 2 * pad) * row(); }

  orr_tensor operand(int32_t dtype) const {
    std::vector<int64_t> dims{1, images, along(height), along(width), size},
        strides{0, image(), stride * row(), stride * channels, dilation * row()};
    if (dilation == 1)
      dims.push_back(size * channels), strides.push_back(1);
    else
      dims.insert(dims.end(), {size, channels}),
          strides.insert(strides.end(), {dilation * channels, 1});
    return tensor(dtype, dims, strides);
  }

  template <class S>
  void clear_border(S* x) const {
    for (int64_t i = 0; i < images * image(); ++i) {
      const int64_t r = i % image() / row(), c = i % row() / channels;
      if (r < pad || r >= height + pad || c < pad || c >= width + pad) x[i] = S(0);
    }
  }

  // The windows of all positions one behind the other.
  template <class S>
  std::vector<S> copied(const S* x) const {
    std::vector<S> all;
    for (int64_t p = 0; p < positions(); ++p) {
      const int64_t column = p % along(width), line = p / along(width) % along(height);
      const S* from = x + p / along(width) / along(height) * image() + line * stride * row() +
                      column * stride * channels;
      for (int64_t i = 0; i < size; ++i)
        for (int64_t j = 0; j < size; ++j)
          for (int64_t c = 0; c < channels; ++c)
            all.push_back(from[i * dilation * row() + j * dilation * channels + c]);
    }
    return all;
  }
};

// As a of a product with b[K,N], or as b of one with the transpose of dy[K,M].
template <class S>
void check_windows(const Windows& w, bool as_b, int32_t dtype, Make make) {
  const int64_t m = as_b ? w.outputs : w.positions(), n = as_b ? w.columns() : w.outputs,
                k = as_b ? w.positions() : w.columns(), leaves = as_b ? w.leaves : 1;
  Bytes x = random_bytes<S>(w.images * w.image(), 1), other = random_bytes<S>(k * w.outputs, 2);
  Bytes y(uint64_t(m * n) * sizeof(S), n % 16 == 0);
  w.clear_border(static_cast<S*>(x.data()));
  orr_tensor in[] = {w.operand(dtype), w.operand(dtype)}, out = tensor(dtype, {1, m, n});
  in[!as_b] = as_b ? tensor(dtype, {1, m, k}, {0, 1, m}) : tensor(dtype, {1, k, n}, {0, 1, k});
  Attributes attrs;
  attrs.add("leaf_lo", 0).add("leaf_n", leaves).add("leaf_total", leaves);
  orr_op op{sizeof(orr_op),    2,       1,      3,      "matmul", in, &out,
            attrs.list.data(), nullptr, "test", nullptr};
  const std::vector<Bytes*> ins = as_b ? std::vector{&other, &x} : std::vector{&x, &other};
  ASSERT_TRUE(run(make, op, orr_cpu::matmul_workspace(op), ins, {&y}));
  const std::vector<S> matrix = w.copied(static_cast<S*>(x.data()));
  const S *rest = static_cast<S*>(other.data()), *py = static_cast<S*>(y.data());
  const Case c{1, m, n, k, false, false, 0, 0, leaves, leaves};
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      const S want = as_b ? nodes_of<S>(c, rest + i, m, matrix.data() + j, n)[0]
                          : nodes_of<S>(c, matrix.data() + i * k, 1, rest + j * k, 1)[0];
      ASSERT_EQ(want, py[i * n + j])
          << "row " << i << " column " << j << " of " << m << "x" << n << "x" << k
          << (as_b ? " as b" : " as a") << ", threads " << thread_count;
    }
}

const Windows windows[] = {
    {2, 5, 6, 3, 3, 1, 1, 1, 10},       // runs shorter than a vector
    {32, 3, 3, 70, 3, 1, 1, 1, 33},     // rows of 32 images side by side
    {8, 4, 3, 128, 3, 1, 1, 1, 16, 4},  // chunks of K that are 0
    {16, 4, 4, 64, 3, 2, 1, 1, 48},     // every second position
    {3, 7, 5, 20, 3, 1, 2, 2, 7, 3},    // apart
    {40, 4, 4, 24, 1, 2, 1, 0, 40},     // of one element
    {1, 20, 19, 2, 2, 1, 1, 0, 3, 19}, {9, 6, 6, 33, 2, 1, 1, 1, 130},
};

class CpuMatmul : public testing::TestWithParam<Make> {
 protected:
  void SetUp() override {
    if (GetParam() == orr_cpu::avx512::make_matmul && !has_avx512())
      GTEST_SKIP() << "needs AVX-512";
    use_serial_host();
  }
};

TEST_P(CpuMatmul, GivesTheBitsOfThePlainLoops) {
  for (int t : {1, 2, 5}) {
    thread_count = t;
    for (const Case& c : cases) {
      check<float>(c, ORR_F32, GetParam());
      check<uint16_t>(c, ORR_BF16, GetParam());
      check<double>(c, ORR_F64, GetParam());
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(CpuMatmul, ReadsWindowsWhereTheyOverlap) {
  for (int t : {1, 2, 3}) {
    thread_count = t;
    for (const Windows& w : windows)
      for (bool as_b : {false, true}) {
        check_windows<float>(w, as_b, ORR_F32, GetParam());
        check_windows<double>(w, as_b, ORR_F64, GetParam());
        if (HasFatalFailure()) return;
      }
  }
}

TEST_P(CpuMatmul, GivesTheBitsOfAmxsTilesWhereAnyOrderIsAllowed) {
  if (GetParam() == orr_cpu::avx2::make_matmul || !orr_cpu::amx_works())
    GTEST_SKIP() << "needs AMX with bf16";
  for (int t : {1, 2, 5}) {
    thread_count = t;
    for (Case c : cases) {
      c.tiles = true;
      check<uint16_t>(c, ORR_BF16, GetParam());
      if (HasFatalFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Avx2, CpuMatmul, testing::Values(orr_cpu::avx2::make_matmul));
INSTANTIATE_TEST_SUITE_P(Avx512, CpuMatmul, testing::Values(orr_cpu::avx512::make_matmul));

}  // namespace
