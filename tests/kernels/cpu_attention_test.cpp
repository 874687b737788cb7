// SPDX-License-Identifier: Apache-2.0
//
// attention and attention_grad of the cpu kernels against plain loops in double precision, and
// their bits against each other: instruction sets, threads, and heads alone or in company.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "attention_plan.h"
#include "cpu_direct.h"

namespace orr_cpu::avx2 {
Kernel* make_attention(const orr_op&);
Kernel* make_attention_grad(const orr_op&);
}  // namespace orr_cpu::avx2
namespace orr_cpu::avx512 {
Kernel* make_attention(const orr_op&);
Kernel* make_attention_grad(const orr_op&);
}  // namespace orr_cpu::avx512

namespace {

using namespace orr_test;
using Doubles = std::vector<double>;

struct Case {
  int64_t batch, heads, queries, keys, depth;
  bool causal;
  int32_t dtype = ORR_F32;
  int64_t readers = 1, window = 0;  // heads of queries to one of keys

  int64_t groups() const { return heads / readers; }
  // Whether query t sees key s.
  bool sees(int64_t t, int64_t s) const {
    const int64_t lag = t + keys - queries - s;
    return (!causal || lag >= 0) && (window == 0 || std::abs(lag) < window);
  }
};

float get(const void* p, int64_t i, int32_t dtype) {
  if (dtype == ORR_F32) return static_cast<const float*>(p)[i];
  uint32_t bits = uint32_t(static_cast<const uint16_t*>(p)[i]) << 16;
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}
void put(void* p, int64_t i, float x, int32_t dtype) {
  if (dtype == ORR_F32) {
    static_cast<float*>(p)[i] = x;
    return;
  }
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  static_cast<uint16_t*>(p)[i] = uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// A tensor [B,H,rows,D] that lies in memory as [B,rows,H,D], as a linear layer leaves it.
struct Operand {
  Operand(const Case& c, int64_t heads, int64_t rows, uint32_t seed)
      : bytes(uint64_t(c.batch * heads * rows * c.depth * orr_dtype_bytes(c.dtype))),
        shape(tensor(c.dtype, {c.batch, heads, rows, c.depth},
                     {rows * heads * c.depth, c.depth, heads * c.depth, 1})) {
    std::mt19937 engine(seed);
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i < c.batch * heads * rows * c.depth; ++i)
      put(bytes.data(), i, normal(engine), c.dtype);
  }
  double at(int64_t b, int64_t h, int64_t r, int64_t d) {
    const int64_t* s = shape.strides;
    return get(bytes.data(), b * s[0] + h * s[1] + r * s[2] + d, shape.dtype);
  }
  Bytes bytes;
  orr_tensor shape;
};

struct Heads {
  explicit Heads(const Case& c)
      : c(c),
        q(c, c.heads, c.queries, 1),
        k(c, c.groups(), c.keys, 2),
        v(c, c.groups(), c.keys, 3),
        grad(c, c.heads, c.queries, 4),
        o(c, c.heads, c.queries, 0),
        gq(c, c.heads, c.queries, 0),
        gk(c, c.groups(), c.keys, 0),
        gv(c, c.groups(), c.keys, 0),
        lse(uint64_t(c.batch * c.heads * c.queries) * 4),
        mask(uint64_t(c.queries * c.keys) * 4) {}

  // With a mask: it is added to the scores, for all samples and heads.
  bool go(Make forward, Make backward, bool masked = false) {
    orr_tensor l = tensor(ORR_F32, {c.batch, c.heads, c.queries});
    orr_tensor m = tensor(ORR_F32, {c.batch, c.heads, c.queries, c.keys}, {0, 0, c.keys, 1});
    Attributes attrs;
    attrs.add_real("scale", 1 / std::sqrt(double(c.depth))).add("causal", c.causal);
    if (c.window) attrs.add("window", c.window);
    const auto n = int32_t(attrs.list.size());
    orr_tensor in[] = {q.shape, k.shape, v.shape, m}, out[] = {o.shape, l};
    std::vector<Bytes*> from = {&q.bytes, &k.bytes, &v.bytes};
    if (masked) from.push_back(&mask);
    orr_op op{sizeof op, int32_t(from.size()), 2,       n,      "attention", in,
              out,       attrs.list.data(),    nullptr, "test", nullptr};
    bool good = run(forward, op, orr_cpu::attention_workspace(op), from, {&o.bytes, &lse});
    orr_tensor in2[] = {grad.shape, q.shape, k.shape, v.shape, o.shape, l, m};
    from = {&grad.bytes, &q.bytes, &k.bytes, &v.bytes, &o.bytes, &lse};
    if (masked) from.push_back(&mask);
    orr_tensor out2[] = {gq.shape, gk.shape, gv.shape};
    orr_op op2{sizeof op2, int32_t(from.size()), 3,       n,      "attention_grad", in2,
               out2,       attrs.list.data(),    nullptr, "test", nullptr};
    return good && run(backward, op2, orr_cpu::attention_grad_workspace(op2), from,
                       {&gq.bytes, &gk.bytes, &gv.bytes});
  }

