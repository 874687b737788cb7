// SPDX-License-Identifier: Apache-2.0
#include "pointwise_source.h"

#include <orrery/sdk/expression_checks.hpp>
#include <set>

#include "device/fold.h"
#include "expression.h"
#include "op.h"

namespace orr_cuda {
namespace {

std::string number(auto n) { return std::to_string(n); }

// i<d>: the index in each dim but where there is one, from the row-major index `e`. Constants
// divide cheaply; the outermost length is none, so that flat ops of every size share one source.
std::string indices(const Walk& walk) {
  if (walk.is_flat()) return "  const index_t i0 = e;\n";
  std::string text = "  index_t rest = e;\n";
  for (size_t d = walk.dims.size() - 1; d > 0; --d) {
    const std::string length = number(walk.dims[d]) + "u";
    text +=
        "  const index_t i" + number(d) + " = rest % " + length + ";\n  rest /= " + length + ";\n";
  }
  return text + "  const index_t i0 = rest;\n";
}

std::string offset(const Walk& walk, size_t tensor) {
  std::string sum;
  for (size_t d = 0; d < walk.dims.size(); ++d) {
    const int64_t s = walk.strides[tensor][d];
    if (s == 0) continue;
    sum += (sum.empty() ? "" : " + ") + ("i" + number(d));
    if (s != 1) sum += " * (index_t)" + number(s);
  }
  return sum.empty() ? "0" : sum;
}

std::string address(const Walk& walk, const std::string& type, size_t tensor, size_t place,
                    const std::string& name) {
  return "  " + type + "* const " + name + " = static_cast<" + type + "*>(a.p[" + number(place) +
         "]) + (" + offset(walk, tensor) + ");\n";
}

// What a piece does with its outputs: stores them, and folds the first `summed` into sums by a
// function of the prelude.
struct Outputs {
  uint64_t stored = ~uint64_t{0};  // a bit for each
  int summed = 0;
  const char* fold = "add";
};

std::string sum(int j) { return "sum" + number(j); }

// Of a fold, by its number in device/fold.h: the function of the prelude, and where it begins.
const char* fold_name(int32_t fn) {
  return fn == kFoldMax ? "larger" : fn == kFoldMin ? "smaller" : "add";
}
std::string fold_start(int32_t fn, int32_t dtype) {
  if (fn < kFoldMax) return "0";
  const bool max = fn == kFoldMax;
  if (!is_real(dtype)) return max ? "(i64)(1ull << 63)" : "(i64)~(1ull << 63)";
  return std::string(max ? "-" : "") + "bits_f64(0x7ff0000000000000ull)";
}

// The addresses of the inputs but `given`, the expression, and what is stored of it. The op's
// tensors are those of Args from `first` on.
std::string body(const orr_op& op, const Walk& walk, const Outputs& outputs, size_t first = 0,
                 int32_t given = -1) {
  std::set<int32_t> read;
  for (int k = 0; k < op.expr->n_instrs; ++k)
    if (op.expr->instrs[k].fn == ORR_FN_INPUT) read.insert(op.expr->instrs[k].a);
  std::string text;
  if (walk.elements != 1) text += indices(walk);
  for (int32_t i : read) {
    if (i == given) continue;
    const auto t = static_cast<size_t>(i);
    text += address(walk, std::string("const ") + memory_type(op.in[i].dtype), t, first + t,
                    "p" + number(i));
    text += "  constexpr int s" + number(i) + " = " + number(walk.strides[t].back() != 0) + ";\n";
  }
  text += expression_statements(op);
  for (int j = 0; j < outputs.summed; ++j)
    text += "  ORR_EACH " + sum(j) + "[v] = " + outputs.fold + "(" + sum(j) + "[v], r" +
            number(op.expr->outputs[j]) + "[v]);\n";
  for (int j = 0; j < op.n_out; ++j) {
    if (!(outputs.stored >> std::min(j, 63) & 1)) continue;
    const std::string name = "q" + number(j);
    const auto t = static_cast<size_t>(op.n_in + j);
    text += address(walk, memory_type(op.out[j].dtype), t, first + t, name);
    text += "  store(" + name + ", r" + number(op.expr->outputs[j]) + ");\n";
  }
  return text;
}

std::string piece(const orr_op& op, const Walk& walk, const Outputs& outputs) {
  std::string text =
      "template <int V>\nstatic __device__ void piece(const Args& a, const index_t e";
  for (int j = 0; j < outputs.summed; ++j)
    text += std::string(", ") + register_type(op.out[j].dtype) + " (&" + sum(j) + ")[V]";
  return text + ") {\n" + body(op, walk, outputs) + "}\n";
}

// What follows a sum, which is `given`.
std::string next_piece(const SumsNext& next, size_t first) {
  const orr_op& op = *next.op;
  const std::string i = number(next.sum), type = register_type(op.in[next.sum].dtype);
  return "template <class A, int V> struct Given { const A (&x)[V]; };\n"
         "template <class A, int V> ORR_FN void load(const Given<A, V>& p, int, A (&r)[V]) {\n"
         "  ORR_EACH r[v] = p.x[v];\n}\n"
         "template <int V>\nstatic __device__ void next(const Args& a, const index_t e, const " +
         type + " (&given)[V]) {\n  const Given<" + type + ", V> p" + i + "{given};\n" +
         "  constexpr int s" + i + " = 1;\n" + body(op, *next.walk, {}, first, next.sum) + "}\n";
}

std::string head(const char* name, const char* parameters) {
  return "extern \"C\" __global__ void __launch_bounds__(" + number(pointwise_block) + ") " + name +
         "(" + parameters + ") {\n";
}

// The elements of this thread, of `n`, in the `block`-th block. Only a single row has a tail.
std::string elements(const char* block, int vector, bool tail) {
  const std::string v = number(vector);
  const std::string text = std::string("  index_t e = (") + block + " * (index_t)" +
                           number(pointwise_block) + " + threadIdx.x) * " + v + ";\n";
  if (!tail) return text + "  if (e < n) piece<" + v + ">(a, e);\n}\n";
  return text + "  if (e + " + v + " <= n) return piece<" + v + ">(a, e);\n" +
         "  for (; e < n; ++e) piece<1>(a, e);\n}\n";
}

std::string entry(const char* name, int vector, bool tail) {
  return head(name, "const Args a, const index_t n") + elements("blockIdx.x", vector, tail);
}

// The head of a kernel that gets a table, whose rows begin with so many addresses. Row k is the
// last one that begins at this block or before it.
std::string table_head(const char* name, size_t addresses, const char* members) {
  return "struct Row { enum { addresses = " + number(addresses) + " }; Args a; " + members +
         " u64 first; };\n" +
         head(name, "const Row* __restrict__ const rows, const unsigned count") +
         R"(  unsigned k = 0;
  for (unsigned end = count; end - k > 1;) {
    const unsigned middle = (k + end) / 2;
    if (rows[middle].first > blockIdx.x) end = middle;
    else k = middle;
  }
  const Args& a = rows[k].a;
  const unsigned block = blockIdx.x - (unsigned)rows[k].first;
)";
}

std::string common(const orr_op& op, const Walk& walk, const Outputs& outputs = {},
                   const SumsNext* next = nullptr) {
  check_expression(op);
  if (next) check_expression(*next->op);
  const int tensors = op.n_in + (next ? next->op->n_in + next->op->n_out : op.n_out);
  require(tensors <= 256, "more than 256 tensors");
  std::string text = pointwise_prelude;
  const bool wide = walk.wide || (next && next->walk->wide);
  text += wide ? "typedef u64 index_t;\n" : "typedef unsigned index_t;\n";
  text += "struct Args { void* p[" + number(tensors) + "]; };\n";
  return text + piece(op, walk, outputs);
}

const char* const sums_text = R"(
struct SumRows { void* to[3]; u64 segments, length, entries, rounded, side, teams, repeats; };
template <class T, class A>
static __device__ void put_sum(void* to, u64 rounded, u64 at, A x) {
  if (rounded) put(static_cast<T*>(to)[at], x);
  else static_cast<A*>(to)[at] = x;
}
)";

