/* SPDX-License-Identifier: Apache-2.0
 *
 * The ops that kernels implement, with their arithmetic: the order of every sum, and where results
 * are rounded. `kernels/reference` implements this header with plain loops.
 *
 * Notation: [R,C] shapes; x[i] input i. Every accumulation of f32, bf16 and f16 is in f32, of f64
 * in f64, of integers in i64; a bf16 or f16 result is rounded once, to nearest even, when stored.
 * Contraction (fma) happens only where written. Subnormals are kept (MXCSR default).
 *
 * LEAVES. The batch is cut into `leaf_total` equal leaves; an op that sums over the batch is called
 * for the leaves [leaf_lo, leaf_lo+leaf_n) (attributes, absent = 0, 1, 1): the summed dim is cut
 * into leaf_n equal consecutive segments, each is summed alone in the op's own order, and the
 * segments are added in the binary tree over the leaf index: node(l, i) = node(l-1, 2i) + node(l-1,
 * 2i+1); a node whose right child lies beyond leaf_total is its left child, unchanged. The op
 * writes every maximal node that the range completes (orr_tree_node below lists them in order), one
 * after another: an output that is declared [..] is stored as [nodes, ..]. With one leaf that is
 * just the sum. Rounding: every node of a 16-bit output is rounded to it.
 *
 * ANOTHER DTYPE. The result of matmul, of scatter_matmul, of sums by reduce and reduce_each, of
 * norm_param_grad and of scatter_add may have another real dtype than what is summed: f32 if that
 * is bf16 or f16, or one of these if it is f32. The sum is the same; only the result is rounded. A
 * kernel need not support this: for an f32 result the core then casts the inputs to f32.
 *
 * EIGHT BITS. F8_E4M3 and F8_E5M2 are converted to and from by pointwise, factors of matmul, and
 * moved; no other op takes them. A conversion rounds to nearest even; what is then beyond the
 * largest value is NaN in F8_E4M3 and an infinity in F8_E5M2. The factors of a matmul may be one of
 * each; its result is f32, bf16 or f16, and the sum is that of the factors as bf16, which has all
 * of their values. A kernel need not support this: the core then casts the inputs to bf16.
 *
 * SUMS over K elements that are neighbours in memory ("row sums"): blocks of ORR_SUM_BLOCK
 * elements; in a block, lane j of 16 adds elements j, j+16, ... in order starting from +0 (missing
 * elements add nothing); then lane[j] += lane[j+8] for j < 8, then 4, 2, 1; block sums are added in
 * the same binary tree over the block index (a missing right child passes the left on). SUMS over a
 * dim that is not the last ("column sums"): blocks of ORR_SUM_ROWS rows, each added in row order
 * starting from +0, then the same tree over the block index.
 *
 * kind              inputs -> outputs, attributes
 * ---------------   ------------------------------------------------------------------------------
 * pointwise         any -> any; all tensors have the same rank and, up to stride 0, the same dims.
 *                   The expression is evaluated for each element. Elements of one input are read
 *                   before any output element at the same position is written, so an output may be
 *                   any input's buffer of equal layout.
 * matmul            a[G,M,K], b[G,K,N] -> y[G,M,N]; strides carry transposition and, with 0 on G,
 *                   sharing; one of the last two strides of a and of b is 1. M and K of a, and K
 *                   and N of b, may each be several dims, the last of which has stride 1: windows
 *                   that overlap in memory. y says which dims are which. Where a factor in such an
 *                   operand is 0, the product may be left out. A kernel need not take more than
 *                   three dims: the core then copies the operand. Optional attribute leaves: over
 *                   K; nodes are [G,M,N] each, with G = 1 as far apart as y's first stride. Both
 *                   with G > 1 only for kernels that say ORR_TAKES_GROUPED_SUMS (kernel.h).
 *                   Order: per leaf, K in blocks of ORR_MATMUL_K; in a block acc = fma(a,b,acc) in
 *                   order from +0; blocks are added in order to the first. From bf16 to bf16 a
 *                   block goes in pairs, the second element of a pair before the first (or 0), and
 *                   a factor or acc that is subnormal counts as 0 of its sign (AVX512-BF16's
 *                   vdpbf16ps). Text "numerics" = "fast": any order is allowed, f32 factors may be
 *                   rounded to 10 bits of fraction (TF32), and sums of factors of windows that
 *                   overlap may be multiplied (Winograd). Kernels that refuse it are asked without.
 *                   Int "padded" has bit 0 for a, 1 for b, 2 for y, if the rows of that tensor in
 *                   memory, the last one too, end in padding that the kernel may write: nothing
 *                   reads it as data.
 * matmul_pointwise  a[G,M,K], b[G,K,N], x... -> y...: a matmul and the pointwise op that reads it.
 *                   The expression's input 0 is the product, rounded to the dtype of the
 *                   instruction that reads it; inputs 1, 2, ... are x..., which like y... are
 *                   [G,M,N] up to stride 0. No leaves; a and b as in matmul. The bits are those of
 *                   the two ops. With "numerics" = "fast" the product need not be rounded, and
 *                   functions of the expression may have the rounding of the kernel's library.
 *                   If no kernel has as high a score for it as for the matmul, two ops are run.
 * pointwise_next    x... (, w...) -> y..., z...: a pointwise op and one that reads its output 0 as
 *                   rows [R,C] of its last dim. Text "next" says which: "reduce", which is "sum"
 *                   over the rows (C > 1; z is s[C], or s[O,C]: of each of O equal parts of the
 *                   rows alone, without leaves), "layernorm" or "rmsnorm". w... and z... are its
 *                   other inputs and its outputs, and like y... contiguous. Int "unread" has a bit
 *                   for each output of the expression that nobody reads, and that has no memory.
 *                   Attributes and bits are those of the two ops. Several ops: the core asks for a
 *                   group (kernel.h, claim), and orrery/sdk/joined.hpp makes this op of it.
 * reduce            x[O,K,I] -> y[O,I]; text "fn": "sum", "sumsq" (sum of x*x), "max",
 *                   "min". Leaves over K (sum, O = 1). I = 1: row sums, else column sums. NaN wins
 *                   in max and min. O = 1, I = 1, K in the tens of millions is common.
 * reduce_each       x[K], ... -> y, ...: the reduce of each input alone, over all its elements,
 *                   to a scalar; text "fn": "sum" or "sumsq". Several ops: as pointwise_next.
 * argmax            x[R,C] -> i64 y[R]: the first of the largest.
 * topk              x[R,C] -> values[R,k], i64 indices[R,k]; int "k"; descending, ties by index.
 * softmax           x[R,C] -> y[R,C]: e = exp(x - max), y = e * (1 / row sum of e).
 * softmax_grad      dy[R,C], y[R,C] -> dx[R,C] = y * (dy - row sum of dy*y).
 * layernorm         x[R,C], w[C], b[C] -> y[R,C], mean[R], rstd[R]; real "eps". mean and variance
 *                   are row sums times 1/C (variance of x - mean); y = (x-mean)*rstd*w + b.
 *                   mean and rstd are f32 (f64 for f64).
 * layernorm_grad    dy[R,C], x[R,C], w[C], mean[R], rstd[R] -> dx[R,C]; with xh = (x-mean)*rstd,
 *                   g = dy*w: dx = rstd * (g - sum(g)/C - xh * (sum(g*xh)/C)), row sums.
 * rmsnorm           x[R,C], w[C] -> y[R,C], rstd[R]; real "eps". rstd = 1/sqrt(row sum(x*x)/C +
 *                   eps).
 * rmsnorm_grad      dy, x, w, rstd -> dx = rstd * (dy*w - xh * (row sum(dy*w*xh)/C)).
 * norm_param_grad   dy[R,C], x[R,C], mean[R], rstd[R] -> dw[C], db[C]; column sums of
 *                   dy*(x-mean)*rstd and of dy. Leaves over R. With int "rms" = 1 the inputs are
 *                   dy, x, rstd, the only output is dw, and mean is 0.
 * norm_grad         dy, x, w, mean, rstd (, r[R,C]) -> dx, dw, db (, s[C]): layernorm_grad and
 *                   norm_param_grad of the same tensors at once, with their attributes and bits.
 *                   With r the first output is dx + r, where dx is rounded before. s is the reduce
 *                   "sum" of the first output over its rows. With int "rms" = 1 there is no mean
 *                   and no db, and the first op is rmsnorm_grad. Several ops: as pointwise_next.
 * attention         q[B,H,T,D], k[B,G,S,D], v[B,G,S,D] -> o[B,H,T,D], f32 lse[B,H,T]; real "scale",
 *                   int "causal" (key s is seen by query t iff s - S <= t - T). Strides are free
 *                   but for the last, which is 1. T x S is never stored. lse = max + log(sum exp).
 *                   G divides H: head h of the queries reads head h / (H/G) of keys and values. If
 *                   G < H (grouped queries), or if there is an int "window" = W > 0 (seen are only
 *                   keys with s - S > t - T - W and, without causal, s - S < t - T + W), only
 *                   kernels that say that they take it are asked (kernel.h, ORR_TAKES_...).
 *                   With three more inputs, seed, step and base (i64 scalars), real "dropout" and
 *                   int "rng_id": weights whose uniform number is below dropout (in f32) count as 0
 *                   in the sum of values, the others are scaled by 1/(1-dropout); lse is of all.
 *                   The number is that of element base + ((b*N + n + h)*T + t)*S + s, with ints
 *                   "head_total" = N and "head_lo" = n (absent = H, 0) if ranks share the heads.
 *                   With one input more behind v (so 4 or 7), bias[B,H,T,S] of q's dtype, whose
 *                   strides may be 0 but for the last, which is 1: it is added to the scaled
 *                   scores. Where it is -inf the key is not seen. A query that sees no key has o =
 *                   0 and lse = -inf, and its gradients are 0 (PyTorch gives NaN).
 * attention_grad    do, q, k, v, o, lse (, bias) (, seed, step, base) -> dq, dk, dv (, dbias); same
 *                   attributes; no atomics, fixed order. dk and dv of a head that several heads of
 *                   queries read are sums over these in order, rounded once. With int "bias_grad"
 *                   = 1 there is dbias[B,H,T,S], that of every score: T x S is then stored.
 * cross_entropy     logits[R,V], labels[R] i32/i64, w[R] f32 -> loss[R] f32, lse[R] f32:
 *                   loss = w * (lse - logits[label]); where w = 0 loss is 0 and the label is
 *                   ignored; a label outside [0,V) is an error naming row and label.
 *                   lse = max + log(row sum of exp(x - max)). With f64 logits, loss, lse and w are
 *                   f64; with bf16 and f16 ones they stay f32, and nothing is rounded in between.
 *                   The first stride of logits is free, the last is 1. With a fourth input
 *                   dloss[R] there is a third output, that of cross_entropy_grad, which may be in
 *                   place on logits of equal strides. If no kernel has as high a score for both at
 *                   once as for each, two ops are run.
 * cross_entropy_grad  dloss[R], logits, labels, w, lse -> dlogits[R,V] =
 *                   dloss*w * (exp(x - lse) - [c = label]), in the dtype of the logits; may be in
 *                   place on logits (input 1) of equal strides. The first stride of logits and of
 *                   dlogits is free, the last is 1.
 * gather            table[V,C], index[N] i32/i64 -> y[N,C]; an index outside [0,V) is an error.
 * scatter_add       index[N], dy[N,C] -> y[V,C]; int "rows" = V. Per leaf, rows are added in token
 *                   order from +0. Leaves over N. With a third input base[V,C] the op has all
 *                   leaves, and their sum is added to base; rows without tokens are those of base;
 *                   may be in place.
 * gather_matmul     x[N,D], w[E,D,F], index[N] i32/i64 -> y[N,F]: row i of x times matrix index[i]
 *                   of w, or +0 where the index is -1; any other outside [0,E) is an error. The
 *                   strides of w are free, but one of the last two is 1. A row is summed as by a
 *                   matmul, so that its bits do not depend on the others. "numerics": as of matmul.
 * scatter_matmul    x[N,D], dy[N,F], index[N] -> dw[E,D,F]; int "matrices" = E. Per leaf, matrix e
 *                   is the matmul of x' transposed and dy', its rows of index e in their order,
 *                   which are its K; +0 if there are none. Indices and "numerics" as above. Leaves
 *                   over N.
 * slice_at          x[O,D,I], at (i64 scalar) -> y[O,n,I], n = out dim: x[:, at:at+n, :]; out of
 *                   range is an error.
 * update_slice      x[O,D,I], u[O,n,I], at -> y[O,D,I]: x with u written at `at`; may be in place
 *                   on x.
 * fold              x[B,O..,K..,C] -> y[B,L..,C]; O, K and L are one to three dims each, ints
 *                   "stride", "dilation" one number for each: y[b,l,c] is the sum of x[b,o,k,c]
 *                   over all o and k with l = o * stride + k * dilation in each dim, added in the
 *                   order of o, its last dim fastest, from +0. Every window fits into L.
 * iota              -> y[N]: 0, 1, ...; int "start".
 * categorical       logits[R,C], seed, step, base (i64 scalars) -> i64 y[R]; int "rng_id".
 *                   u = the uniform number of element base + row; the first c whose running sum of
 *                   exp(x - max), added in order in f64, exceeds u * total.
 */
