// SPDX-License-Identifier: Apache-2.0
//
// One work-item per element of y: K in order, in the blocks of ops.h.
T leaf_product(global const T* a, long ak, global const T* b, long bk, long begin, long depth) {
  T total = 0;
  for (long block = 0; block < depth; block += 256) {
    const long end = block + 256 < depth ? block + 256 : depth;
    T sum = 0;
    for (long k = begin + block; k < begin + end; ++k) sum = fma(a[k * ak], b[k * bk], sum);
    total = block == 0 ? sum : total + sum;
  }
  return total;
}

kernel void matmul(IN(a), IN(b), IN(y), long m, long n, long depth, long ag, long am, long ak, long bg, long bk, long bn,
                   long first, long count, long node_at, long items) {
  if ((long)get_global_id(0) >= items) return;
  OF(T, a); OF(T, b); OF(T, y);
  const long id = get_global_id(0), j = id % n, i = id / n % m, g = id / n / m;
  a += g * ag + i * am;
  b += g * bg + j * bn;
  T sum;
#define LEAF(l) leaf_product(a, ak, b, bk, (l) * depth, depth)
  TREE_SUM(sum, first, count, LEAF)
  y[node_at * m * n + id] = sum;
}
