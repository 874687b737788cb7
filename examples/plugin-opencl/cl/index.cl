// SPDX-License-Identifier: Apache-2.0
//
// Rows and slices at run-time indices, one work-item per element of the output.
kernel void gather(IN(table), IN(index), IN(y), global long* record, long rows, long columns, long number, long items) {
  if ((long)get_global_id(0) >= items) return;
  OF(T, table); OF(INDEX, index); OF(T, y);
  const long id = get_global_id(0), at = index[id / columns];
  if (at < 0 || at >= rows) fault(record, number, id / columns, at);
  else y[id] = table[at * columns + id % columns];
}

T leaf_of_row(global const INDEX* index, global const T* dy, long row, long columns, long begin, long n) {
  T sum = 0;
  for (long i = begin; i < begin + n; ++i)
    if (index[i] == row) sum += dy[i * columns];
  return sum;
}

// BASED: the sum is added to the base's rows that have tokens, the others are copied.
kernel void scatter_add(IN(index), IN(dy),
#ifdef BASED
                        IN(base),
#endif
                        IN(y), global long* record, long rows, long columns, long n, long tokens, long first, long count,
                        long node_at, long number, long items) {
  if ((long)get_global_id(0) >= items) return;
  OF(INDEX, index); OF(T, dy); OF(T, y);
  const long id = get_global_id(0), row = id / columns;
  bool met = false;
  for (long i = 0; i < tokens; ++i) {
    if (index[i] < 0 || index[i] >= rows) fault(record, number, i, index[i]);
    met |= index[i] == row;
  }
  dy += id % columns;
  T sum;
#define LEAF(l) leaf_of_row(index, dy, row, columns, (l) * n, n)
  TREE_SUM(sum, first, count, LEAF)
#ifdef BASED
  OF(T, base);
  y[id] = met ? base[id] + sum : base[id];
#else
  y[node_at * rows * columns + id] = sum;
#endif
}

kernel void slice_at(IN(x), IN(at), IN(y), global long* record, long dim, long n, long inner, long number, long items) {
  OF(T, x); OF(long, at); OF(T, y);
  const bool good = at[0] >= 0 && at[0] + n <= dim;
  if (!good) fault(record, number, 0, at[0]);
  if (!good || (long)get_global_id(0) >= items) return;
  const long id = get_global_id(0), i = id % inner, k = id / inner % n, o = id / inner / n;
  y[id] = x[(o * dim + at[0] + k) * inner + i];
}

// May be in place on x.
kernel void update_slice(IN(x), IN(u), IN(at), IN(y), global long* record, long dim, long n, long inner, long number, long items) {
  OF(T, x); OF(T, u); OF(long, at); OF(T, y);
  const bool good = at[0] >= 0 && at[0] + n <= dim;
  if (!good) fault(record, number, 0, at[0]);
  if (!good || (long)get_global_id(0) >= items) return;
  const long id = get_global_id(0), i = id % inner, k = id / inner % dim - at[0], o = id / inner / dim;
  y[id] = k >= 0 && k < n ? u[(o * n + k) * inner + i] : x[id];
}

kernel void iota(IN(y), long start, long items) {
  if ((long)get_global_id(0) >= items) return;
  OF(T, y);
  y[get_global_id(0)] = (T)(start + (long)get_global_id(0));
}