// A thread adds the rows of one block, in some neighbouring columns.
const char* const apart_text = R"(
template <int V> static __device__ void sum_rows(const Args& a, const SumRows& s, unsigned part) {
  const u64 thread = (u64)part * threads + threadIdx.x;
  const u64 block = thread / (columns / V), segment = block / s.entries;
  if (segment >= s.segments) return;
  const u64 column = thread % (columns / V) * V, first = block % s.entries * rows;
  const u64 end = first + rows < s.length ? first + rows : s.length;
)";

// The same; a block of threads has all blocks of rows of its columns, and folds their sums in the
// tree. Row 0 of the threads gets the result. All threads reach each barrier.
const char* const together_text = R"(
template <int V, class A>
static __device__ void fold_rows(A (&sum)[V], unsigned row, const SumRows& s) {
  const unsigned side = (unsigned)s.side, entries = (unsigned)s.entries;
  const unsigned all = (unsigned)s.teams * side;
  A* const own = reinterpret_cast<A*>(block_memory()) + threadIdx.x;
  ORR_EACH own[v * all] = sum[v];
  for (unsigned step = 1; step < entries; step *= 2) {
    __syncthreads();
    if (row % (2 * step) == 0 && row + step < entries)
      ORR_EACH own[v * all] = fold_two(own[v * all], own[v * all + step * side]);
  }
  ORR_EACH sum[v] = own[v * all];
}
template <int V> static __device__ void sum_rows(const Args& a, const SumRows& s, unsigned part) {
  const unsigned side = (unsigned)s.side, row = threadIdx.x / side;
  const unsigned tiles = ((unsigned)columns / V + side - 1) / side;
  const u64 segment = part / tiles, first = row * rows;
  const u64 column = (part % tiles * side + threadIdx.x % side) * V;
  const u64 last = first + rows < s.length ? first + rows : s.length;
  const u64 end = column < columns && first < last ? last : first;
)";

}  // namespace

