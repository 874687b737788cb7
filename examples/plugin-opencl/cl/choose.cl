// SPDX-License-Identifier: Apache-2.0
//
// Choosing from rows, one work-item per row. A NaN counts as the largest.
kernel void argmax(IN(x), IN(y), long n, long items) {
  if ((long)get_global_id(0) >= items) return;
  OF(T, x); OF(long, y);
  x += get_global_id(0) * n;
  long best = 0;
  for (long c = 1; c < n; ++c)
    if (x[c] > x[best] || (x[c] != x[c] && x[best] == x[best])) best = c;
  y[get_global_id(0)] = best;
}

#ifdef DRAW
kernel void categorical(IN(x), IN(seed), IN(step), IN(base), IN(y), long n, long id, long items) {
  if ((long)get_global_id(0) >= items) return;
  OF(T, x); OF(ulong, seed); OF(long, step); OF(ulong, base); OF(long, y);
  const long r = get_global_id(0);
  x += r * n;
  T top = -INFINITY;
  for (long c = 0; c < n && top == top; ++c)
    if (!(x[c] <= top)) top = x[c];
  double total = 0, running = 0;
  for (long c = 0; c < n; ++c) total += (double)exp(x[c] - top);
  const double target = (double)uniform_of(seed[0], (uint)id, (uint)step[0], base[0] + (ulong)r) * total;
  long chosen = 0;
  for (; chosen < n - 1; ++chosen) {
    running += (double)exp(x[chosen] - top);
    if (running > target) break;
  }
  y[r] = chosen;
}
#endif
