// SPDX-License-Identifier: Apache-2.0
//
// Rows: softmax and layernorm with their gradients, one work-item per row; the gradients of a norm's
// parameters, one per column.
T row_max(global const T* x, long n) {
  T top = -INFINITY;
  for (long c = 0; c < n && top == top; ++c)
    if (!(x[c] <= top)) top = x[c];
  return top;
}

kernel void softmax(IN(x), IN(y), long n, long items) {
  if ((long)get_global_id(0) >= items) return;
  OF(T, x); OF(T, y);
  x += get_global_id(0) * n, y += get_global_id(0) * n;
  const T top = row_max(x, n);
  T sum;
  SUM(sum, n, exp(x[i] - top))
  for (long c = 0; c < n; ++c) y[c] = exp(x[c] - top) * (1 / sum);
}

kernel void softmax_grad(IN(dy), IN(y), IN(dx), long n, long items) {
  if ((long)get_global_id(0) >= items) return;
  OF(T, dy); OF(T, y); OF(T, dx);
  const long at = get_global_id(0) * n;
  dy += at, y += at, dx += at;
  T sum;
  SUM(sum, n, dy[i] * y[i])
  for (long c = 0; c < n; ++c) dx[c] = y[c] * (dy[c] - sum);
}

kernel void layernorm(IN(x), IN(w), IN(b), IN(y), IN(mean), IN(rstd), long n, long items) {
  if ((long)get_global_id(0) >= items) return;
  OF(T, x); OF(T, w); OF(T, b); OF(T, y); OF(T, mean); OF(T, rstd);
  const long r = get_global_id(0);
  x += r * n, y += r * n;
  T m, v;
  SUM(m, n, x[i])
  m *= 1 / (T)n;
  SUM(v, n, (x[i] - m) * (x[i] - m))
  const T s = 1 / sqrt(v * (1 / (T)n) + (T)EPS);
  for (long c = 0; c < n; ++c) y[c] = (x[c] - m) * s * w[c] + b[c];
  mean[r] = m, rstd[r] = s;
}

kernel void layernorm_grad(IN(dy), IN(x), IN(w), IN(mean), IN(rstd), IN(dx), long n, long items) {
  if ((long)get_global_id(0) >= items) return;
  OF(T, dy); OF(T, x); OF(T, w); OF(T, mean); OF(T, rstd); OF(T, dx);
  const long r = get_global_id(0);
  dy += r * n, x += r * n, dx += r * n;
  const T m = mean[r], s = rstd[r];
  T g, gx;
  SUM(g, n, dy[i] * w[i])
  SUM(gx, n, dy[i] * w[i] * ((x[i] - m) * s))
  g /= (T)n, gx /= (T)n;
  for (long c = 0; c < n; ++c) dx[c] = s * (dy[c] * w[c] - g - (x[c] - m) * s * gx);
}

T leaf_of_weight(global const T* dy, global const T* x, global const T* mean, global const T* rstd, long n, long begin, long rows) {
  T total;
  SUM(total, rows, dy[(begin + i) * n] * (x[(begin + i) * n] - mean[begin + i]) * rstd[begin + i])
  return total;
}
T leaf_of_bias(global const T* dy, long n, long begin, long rows) {
  T total;
  SUM(total, rows, dy[(begin + i) * n])
  return total;
}

kernel void norm_param_grad(IN(dy), IN(x), IN(mean), IN(rstd), IN(dw), IN(db), long n, long rows, long first, long count,
                            long node_at, long items) {
  if ((long)get_global_id(0) >= items) return;
  OF(T, dy); OF(T, x); OF(T, mean); OF(T, rstd); OF(T, dw); OF(T, db);
  const long c = get_global_id(0);
  dy += c, x += c;
  T sum;
#define OF_WEIGHT(l) leaf_of_weight(dy, x, mean, rstd, n, (l) * rows, rows)
#define OF_BIAS(l) leaf_of_bias(dy, n, (l) * rows, rows)
  TREE_SUM(sum, first, count, OF_WEIGHT)
  dw[node_at * n + c] = sum;
  TREE_SUM(sum, first, count, OF_BIAS)
  db[node_at * n + c] = sum;
}