  Case c;
  Operand q, k, v, grad, o, gq, gk, gv;
  Bytes lse, mask;
};

// What one head of queries adds to the gradients of the keys and values that it reads.
struct OfKeys {
  Doubles k, v;
};

// One head in double precision; the gradients follow from o and lse as they are defined.
void check_head(Heads& r, int64_t b, int64_t h, OfKeys& sums) {
  const Case& c = r.c;
  const int64_t g = h / c.readers;
  double scale = 1 / std::sqrt(double(c.depth)), near = c.dtype == ORR_F32 ? 1e-5 : 2e-2;
  for (int64_t t = 0; t < c.queries; ++t) {
    Doubles w(c.keys, -INFINITY), o(c.depth), gq(c.depth);
    double top = -INFINITY, total = 0, delta = 0;
    for (int64_t s = 0; s < c.keys; ++s) {
      if (!c.sees(t, s)) continue;
      w[s] = 0;
      for (int64_t d = 0; d < c.depth; ++d) w[s] += r.q.at(b, h, t, d) * r.k.at(b, g, s, d) * scale;
      top = std::max(top, w[s]);
    }
    const bool seen = top > -INFINITY;
    for (double& x : w) total += x = seen ? std::exp(x - top) : 0;
    float lse = static_cast<float*>(r.lse.data())[(b * c.heads + h) * c.queries + t];
    ASSERT_TRUE(!seen || std::abs(lse - (top + std::log(total))) < 1e-5) << lse;
    for (int64_t s = 0; s < c.keys && seen; ++s) {
      w[s] /= total;
      for (int64_t d = 0; d < c.depth; ++d) o[d] += w[s] * r.v.at(b, g, s, d);
    }
    for (int64_t d = 0; d < c.depth; ++d) {
      ASSERT_NEAR(r.o.at(b, h, t, d), o[d], near) << "o of query " << t << " depth " << d;
      delta += r.grad.at(b, h, t, d) * o[d];
    }
    for (int64_t s = 0; s < c.keys; ++s) {
      double slope = -delta;
      for (int64_t d = 0; d < c.depth; ++d) slope += r.grad.at(b, h, t, d) * r.v.at(b, g, s, d);
      for (int64_t d = 0; d < c.depth; ++d) {
        sums.v[s * c.depth + d] += w[s] * r.grad.at(b, h, t, d);
        sums.k[s * c.depth + d] += w[s] * slope * scale * r.q.at(b, h, t, d);
        gq[d] += w[s] * slope * scale * r.k.at(b, g, s, d);
      }
    }
    for (int64_t d = 0; d < c.depth; ++d)
      ASSERT_NEAR(r.gq.at(b, h, t, d), gq[d], 5 * near) << "dq of query " << t << " depth " << d;
  }
}

// A head of keys and values, and all that read it.
void check_group(Heads& r, int64_t b, int64_t g) {
  const Case& c = r.c;
  const double near = c.dtype == ORR_F32 ? 1e-5 : 2e-2;
  OfKeys sums{Doubles(c.keys * c.depth), Doubles(c.keys * c.depth)};
  for (int64_t h = g * c.readers; h < (g + 1) * c.readers; ++h) {
    check_head(r, b, h, sums);
    if (testing::Test::HasFatalFailure()) return;
  }
  for (int64_t s = 0; s < c.keys; ++s)
    for (int64_t d = 0; d < c.depth; ++d) {
      const double gk = sums.k[s * c.depth + d], gv = sums.v[s * c.depth + d];
      const double allow = 5 * near * (1 + std::abs(gv) + std::abs(gk));
      ASSERT_NEAR(r.gk.at(b, g, s, d), gk, allow) << "dk of key " << s;
      ASSERT_NEAR(r.gv.at(b, g, s, d), gv, allow) << "dv of key " << s;
    }
}

const Case cases[] = {
    {1, 1, 1, 1, 16, true},
    {2, 3, 64, 64, 64, true},
    {2, 2, 37, 37, 20, true},
    {1, 2, 300, 300, 32, true},
    {1, 1, 300, 300, 40, false},
    {1, 2, 5, 150, 64, true},
    {1, 1, 150, 70, 24, true},
    {1, 1, 1, 200, 64, true},
    {2, 2, 65, 130, 48, false},
    {1, 2, 70, 70, 64, true, ORR_BF16},
    {2, 6, 70, 150, 20, true, ORR_F32, 3},
    {1, 4, 300, 300, 40, false, ORR_F32, 4},
    {1, 2, 300, 300, 32, true, ORR_F32, 1, 50},
    {1, 1, 600, 600, 16, true, ORR_F32, 1, 130},
    {1, 1, 600, 300, 16, false, ORR_F32, 1, 70},
    {1, 1, 40, 700, 24, true, ORR_F32, 1, 200},
    {1, 1, 290, 290, 64, true, ORR_F32, 1, 1},
    {2, 4, 300, 400, 32, false, ORR_BF16, 2, 33},
};

struct Isa {
  Make forward, backward;
};
const Isa narrow{orr_cpu::avx2::make_attention, orr_cpu::avx2::make_attention_grad};
const Isa wide{orr_cpu::avx512::make_attention, orr_cpu::avx512::make_attention_grad};

std::vector<unsigned char> results(Heads& r) {
  std::vector<unsigned char> all;
  for (Bytes* b : {&r.o.bytes, &r.lse, &r.gq.bytes, &r.gk.bytes, &r.gv.bytes}) {
    auto* p = static_cast<unsigned char*>(b->data());
    all.insert(all.end(), p, p + b->size);
  }
  return all;
}

TEST(CpuAttention, AgreesWithDoublePrecision) {
  use_serial_host();
  thread_count = 2;
  for (const Case& c : cases) {
    SCOPED_TRACE(testing::Message() << c.queries << "x" << c.keys << "x" << c.depth);
    Heads r(c);
    ASSERT_TRUE(r.go(narrow.forward, narrow.backward)) << "wrote outside its buffers";
    for (int64_t b = 0; b < c.batch; ++b)
      for (int64_t g = 0; g < c.groups(); ++g) {
        check_group(r, b, g);
        if (HasFatalFailure()) return;
      }
  }
}

TEST(CpuAttention, BitsDependOnNeitherThreadsNorInstructionSet) {
  use_serial_host();
  for (const Case& c : cases) {
    Heads one(c);
    thread_count = 1;
    one.go(narrow.forward, narrow.backward);
    for (int t : {1, 2, 7}) {
      thread_count = t;
      Heads other(c);
      Isa isa = has_avx512() ? wide : narrow;
      ASSERT_TRUE(other.go(isa.forward, isa.backward));
      ASSERT_EQ(results(one), results(other)) << c.queries << "x" << c.keys << "x" << c.depth;
    }
  }
}

// The first queries of a causal head do not see what a longer sequence adds.
TEST(CpuAttention, CausalRowsKeepTheirBitsInALongerSequence) {
  use_serial_host();
  Heads shorter({1, 1, 150, 150, 32, true}), longer({1, 1, 300, 300, 32, true});
  for (Isa isa : {narrow, has_avx512() ? wide : narrow}) {
    shorter.go(isa.forward, isa.backward);
    longer.go(isa.forward, isa.backward);
    ASSERT_EQ(0, std::memcmp(shorter.o.bytes.data(), longer.o.bytes.data(), 150 * 32 * 4));
  }
}

// Keys that a window hides from all queries are not read: the queries see the last of them alone.
TEST(CpuAttention, KeysOutsideOfAWindowAreNotRead) {
  use_serial_host();
  const Case c{1, 2, 64, 640, 24, true, ORR_F32, 2, 100};
  for (Isa isa : {narrow, has_avx512() ? wide : narrow}) {
    Heads sound(c), broken(c);
    for (Operand* x : {&broken.k, &broken.v})
      std::fill_n(static_cast<float*>(x->bytes.data()), 3 * 128 * 24, NAN);  // whole blocks
    ASSERT_TRUE(sound.go(isa.forward, isa.backward));
    ASSERT_TRUE(broken.go(isa.forward, isa.backward));
    ASSERT_EQ(results(sound), results(broken));
  }
}

// Heads of queries compute what they do with a head of keys of their own.
TEST(CpuAttention, GroupedHeadsHaveTheBitsOfRepeatedOnes) {
  use_serial_host();
  Heads grouped({1, 4, 150, 150, 32, true, ORR_F32, 2}), repeated({1, 4, 150, 150, 32, true});
  for (auto [from, to] : {std::pair{&grouped.k, &repeated.k}, std::pair{&grouped.v, &repeated.v}})
    for (int64_t i = 0; i < 150 * 4 * 32; ++i) {
      const int64_t row = i / 128, head = i / 32 % 4, d = i % 32;
      static_cast<float*>(to->bytes.data())[i] =
          static_cast<float*>(from->bytes.data())[row * 64 + head / 2 * 32 + d];
    }
  for (Isa isa : {narrow, has_avx512() ? wide : narrow}) {
    ASSERT_TRUE(grouped.go(isa.forward, isa.backward));
    ASSERT_TRUE(repeated.go(isa.forward, isa.backward));
    for (auto [x, y] : {std::pair{&grouped.o, &repeated.o}, {&grouped.gq, &repeated.gq}})
      ASSERT_EQ(0, std::memcmp(x->bytes.data(), y->bytes.data(), 150 * 128 * 4));
  }
}

// Two of five blocks of keys are hidden. Nothing reads them, and without them all other bits are
// the same.
TEST(CpuAttention, HiddenBlocksLeaveNoTrace) {
  use_serial_host();
  const int64_t block = 128, row = 2 * 40;  // of keys; elements
  const auto seen = [=](int64_t key) { return key / block != 0 && key / block != 3; };
  for (Isa isa : {narrow, has_avx512() ? wide : narrow}) {
    Heads whole({1, 2, 70, 5 * block, 40, false}), fewer({1, 2, 70, 3 * block, 40, false});
    const auto floats = [](Bytes& b) { return static_cast<float*>(b.data()); };
    for (int64_t key = 0, at = 0; key < 5 * block; ++key) {
      for (int64_t t = 0; t < 70; ++t)
        floats(whole.mask)[t * 5 * block + key] = seen(key) ? 0.0f : -HUGE_VALF;
      for (auto [from, to] : {std::pair{&whole.k, &fewer.k}, std::pair{&whole.v, &fewer.v}})
        for (int64_t i = 0; i < row; ++i)
          if (seen(key))
            floats(to->bytes)[at * row + i] = floats(from->bytes)[key * row + i];
          else
            floats(from->bytes)[key * row + i] = NAN;
      at += seen(key);
    }
    std::fill_n(floats(fewer.mask), 70 * 3 * block, 0.0f);
    ASSERT_TRUE(whole.go(isa.forward, isa.backward, true));
    ASSERT_TRUE(fewer.go(isa.forward, isa.backward, true));
    for (auto [x, y] : {std::pair{&whole.o, &fewer.o}, std::pair{&whole.gq, &fewer.gq}})
      ASSERT_EQ(0, std::memcmp(x->bytes.data(), y->bytes.data(), 70 * row * 4));
    ASSERT_EQ(0, std::memcmp(whole.lse.data(), fewer.lse.data(), 2 * 70 * 4));
    for (auto [x, y] : {std::pair{&whole.gk, &fewer.gk}, std::pair{&whole.gv, &fewer.gv}})
      for (int64_t key = 0, at = 0; key < 5 * block; at += seen(key), ++key)
        for (int64_t i = 0; i < row; ++i)
          ASSERT_EQ(floats(x->bytes)[key * row + i],
                    seen(key) ? floats(y->bytes)[at * row + i] : 0.0f);
  }
}

}  // namespace