std::string pointwise_source(const orr_op& op, const Walk& walk) {
  std::string text = common(op, walk);
  if (walk.vector > 1) text += entry("pointwise_vector", walk.vector, walk.is_flat());
  return text + entry("pointwise_single", 1, false);
}

std::string pointwise_table_source(const orr_op& op, const Walk& walk) {
  return common(op, walk) + table_head("pointwise_many", walk.strides.size(), "u64 n;") +
         "  const index_t n = (index_t)rows[k].n;\n" + elements("block", walk.vector, true);
}

namespace {

// Behind fold_rows: every row of threads gets the sum, and computes what follows it for each so
// many rows of the output.
std::string next_text(const orr_op& op, const ColumnSumsText& sums, const std::string& put) {
  const std::string type = register_type(op.out[0].dtype);
  const bool narrow = sums.rounded && (sums.dtype == ORR_BF16 || sums.dtype == ORR_F16);
  return "  const " + type + "* const folded = reinterpret_cast<const " + type +
         "*>(block_memory()) + threadIdx.x % side;\n  __syncthreads();\n"
         "  ORR_EACH sum0[v] = folded[v * (unsigned)s.teams * side];\n"
         "  if (column >= columns) return;\n" +
         (sums.next->stored ? "  if (row == 0) {\n" + put + "  }\n" : "") +
         (narrow ? std::string("  ORR_EACH sum0[v] = narrow<") + memory_type(sums.dtype) +
                       ">(sum0[v]);\n"
                 : "") +
         "  _Pragma(\"unroll 4\")\n"
         "  for (unsigned k = row; k < (unsigned)s.repeats; k += (unsigned)s.teams)\n"
         "    next<V>(a, (index_t)((segment * s.repeats + k) * columns + column), sum0);\n";
}

// Their function sum_rows, for the `part`-th block of threads.
std::string sums_function(const orr_op& op, const Walk& walk, const ColumnSumsText& sums) {
  const std::string fold = fold_name(sums.fn);
  const Outputs outputs{sums.stored, sums.summed, fold.c_str()};
  std::string text = common(op, walk, outputs, sums.next);
  if (sums.next) text += next_piece(*sums.next, static_cast<size_t>(op.n_in));
  const std::string at = sums.together ? "segment" : "block";
  std::string declared, given, folded, put;
  for (int j = 0; j < sums.summed; ++j) {
    declared += std::string("  ") + register_type(op.out[j].dtype) + " " + sum(j) +
                "[V];\n  ORR_EACH " + sum(j) + "[v] = " + fold_start(sums.fn, sums.dtype) + ";\n";
    given += ", " + sum(j);
    folded += (j > 0 ? "  __syncthreads();\n" : "") + ("  fold_rows(" + sum(j)) + ", row, s);\n";
    put += std::string("  ORR_EACH put_sum<") + memory_type(sums.dtype) + ">(s.to[" + number(j) +
           "], s.rounded, " + at + " * columns + column + v, " + sum(j) + "[v]);\n";
  }
  if (sums.next)
    put = folded + next_text(op, sums, put);
  else if (sums.together)
    put = folded + "  if (row > 0 || column >= columns) return;\n" + put;
  text += "constexpr u64 columns = " + number(sums.columns) + ", rows = " + number(ORR_SUM_ROWS) +
          ";\n" +
          (sums.together ? "#define fold_two " + fold
                         : "constexpr unsigned threads = " + number(pointwise_block) + ";") +
          "\n" + sums_text + (sums.together ? together_text : apart_text) + declared +
          "  index_t e = (index_t)((segment * s.length + first) * columns + column);\n" +
          (sums.stored ? "" : "  _Pragma(\"unroll 8\")\n") +
          "  for (unsigned left = (unsigned)(end - first); left > 0; --left, e += columns)\n" +
          "    piece<V>(a, e" + given + ");\n" + put + "}\n";
  return text;
}

}  // namespace

std::string sums_source(const orr_op& op, const Walk& walk, const ColumnSumsText& sums) {
  std::string text = sums_function(op, walk, sums);
  const auto entry_of = [](const char* name, int vector) {
    return head(name, "const Args a, const SumRows s") + "  sum_rows<" + number(vector) +
           ">(a, s, blockIdx.x);\n}\n";
  };
  if (walk.vector > 1) text += entry_of("sums_vector", walk.vector);
  return text + entry_of("sums_single", 1);
}

std::string sums_table_source(const orr_op& op, const Walk& walk, const ColumnSumsText& sums) {
  return sums_function(op, walk, sums) +
         table_head("sums_many", walk.strides.size() + kFoldArrays, "SumRows s;") + "  sum_rows<" +
         number(walk.vector) + ">(a, rows[k].s, block);\n}\n";
}

}  // namespace orr_cuda
