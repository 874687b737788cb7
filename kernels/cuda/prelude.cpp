// SPDX-License-Identifier: Apache-2.0
//
// The prelude of generated kernels. Integer arithmetic wraps; x/0 is 0; a real that does not fit an
// integer becomes the smallest integer. Functions of f32 are CUDA's accurate ones (exp of a float
// is expf), within 2 ulp of the exact value except powf (ops.h does not fix their bits); formulas
// avoid cancellation. Where the result is rounded to 16 bits, exp and what is made of it are brief:
// the hardware's approximations, within 2^-16 of the exact value.
#include "expression.h"

namespace orr_cuda {

const char pointwise_prelude[] = R"(
#define ORR_EACH _Pragma("unroll") for (int v = 0; v < V; ++v)
#define ORR_FN __device__ __forceinline__
typedef long long i64;
typedef unsigned long long u64;

// These functions are for NVRTC. Other compilers of this source (the emulator) define their own.
#ifdef __CUDACC_RTC__
ORR_FN float exp2_brief(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
ORR_FN float inverse_brief(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
ORR_FN float half_to_float(unsigned short bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
}
ORR_FN unsigned short float_to_half(float x) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
ORR_FN float round_to_bfloat(float x) {  // a bf16 is the upper half of a float
  unsigned bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(x), "f"(0.0f));
  return __uint_as_float(bits);
}
ORR_FN char* block_memory() {  // as much as the launch asks for
  extern __shared__ __align__(16) char bytes[];
  return bytes;
}
#endif

struct Bf16 { unsigned short bits; };
struct F16 { unsigned short bits; };
struct F8E4M3 { unsigned char bits; };
struct F8E5M2 { unsigned char bits; };

// Numbers of eight bits, without their sign. They lack the last `dropped` bits of a float's
// fraction, and their exponent is smaller by `bias`. Below the smallest normal number they are
// steps.
template <int dropped, int bias> ORR_FN float eight_to_float(unsigned size) {
  const float step = __uint_as_float((bias + dropped - 22) << 23);
  const bool normal = size >> (23 - dropped);
  return normal ? __uint_as_float((size << dropped) + (bias << 23)) : (float)size * step;
}
// To nearest even. In a sum with `far` only whole steps are left.
template <int dropped, int bias> ORR_FN unsigned float_to_eight(float size) {
  const unsigned bits = __float_as_uint(size), far = (bias + dropped + 1) << 23;
  if (bits < (bias + 1) << 23) return __float_as_uint(size + __uint_as_float(far)) - far;
  return (bits + ((1u << (dropped - 1)) - 1) + (bits >> dropped & 1) - (bias << 23)) >> dropped;
}
ORR_FN float signed_as(float size, unsigned byte) {
  return __uint_as_float(__float_as_uint(size) | (byte & 0x80u) << 24);
}
ORR_FN unsigned char eight_of(unsigned size, float x) {
  return (unsigned char)(size | (__float_as_uint(x) >> 24 & 0x80u));
}

ORR_FN double bits_f64(u64 bits) { return __longlong_as_double((i64)bits); }

ORR_FN float get(float x) { return x; }
ORR_FN double get(double x) { return x; }
template <class T> ORR_FN i64 get(T x) { return x; }
ORR_FN float get(Bf16 x) { return __uint_as_float((unsigned)x.bits << 16); }
ORR_FN float get(F16 x) { return half_to_float(x.bits); }
ORR_FN float get(F8E4M3 x) {
  const unsigned size = x.bits & 0x7fu;
  const float nan = __uint_as_float(0x7fc00000u);
  return signed_as(size == 0x7fu ? nan : eight_to_float<20, 120>(size), x.bits);
}
ORR_FN float get(F8E5M2 x) {
  const unsigned size = x.bits & 0x7fu;
  const float other = __uint_as_float(size == 0x7cu ? 0x7f800000u : 0x7fc00000u);
  return signed_as(size >= 0x7cu ? other : eight_to_float<21, 112>(size), x.bits);
}

// Stores a result: put rounds it to the type, keep takes it as rounded.
template <class T, class A> ORR_FN void put(T& to, A x) { to = (T)x; }
ORR_FN void keep(Bf16& to, float x) { to.bits = (unsigned short)(__float_as_uint(x) >> 16); }
ORR_FN void put(Bf16& to, float x) { keep(to, round_to_bfloat(x)); }
ORR_FN void put(F16& to, float x) { to.bits = float_to_half(x); }
ORR_FN void put(F8E4M3& to, float x) {
  const float size = fabs(x);
  to.bits = eight_of(size <= 464.0f ? float_to_eight<20, 120>(size) : 0x7fu, x);
}
ORR_FN void put(F8E5M2& to, float x) {
  const float size = fabs(x);
  const unsigned other = size >= 61440.0f ? 0x7cu : 0x7eu;
  to.bits = eight_of(size < 61440.0f ? float_to_eight<21, 112>(size) : other, x);
}
template <class T, class A> ORR_FN void keep(T& to, A x) { put(to, x); }

template <class T, class A> ORR_FN A narrow(A x) {
  T stored;
  put(stored, x);
  return get(stored);
}
template <> ORR_FN float narrow<Bf16, float>(float x) { return round_to_bfloat(x); }

// V elements that lie side by side; what the hardware moves at once is 16 bytes.
template <class T, int V> struct alignas(V * sizeof(T) < 16 ? V * sizeof(T) : 16) Pack { T x[V]; };
template <class T, int V> ORR_FN auto get_of(const Pack<T, V>& pack, int v) { return get(pack.x[v]); }
template <int V> ORR_FN float get_of(const Pack<Bf16, V>& pack, int v) {
  const unsigned two = reinterpret_cast<const unsigned*>(&pack)[v / 2];
  return __uint_as_float(v % 2 ? two & 0xffff0000u : two << 16);
}

// step 0: one element for all.
template <class T, class A, int V> ORR_FN void load(const T* p, int step, A (&r)[V]) {
  if (step == 0 || V == 1) {
    const A x = get(*p);
    ORR_EACH r[v] = x;
  } else {
    const Pack<T, V> pack = *reinterpret_cast<const Pack<T, V>*>(p);
    ORR_EACH r[v] = get_of(pack, v);
  }
}
template <class T, class A, int V> ORR_FN void store(T* p, const A (&r)[V]) {
  Pack<T, V> pack;
  ORR_EACH keep(pack.x[v], r[v]);
  *reinterpret_cast<Pack<T, V>*>(p) = pack;
}

template <class To, class From> ORR_FN To cast(From x) { return (To)x; }
template <class A> ORR_FN i64 to_integer(A x) {
  return x >= A(-0x1p63) && x < A(0x1p63) ? (i64)x : (i64)(1ull << 63);
}
template <> ORR_FN i64 cast<i64, float>(float x) { return to_integer(x); }
template <> ORR_FN i64 cast<i64, double>(double x) { return to_integer(x); }
template <class From> ORR_FN i64 cast_i32(From x) {  // what does not fit becomes the smallest, too
  return (i64)(x > From(-0x1p31 - 1) && x < From(0x1p31) ? x : From(-0x1p31));
}

template <class A> ORR_FN A add(A a, A b) { return a + b; }
ORR_FN i64 add(i64 a, i64 b) { return (i64)((u64)a + (u64)b); }
template <class A> ORR_FN A subtract(A a, A b) { return a - b; }
ORR_FN i64 subtract(i64 a, i64 b) { return (i64)((u64)a - (u64)b); }
template <class A> ORR_FN A multiply(A a, A b) { return a * b; }
ORR_FN i64 multiply(i64 a, i64 b) { return (i64)((u64)a * (u64)b); }
template <class A> ORR_FN A divide(A a, A b) { return a / b; }
ORR_FN i64 divide(i64 a, i64 b) { return b == 0 ? 0 : b == -1 ? (i64)(0 - (u64)a) : a / b; }
ORR_FN i64 fma(i64 a, i64 b, i64 c) { return (i64)((u64)a * (u64)b + (u64)c); }
template <class A> ORR_FN A modulo(A a, A b) { return a - floor(a / b) * b; }
ORR_FN i64 modulo(i64 a, i64 b) {
  if (b == 0) return a;
  if (b == -1) return 0;
  const i64 r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
ORR_FN i64 pow(i64 a, i64 b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
  u64 result = 1, base = (u64)a;
  for (; b; b >>= 1, base *= base)
    if (b & 1) result *= base;
  return (i64)result;
}

// NaN wins.
template <class A> ORR_FN A smaller(A a, A b) { return b < a || b != b ? b : a; }
template <class A> ORR_FN A larger(A a, A b) { return b > a || b != b ? b : a; }

template <class A> ORR_FN A negative(A x) { return -x; }
ORR_FN i64 negative(i64 x) { return (i64)(0 - (u64)x); }
template <class A> ORR_FN A absolute(A x) { return fabs(x); }
ORR_FN i64 absolute(i64 x) { return x < 0 ? negative(x) : x; }
template <class A> ORR_FN A sign(A x) { return x > A(0) ? A(1) : x < A(0) ? A(-1) : x; }

template <class A> ORR_FN A reciprocal_root(A x) { return A(1) / sqrt(x); }
template <class A> ORR_FN A reciprocal(A x) { return A(1) / x; }

template <class A> ORR_FN A sigmoid(A x) { return A(1) / (A(1) + exp(-x)); }

// 0.5*(1+tanh(u)) is sigmoid(2u), and so without the cancellation of 1+tanh for negative u.
template <class A> ORR_FN A gelu_argument(A x) {
  return A(2 * 0.79788456080286535588) * (x + A(0.044715) * x * x * x);
}
template <class A> ORR_FN A gelu(A x) { return x * sigmoid(gelu_argument(x)); }
template <class A> ORR_FN A gelu_grad(A x) {
  x = larger(smaller(x, A(64)), A(-64));  // 0 or 1 there; no power of x may overflow
  const A u = gelu_argument(x), e = exp(-absolute(u)), d = A(1) / (A(1) + e);
  const A s = u >= A(0) ? d : e * d;  // sigmoid(u); its derivative is e*d*d
  return s + x * (e * d * d) * (A(2 * 0.79788456080286535588) * (A(1) + A(3 * 0.044715) * x * x));
}

// Functions whose results are rounded to 16 bits.
constexpr float log2_e = 1.44269504f, gelu_slope = 1.59576912f, gelu_cubic = 0.0713548163f;
ORR_FN float exp_brief(float x) { return exp2_brief(x * log2_e); }
ORR_FN float sigmoid_brief(float x) { return inverse_brief(1.0f + exp_brief(-x)); }
ORR_FN float gelu_factor(float x) {
  const float u = x * fma(x * x, -gelu_cubic * log2_e, -gelu_slope * log2_e);
  return inverse_brief(1.0f + exp2_brief(u));
}
ORR_FN float gelu_brief(float x) { return x * gelu_factor(x); }
ORR_FN float gelu_grad_brief(float x) {
  x = larger(smaller(x, 64.0f), -64.0f);
  const float s = gelu_factor(x);
  return fma(x * s * (1.0f - s), fma(x * x, 3 * gelu_cubic, gelu_slope), s);
}

template <class A> ORR_FN bool is_finite(A x) { return x - x == A(0); }
template <class A> ORR_FN A select(bool a, A b, A c) { return a ? b : c; }

// Philox 4x32-10 as ops.h fixes it: all four words of one counter, which serve four elements.
ORR_FN void philox(u64 seed, unsigned id, unsigned step, u64 quad, unsigned (&word)[4]) {
  unsigned c0 = (unsigned)quad, c1 = (unsigned)(quad >> 32), c2 = id, c3 = step;
  unsigned k0 = (unsigned)seed, k1 = (unsigned)(seed >> 32);
  _Pragma("unroll") for (int round = 0; round < 10; ++round) {
    const u64 p0 = (u64)0xD2511F53u * c0, p1 = (u64)0xCD9E8D57u * c2;
    c0 = (unsigned)(p1 >> 32) ^ c1 ^ k0, c2 = (unsigned)(p0 >> 32) ^ c3 ^ k1;
    c1 = (unsigned)p1, c3 = (unsigned)p0;
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  word[0] = c0, word[1] = c1, word[2] = c2, word[3] = c3;
}
template <class A, int V>
ORR_FN void uniform(i64 seed, i64 step, u64 element, unsigned id, A (&r)[V]) {
  unsigned word[4];
  philox((u64)seed, id, (unsigned)step, element >> 2, word);
  ORR_EACH {
    const unsigned lane = (unsigned)(element + v) & 3u;
    if (v > 0 && lane == 0u) philox((u64)seed, id, (unsigned)step, (element + v) >> 2, word);
    const unsigned low = lane & 1u ? word[1] : word[0], high = lane & 1u ? word[3] : word[2];
    r[v] = (A)((float)((lane & 2u ? high : low) >> 8) * (1.0f / 16777216.0f));
  }
}
)";

}  // namespace orr_cuda
