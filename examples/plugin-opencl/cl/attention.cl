// SPDX-License-Identifier: Apache-2.0
//
// attention of q[B,H,T,D], k and v[B,H,S,D]: one work-item per query, or per key for the gradients of k
// and v; scores are computed again where they are needed. A head's row is D numbers, private to its
// work-item. A tensor's strides are three numbers of `s`: batch, head, row.
#define ROW(name, which, b, h, r) (name + (b) * s[3 * (which)] + (h) * s[3 * (which) + 1] + (r) * s[3 * (which) + 2])

// With dropout, the weight x of key i for query t, 0 or scaled.
#ifdef RATE
#define DRAWS , IN(seed), IN(step), IN(base)
#define OF_DRAWS OF(ulong, seed); OF(long, step); OF(ulong, base)
#define NUMBER(b, h, t, i) (base[0] + (ulong)((((b) * ALL + LO + (h)) * nt + (t)) * ns + (i)))
#define WEIGHT(x, b, h, t, i) \
  (uniform_of(seed[0], RNG, (uint)step[0], NUMBER(b, h, t, i)) < RATE ? 0 : (x) * (T)KEEP)
#else
#define DRAWS
#define OF_DRAWS
#define WEIGHT(x, b, h, t, i) (x)
#endif

T dot_of(global const T* a, global const T* b) {
  T sum = 0;
  for (int d = 0; d < D; ++d) sum += a[d] * b[d];
  return sum;
}

long seen_by(long t, long nt, long ns) {
  if (!CAUSAL) return ns;
  const long n = t + 1 + ns - nt;
  return n < 0 ? 0 : n > ns ? ns : n;
}

kernel void attention(IN(q), IN(k), IN(v) DRAWS, IN(o), IN(lse), constant long* s, long heads, long nt, long ns, long items) {
  if ((long)get_global_id(0) >= items) return;
  OF(T, q); OF(T, k); OF(T, v); OF(T, o); OF(LSE, lse); OF_DRAWS;
  const long id = get_global_id(0), t = id % nt, h = id / nt % heads, b = id / nt / heads;
  const long n = seen_by(t, nt, ns);
  global const T* query = ROW(q, 0, b, h, t);
  T top = -INFINITY, sum = 0, acc[D];
  for (int d = 0; d < D; ++d) acc[d] = 0;
  for (long i = 0; i < n; ++i) {
    const T score = dot_of(query, ROW(k, 1, b, h, i)) * (T)SCALE;
    if (!(score <= top)) top = score;
  }
  for (long i = 0; i < n; ++i) {
    global const T* value = ROW(v, 2, b, h, i);
    const T e = exp(dot_of(query, ROW(k, 1, b, h, i)) * (T)SCALE - top);
    sum += e;
    const T weight = WEIGHT(e, b, h, t, i);
    for (int d = 0; d < D; ++d) acc[d] += weight * value[d];
  }
  global T* out = ROW(o, 3, b, h, t);
  for (int d = 0; d < D; ++d) out[d] = n ? acc[d] * (1 / sum) : 0;
  lse[id] = (LSE)(top + log(sum));
}

// Tensors here: do, q, k, v, o, lse, then the gradient that is made.
T probability(global const T* query, global const T* key, T lse) { return exp(dot_of(query, key) * (T)SCALE - lse); }

kernel void of_queries(IN(dout), IN(q), IN(k), IN(v), IN(o), IN(lse) DRAWS, IN(dq), constant long* s, long heads, long nt, long ns, long items) {
  if ((long)get_global_id(0) >= items) return;
  OF(T, dout); OF(T, q); OF(T, k); OF(T, v); OF(T, o); OF(LSE, lse); OF(T, dq); OF_DRAWS;
  const long id = get_global_id(0), t = id % nt, h = id / nt % heads, b = id / nt / heads;
  const long n = seen_by(t, nt, ns);
  global const T *query = ROW(q, 1, b, h, t), *grad = ROW(dout, 0, b, h, t);
  const T delta = dot_of(grad, ROW(o, 4, b, h, t));
  T acc[D];
  for (int d = 0; d < D; ++d) acc[d] = 0;
  for (long i = 0; i < n; ++i) {
    global const T* key = ROW(k, 2, b, h, i);
    const T p = probability(query, key, (T)lse[id]);
    const T ds = p * (WEIGHT(dot_of(grad, ROW(v, 3, b, h, i)), b, h, t, i) - delta) * (T)SCALE;
    for (int d = 0; d < D; ++d) acc[d] += ds * key[d];
  }
  global T* out = ROW(dq, 5, b, h, t);
  for (int d = 0; d < D; ++d) out[d] = acc[d];
}

kernel void of_keys(IN(dout), IN(q), IN(k), IN(v), IN(o), IN(lse) DRAWS, IN(dk), IN(dv), constant long* s, long heads, long nt, long ns, long items) {
  if ((long)get_global_id(0) >= items) return;
  OF(T, dout); OF(T, q); OF(T, k); OF(T, v); OF(T, o); OF(LSE, lse); OF(T, dk); OF(T, dv); OF_DRAWS;
  const long id = get_global_id(0), r = id % ns, h = id / ns % heads, b = id / ns / heads;
  global const T *key = ROW(k, 2, b, h, r), *value = ROW(v, 3, b, h, r);
  T acc_k[D], acc_v[D];
  for (int d = 0; d < D; ++d) acc_k[d] = 0, acc_v[d] = 0;
  for (long t = 0; t < nt; ++t) {
    if (r >= seen_by(t, nt, ns)) continue;
    global const T *query = ROW(q, 1, b, h, t), *grad = ROW(dout, 0, b, h, t);
    const T p = probability(query, key, (T)lse[(b * heads + h) * nt + t]);
    const T ds = p * (WEIGHT(dot_of(grad, value), b, h, t, r) - dot_of(grad, ROW(o, 4, b, h, t))) * (T)SCALE;
    const T weight = WEIGHT(p, b, h, t, r);
    for (int d = 0; d < D; ++d) acc_k[d] += ds * query[d], acc_v[d] += weight * grad[d];
  }
  global T *out_k = ROW(dk, 6, b, h, r), *out_v = ROW(dv, 7, b, h, r);
  for (int d = 0; d < D; ++d) out_k[d] = acc_k[d], out_v[d] = acc_v[d];
}