#ifndef ORRERY_OPS_H
#define ORRERY_OPS_H

#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Marks functions that nvcc also compiles for the device. */
#ifdef __CUDACC__
#define ORR_ANYWHERE static __host__ __device__ inline
#else
#define ORR_ANYWHERE static inline
#endif

enum { ORR_SUM_BLOCK = 1024, ORR_SUM_ROWS = 64, ORR_MATMUL_K = 256 };

/* Functions of a pointwise instruction. Values are part of the ABI; new ones are appended. f32 and
 * 16-bit instructions compute in f32 (16-bit results are rounded at once), f64 in f64, integers in
 * i64 (i32 wraps when stored), comparisons and logic give BOOL. Operand registers have the dtype of
 * the result unless stated. Reals that an i32 or i64 does not hold, and NaN, cast to the least. */
enum {
  ORR_FN_INPUT = 0, /* input number a, at this element; dtype = the input's */
  ORR_FN_CONST = 1, /* imm */
  ORR_FN_CAST = 2,  /* register a of any dtype; real to integer truncates; to BOOL is != 0 */
  ORR_FN_RAND = 3,  /* uniform in [0,1): a = seed, b = step, c = base (i64 registers that come from
                        scalars), imm = RNG id; element = base + row-major index in the output */
  ORR_FN_ADD = 10,
  ORR_FN_SUB,
  ORR_FN_MUL,
  ORR_FN_DIV,
  ORR_FN_MIN,
  ORR_FN_MAX,
  ORR_FN_POW,
  ORR_FN_FMA, /* a*b + c, one rounding */
  ORR_FN_MOD, /* a - floor(a/b)*b */
  ORR_FN_NEG = 30,
  ORR_FN_ABS,
  ORR_FN_SIGN,
  ORR_FN_SQRT,
  ORR_FN_RSQRT,
  ORR_FN_RECIP,
  ORR_FN_EXP,
  ORR_FN_LOG,
  ORR_FN_TANH,
  ORR_FN_SIGMOID,
  ORR_FN_ERF,
  ORR_FN_SIN,
  ORR_FN_COS,
  ORR_FN_FLOOR,
  ORR_FN_CEIL,
  ORR_FN_ROUND,     /* to nearest, ties to even */
  ORR_FN_GELU,      /* 0.5*x*(1+tanh(sqrt(2/pi)*(x+0.044715*x^3))) */
  ORR_FN_GELU_GRAD, /* its derivative at a */
  ORR_FN_EQ = 60,
  ORR_FN_NE,
  ORR_FN_LT,
  ORR_FN_LE,
  ORR_FN_GT,
  ORR_FN_GE, /* operands of equal dtype */
  ORR_FN_AND,
  ORR_FN_OR,
  ORR_FN_NOT,      /* BOOL */
  ORR_FN_ISFINITE, /* a real -> BOOL */
  ORR_FN_SELECT    /* BOOL a ? b : c */
};

