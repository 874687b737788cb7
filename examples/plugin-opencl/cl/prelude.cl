// SPDX-License-Identifier: Apache-2.0
//
// What all kernels share. Work-items come in groups: those from `items` on, the last parameter of every
// kernel, have nothing to do. A tensor is a base and a byte offset: `IN(x)` in a parameter list, then
// `OF(T, x)` in the body gives a pointer of that name.
#pragma OPENCL FP_CONTRACT OFF
#ifdef HAS_F64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

#define IN(name) global char *name##_base, ulong name##_at
#define OF(type, name) global type* name = (global type*)(name##_base + name##_at)

// Sums over leaves (ops.h, LEAVES): `to` = the tree over the leaves first .. first+count-1 of which each
// is `sum_of(leaf)`. Nodes of equal size that follow one another are added at once, what is left at the
// end from the right.
#define TREE_SUM(to, first, count, sum_of)                                     \
  {                                                                            \
    T tree_node[48];                                                           \
    int tree_top = 0;                                                          \
    for (long tree_i = 0; tree_i < (count); ++tree_i) {                        \
      tree_node[tree_top++] = sum_of((first) + tree_i);                        \
      for (long tree_m = tree_i + 1; (tree_m & 1) == 0; tree_m >>= 1, --tree_top) \
        tree_node[tree_top - 2] = tree_node[tree_top - 2] + tree_node[tree_top - 1]; \
    }                                                                          \
    for (; tree_top > 1; --tree_top)                                           \
      tree_node[tree_top - 2] = tree_node[tree_top - 2] + tree_node[tree_top - 1]; \
    to = tree_node[0];                                                         \
  }

// The sum of term(i) for i < n, in blocks so that long sums stay exact enough.
#define SUM(to, n, term)                                         \
  {                                                              \
    to = 0;                                                      \
    for (long sum_b = 0; sum_b < (n); sum_b += 64) {             \
      T sum_part = 0;                                            \
      const long sum_end = sum_b + 64 < (n) ? sum_b + 64 : (n);  \
      for (long i = sum_b; i < sum_end; ++i) sum_part += (term); \
      to += sum_part;                                            \
    }                                                            \
  }

// Tells the host of bad data: the first one is kept.
void fault(global long* record, long number, long row, long value) {
  if (atomic_cmpxchg((volatile global int*)record, 0, (int)number) != 0) return;
  record[1] = row;
  record[2] = value;
}

// The uniform random number of ops.h.
uint philox(ulong seed, uint id, uint step, ulong element) {
  uint c0 = (uint)(element >> 2), c1 = (uint)(element >> 34), c2 = id, c3 = step;
  uint k0 = (uint)seed, k1 = (uint)(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const ulong p0 = (ulong)0xD2511F53u * c0, p1 = (ulong)0xCD9E8D57u * c2;
    const uint n0 = (uint)(p1 >> 32) ^ c1 ^ k0, n2 = (uint)(p0 >> 32) ^ c3 ^ k1;
    c1 = (uint)p1, c3 = (uint)p0, c0 = n0, c2 = n2;
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  const uint word = (uint)(element & 3);
  return word == 0 ? c0 : word == 1 ? c1 : word == 2 ? c2 : c3;
}
float uniform_of(ulong seed, uint id, uint step, ulong element) {
  return (float)(philox(seed, id, step, element) >> 8) * (1.0f / 16777216.0f);
}
