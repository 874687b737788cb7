// SPDX-License-Identifier: Apache-2.0
//
// cross_entropy and its gradient, one work-item per row. A label outside the classes is told.
bool is_bad(global long* record, long number, long row, long label, long n) {
  if (label >= 0 && label < n) return false;
  fault(record, number, row, label);
  return true;
}

kernel void cross_entropy(IN(x), IN(labels), IN(w), IN(loss), IN(lse), global long* record, long n, long number, long items) {
  if ((long)get_global_id(0) >= items) return;
  OF(T, x); OF(INDEX, labels); OF(T, w); OF(T, loss); OF(T, lse);
  const long r = get_global_id(0);
  x += r * n;
  T top = -INFINITY, sum;
  for (long c = 0; c < n && top == top; ++c)
    if (!(x[c] <= top)) top = x[c];
  SUM(sum, n, exp(x[i] - top))
  const T all = top + log(sum);
  lse[r] = all;
  loss[r] = 0;
  if (w[r] != 0 && !is_bad(record, number, r, labels[r], n)) loss[r] = w[r] * (all - x[labels[r]]);
}

// May be in place on the logits: an element is read before it is written.
kernel void cross_entropy_grad(IN(dloss), IN(x), IN(labels), IN(w), IN(lse), IN(dx), global long* record, long n, long number, long items) {
  if ((long)get_global_id(0) >= items) return;
  OF(T, dloss); OF(T, x); OF(INDEX, labels); OF(T, w); OF(T, lse); OF(T, dx);
  const long r = get_global_id(0);
  x += r * n, dx += r * n;
  const bool none = w[r] == 0 || is_bad(record, number, r, labels[r], n);
  const T scale = dloss[r] * w[r];
  for (long c = 0; c < n; ++c) dx[c] = none ? 0 : scale * (exp(x[c] - lse[r]) - (T)(c == labels[r]));
}
