// SPDX-License-Identifier: Apache-2.0
#include "pointwise_source.h"

#include <set>

#include "expression.h"
#include "op.h"

namespace orr_cuda {
namespace {

std::string number(int64_t n) { return std::to_string(n); }

// i<d>: the index in each dim but where there is one, from the row-major index `e`. Constants
// divide cheaply; the outermost length is none, so that flat ops of every size share one source.
std::string indices(const Walk& walk) {
  if (walk.is_flat()) return "  const index_t i0 = e;\n";
  std::string text = "  index_t rest = e;\n";
  for (size_t d = walk.dims.size() - 1; d > 0; --d) {
    const std::string length = number(walk.dims[d]) + "u";
    text += "  const index_t i" + number(static_cast<int64_t>(d)) + " = rest % " + length +
            ";\n  rest /= " + length + ";\n";
  }
  return text + "  const index_t i0 = rest;\n";
}

std::string offset(const Walk& walk, size_t tensor) {
  std::string sum;
  for (size_t d = 0; d < walk.dims.size(); ++d) {
    const int64_t s = walk.strides[tensor][d];
    if (s == 0) continue;
    sum += (sum.empty() ? "" : " + ") + ("i" + number(static_cast<int64_t>(d)));
    if (s != 1) sum += " * (index_t)" + number(s);
  }
  return sum.empty() ? "0" : sum;
}

std::string address(const Walk& walk, const orr_tensor& t, size_t tensor, const char* name,
                    const char* qualifier) {
  const std::string type = std::string(qualifier) + memory_type(t.dtype);
  return "  " + type + "* const " + name + " = static_cast<" + type + "*>(a.p[" +
         number(static_cast<int64_t>(tensor)) + "]) + (" + offset(walk, tensor) + ");\n";
}

std::string piece(const orr_op& op, const Walk& walk) {
  std::set<int32_t> read;
  for (int k = 0; k < op.expr->n_instrs; ++k)
    if (op.expr->instrs[k].fn == ORR_FN_INPUT) read.insert(op.expr->instrs[k].a);
  const std::string statements = expression_statements(op);
  std::string text =
      "template <int V>\nstatic __device__ void piece(const Args& a, const index_t e) {\n";
  if (walk.elements > 1) text += indices(walk);
  for (int32_t i : read) {
    const auto t = static_cast<size_t>(i);
    text += address(walk, op.in[i], t, ("p" + number(i)).c_str(), "const ");
    text += "  constexpr int s" + number(i) + " = " + number(walk.strides[t].back() != 0) + ";\n";
  }
  text += statements;
  for (int j = 0; j < op.n_out; ++j) {
    const std::string name = "q" + number(j);
    text += address(walk, op.out[j], static_cast<size_t>(op.n_in + j), name.c_str(), "");
    text += "  store(" + name + ", r" + number(op.expr->outputs[j]) + ");\n";
  }
  return text + "}\n";
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

// Row k is the last one that begins at this block or before it.
std::string table_entry(int vector) {
  return "struct Row { Args a; u64 n, first; };\n" +
         head("pointwise_many", "const Row* __restrict__ const rows, const unsigned count") +
         R"(  unsigned k = 0;
  for (unsigned end = count; end - k > 1;) {
    const unsigned middle = (k + end) / 2;
    if (rows[middle].first > blockIdx.x) end = middle;
    else k = middle;
  }
  const Args& a = rows[k].a;
  const index_t n = (index_t)rows[k].n;
  const unsigned block = blockIdx.x - (unsigned)rows[k].first;
)" + elements("block", vector, true);
}

std::string common(const orr_op& op, const Walk& walk) {
  require(op.n_in + op.n_out <= 256, "more than 256 tensors");
  require(op.expr != nullptr, "a pointwise op needs an expression");
  std::string text = pointwise_prelude;
  text += walk.wide ? "typedef u64 index_t;\n" : "typedef unsigned index_t;\n";
  text += "struct Args { void* p[" + number(op.n_in + op.n_out) + "]; };\n";
  return text + piece(op, walk);
}

}  // namespace

std::string pointwise_source(const orr_op& op, const Walk& walk) {
  std::string text = common(op, walk);
  if (walk.vector > 1) text += entry("pointwise_vector", walk.vector, walk.is_flat());
  return text + entry("pointwise_single", 1, false);
}

std::string pointwise_table_source(const orr_op& op, const Walk& walk) {
  return common(op, walk) + table_entry(walk.vector);
}

}  // namespace orr_cuda