/* The uniform random number of element e: Philox 4x32-10 (Salmon et al., SC'11), key = seed (low,
 * high word), counter = (e/4 low, e/4 high, id, step), word e%4 of the result; the number is its
 * upper 24 bits times 2^-24. */
ORR_ANYWHERE void orr_philox_words(uint64_t seed, uint32_t id, uint32_t step, uint64_t quad,
                                   uint32_t word[4]) { /* of the elements 4*quad, ... */
  uint32_t c0 = (uint32_t)quad, c1 = (uint32_t)(quad >> 32), c2 = id, c3 = step;
  uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
    uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c1 = (uint32_t)p1;
    c3 = (uint32_t)p0;
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  word[0] = c0;
  word[1] = c1;
  word[2] = c2;
  word[3] = c3;
}
ORR_ANYWHERE uint32_t orr_philox(uint64_t seed, uint32_t id, uint32_t step, uint64_t element) {
  uint32_t word[4];
  orr_philox_words(seed, id, step, element >> 2, word);
  switch (element & 3) {
    case 0: return word[0];
    case 1: return word[1];
    case 2: return word[2];
    default: return word[3];
  }
}
ORR_ANYWHERE float orr_uniform_of(uint32_t word) {
  return (float)(word >> 8) * (1.0f / 16777216.0f);
}
ORR_ANYWHERE float orr_uniform(uint64_t seed, uint32_t id, uint32_t step, uint64_t element) {
  return orr_uniform_of(orr_philox(seed, id, step, element));
}

/* Enumerates the tree nodes that the leaves [lo, hi) of `total` complete without others, in order.
 * Call it with *lo = first leaf: it returns the number of leaves of the next node and moves *lo
 * past it; 0 at the end. A range that ends at `total` counts as if it went on to the next power of
 * two with leaves that do not exist. */
static inline int64_t orr_tree_node(int64_t* lo, int64_t hi, int64_t total) {
  int64_t end = hi, width = 1, first = *lo, n;
  if (first >= hi) return 0;
  if (hi >= total) {
    end = 1;
    while (end < total) end <<= 1;
  }
  while ((first == 0 || (first & (2 * width - 1)) == 0) && first + 2 * width <= end) width <<= 1;
  n = (first + width < hi ? first + width : hi) - first;
  *lo = first + n;
  return n;
}
static inline int64_t orr_tree_nodes(int64_t lo, int64_t hi, int64_t total) {
  int64_t n = 0;
  while (orr_tree_node(&lo, hi, total)) ++n;
  return n;
}

#ifdef __cplusplus
}
#endif
#endif
