// SPDX-License-Identifier: Apache-2.0
//
// scatter_add: tokens are sorted by destination once per launch (a stable counting sort). Then one
// thread computes each destination row: per leaf in token order, then along the tree over leaves.
// With a base, only rows that have tokens are changed.
#include "integers.h"
#include "leaves.h"
#include "typed.h"

namespace orr_cpu::ORR_ISA {
namespace {

template <class T, class Y>
struct ScatterAdd : Kernel {
  using V = Vec<T>;
  explicit ScatterAdd(const orr_op& op)
      : get(op, 0),
        leaves(op),
        tokens(op.in[1].dims[0]),
        columns(op.in[1].dims[1]),
        rows(attr_int(op, "rows", 0)),
        based(op.n_in == 3) {}

  void launch(const orr_buffer* in, const orr_buffer* out, const orr_buffer* work) override {
    const void* index = host<void>(in[0]);
    check_indices("scatter_add", get, index, tokens, rows);
    int64_t *start = host<int64_t>(*work), *order = start + rows + 1;
    sort(index, start, order);
    const T* dy = host<T>(in[1]);
    Y* y = host<Y>(out[0]);
    if (based && host<Y>(in[2]) != y)
      __builtin_memcpy(y, host<Y>(in[2]), size_t(rows * columns) * sizeof(Y));
    parallel_ranges(rows, larger(1, 65536 / larger(1, columns)), [&](int64_t first, int64_t last) {
      for (int64_t v = first; v < last;) {
        int64_t end = v;
        while (end < last && start[end] == start[end + 1]) ++end;
        if (end > v && !based) clear(v, end, y);
        for (v = end; v < last && start[v] != start[v + 1]; ++v) row(v, start, order, dy, y);
      }
    });
  }

  // Rows [first, last) have no token. Most rows of an embedding have none.
  void clear(int64_t first, int64_t last, Y* y) const {
    int64_t nodes = orr_tree_nodes(leaves.lo, leaves.lo + leaves.n, leaves.total);
    for (int64_t k = 0; k < nodes; ++k)
      zero((char*)(y + (k * rows + first) * columns), size_t((last - first) * columns) * sizeof(Y));
  }

  // Past the caches, which big tables exceed: the memory is then not read before it is written.
  // Smaller ranges are likely to be read from the cache soon.
  static void zero(char* to, size_t bytes) {
    constexpr size_t line = 64, big = 64 << 10;
    if (bytes < big) {
      __builtin_memset(to, 0, bytes);
      return;
    }
    size_t head = -(uintptr_t)to % line, tail = (bytes - head) % line;
    __builtin_memset(to, 0, head);
    for (char* at = to + head; at < to + bytes - tail; at += line) stream((float*)at, splat(0.0f));
    __builtin_memset(to + bytes - tail, 0, tail);
    streams_are_seen();
  }

  // order[start[v] .. start[v + 1]) are the tokens of destination v, ascending.
  void sort(const void* index, int64_t* start, int64_t* order) const {
    __builtin_memset(start, 0, size_t(rows + 1) * sizeof(int64_t));
    for (int64_t i = 0; i < tokens; ++i) ++start[get(index, i)];
    int64_t sum = 0;
    for (int64_t v = 0; v <= rows; ++v) start[v] = sum += start[v];
    for (int64_t i = tokens - 1; i >= 0; --i) order[--start[get(index, i)]] = i;
  }

  // A leaf without a token of this row contributes +0, which is what an empty sum is.
  void row(int64_t v, const int64_t* start, const int64_t* order, const T* dy, Y* y) const {
    const int64_t first = start[v], last = start[v + 1], length = tokens / leaves.n;
    each_vector(0, columns, [&](int64_t c, auto n) {
      int64_t at = first;
      each_node<Y, V>(
          leaves,
          [&](int64_t leaf) {
            V sum = {};
            for (; at < last && order[at] < (leaf + 1) * length; ++at)
              sum = sum + load(dy + order[at] * columns + c, n);
            return sum;
          },
          [&](int64_t node, V x) {
            Y* to = y + (node * rows + v) * columns + c;
            store(to, based ? load(to, n) + x : x, n);
          });
    });
  }

  Integers get;
  Leaves leaves;
  int64_t tokens, columns, rows;
  bool based;
};

}  // namespace

Kernel* make_scatter_add(const orr_op& op) {
  return make_sum<ScatterAdd>(op.in[1].dtype, op.out[0].dtype, op);
}

}  // namespace orr_cpu::ORR_ISA
