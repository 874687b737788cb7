// SPDX-License-Identifier: Apache-2.0
//
// reduce: x[O,K,I] -> y[O,I], one work-item per element of y. With SQUARES squares are added.
#ifdef SQUARES
#define TERM(v) ((v) * (v))
#else
#define TERM(v) (v)
#endif

T leaf_sum(global const T* x, long inner, long begin, long length) {
  T total;
  x += begin * inner;
  SUM(total, length, TERM(x[i * inner]))
  return total;
}

kernel void sum(IN(x), IN(y), long inner, long outer, long length, long first, long count, long node_at, long all, long items) {
  if ((long)get_global_id(0) >= items) return;
  OF(T, x); OF(T, y);
  const long id = get_global_id(0);
  x += id / inner * outer + id % inner;
  T total;
#define LEAF(l) leaf_sum(x, inner, (l) * length, length)
  TREE_SUM(total, first, count, LEAF)
  y[node_at * all + id] = total;
}

// A NaN once seen stays.
kernel void extreme(IN(x), IN(y), long inner, long length, long largest, long items) {
  if ((long)get_global_id(0) >= items) return;
  OF(T, x); OF(T, y);
  const long id = get_global_id(0);
  x += id / inner * length * inner + id % inner;
  T best = x[0];
  for (long k = 1; k < length && best == best; ++k) {
    const T v = x[k * inner];
    if (v != v || (largest ? v > best : v < best)) best = v;
  }
  y[id] = best;
}
