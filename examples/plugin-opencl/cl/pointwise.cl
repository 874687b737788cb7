// SPDX-License-Identifier: Apache-2.0
//
// What generated expressions call. Integers wrap; x/0 is 0.
long divide(long a, long b) { return b == 0 ? 0 : b == -1 ? (long)(0 - (ulong)a) : a / b; }
long modulo(long a, long b) {
  if (b == 0) return a;
  if (b == -1) return 0;
  const long r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

// The layout is the dims, then the strides of each tensor; `at` becomes the element of each that belongs
// to row-major number `id` of the output.
void locate(long* at, int tensors, constant long* layout, long rank, long id) {
  for (int t = 0; t < tensors; ++t) at[t] = 0;
  for (long d = rank - 1; d >= 0; --d) {
    const long c = id % layout[d];
    id /= layout[d];
    for (int t = 0; t < tensors; ++t) at[t] += c * layout[(t + 1) * rank + d];
  }
}

float gelu_float(float x) { return 0.5f * x * (1 + tanh(0.79788456080286535588f * (x + 0.044715f * x * x * x))); }
float gelu_grad_float(float x) {
  x = x > 64 ? 64 : x < -64 ? -64 : x; // 0 or 1 there; no power of x may overflow
  const float t = tanh(0.79788456080286535588f * (x + 0.044715f * x * x * x));
  return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * 0.79788456080286535588f * (1 + 0.134145f * x * x);
}

#ifdef HAS_F64
double gelu_double(double x) { return 0.5 * x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x))); }
double gelu_grad_double(double x) {
  x = x > 64 ? 64 : x < -64 ? -64 : x; // 0 or 1 there; no power of x may overflow
  const double t = tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * 0.79788456080286535588 * (1 + 0.134145 * x * x);
}
#define REAL double
#else
#define REAL float
#endif
// Truncates; what does not fit, and NaN, becomes the smallest.
long to_long(REAL x, REAL limit) { return (long)(x > -limit - 1 && x < limit ? x : -limit); }
