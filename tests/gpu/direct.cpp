// SPDX-License-Identifier: Apache-2.0
#include "direct.h"

#include <memory>
#include <set>
#include <string>

#include "conformance/kernel/buffer.h"
#include "conformance/kernel/cases.h"
#include "emulator/block.h"
#include "late.h"
#include "op.h"
#include "ops/window_product.h"

// clang-format off
#define ORR_EMULATED(X)                                                                           \
  X(argmax) X(attention) X(attention_grad) X(categorical) X(cross_entropy) X(cross_entropy_grad)  \
  X(fold) X(gather) X(gather_matmul) X(iota) X(layernorm) X(layernorm_grad) X(norm_grad)          \
  X(reduce) X(reduce_each) X(rmsnorm) X(rmsnorm_grad) X(scatter_add) X(scatter_matmul)            \
  X(slice_at) X(softmax) X(softmax_grad) X(topk) X(update_slice)
// clang-format on

namespace emulated {
namespace {

using namespace kernel_suite;
using orr_cuda::Family;

const Family* find(const std::string& kind) {
  if (kind == "matmul") return &orr_cuda::window_product_family;
  if (kind == "matmul_pointwise") return &orr_cuda::window_product_bias_family;
#define ORR_ADDRESS(kind) &orr_cuda::kind##_family,
  for (const Family* f : {ORR_EMULATED(ORR_ADDRESS)})
    if (kind == f->kind) return f;
  return nullptr;
}

// The reason why the family does not take the op, or "".
std::string refusal(const Family* family, const orr_op& op, orr_support& out) {
  if (!family) return "no such family";
  try {
    out.score = 100;
    family->supports(op, out);
    for (int i = 0; i < op.n_in; ++i)
      orr_cuda::require((out.strided_in >> i & 1) || orr_cuda::is_contiguous(op.in[i]), "strided");
    return "";
  } catch (const orr_cuda::Unsupported& e) {
    return e.what();
  }
}

CUdeviceptr address(const Buffer& b) {
  const orr_buffer view = b.view();
  return reinterpret_cast<CUdeviceptr>(orr_buffer_host(&view));
}

using Buffers = std::vector<std::unique_ptr<Buffer>>;

std::vector<CUdeviceptr> addresses(const Buffers& buffers) {
  std::vector<CUdeviceptr> all;
  for (const auto& b : buffers) all.push_back(address(*b));
  return all;
}

std::string launch(const Family& family, const orr_op& op, const std::vector<CUdeviceptr>& in,
                   const std::vector<CUdeviceptr>& out, RunResult& result) {
  const uint64_t bytes = family.measure ? family.measure(op) : 0;
  Buffer workspace(Device::host(), bytes);
  try {
    family.prepare(op)->launch(nullptr, {in.data(), out.data(), bytes ? address(workspace) : 0});
    if (!workspace.intact()) result.damage += "bytes beside the workspace were written; ";
    orr_cuda::throw_late();
    return "";
  } catch (const std::exception& e) {
    return e.what();
  }
}

}  // namespace

RunResult run(const Case& c, const std::vector<Values>& inputs, const RunOptions& options,
              uint64_t order) {
  const Family* family = find(c.kind);
  AbiOp op(c);
  RunResult result;
  result.unsupported = refusal(family, op.op, result.support);
  if (!result.unsupported.empty()) return result;
  Buffers in, out;
  for (size_t i = 0; i < c.in.size(); ++i) {
    in.push_back(std::make_unique<Buffer>(Device::host(), c.in[i], options.misalign, true));
    in.back()->write(inputs[i]);
  }
  for (const orr_tensor& t : c.out)
    out.push_back(std::make_unique<Buffer>(Device::host(), t, options.misalign, false));
  std::vector<CUdeviceptr> from = addresses(in), to = addresses(out);
  if (options.inplace) {
    const size_t shared = size_t(options.inplace - 1);
    std::swap(out[0], in[shared]);
    to[0] = from[shared];
  }
  emulator::set_order(order);
  result.error = launch(*family, op.op, from, to, result);
  for (size_t i = 0; i < in.size(); ++i)
    if (int(i) + 1 != options.inplace && in[i]->read() != inputs[i] && inputs[i] == inputs[i])
      result.damage += "input " + std::to_string(i) + " was written; ";
  for (size_t i = 0; i < out.size(); ++i) {
    if (!out[i]->intact())
      result.damage += "bytes beside output " + std::to_string(i) + " were written; ";
    result.values.push_back(out[i]->read());
    result.bits.push_back(out[i]->bits());
  }
  return result;
}

bool is_left_to_the_core(const Case& c) {
  if (c.kind != "reduce" && c.kind != "scatter_add" && c.kind != "scatter_matmul") return false;
  const int32_t summed = c.in[c.kind == "scatter_add"].dtype, stored = c.out[0].dtype;
  return summed != stored && (c.kind == "scatter_add" || stored != kernel_suite::wide(summed));
}

bool has_reference_bits(const Case& c) {
  static const std::set<std::string> inexact = {
      "softmax",        "cross_entropy", "cross_entropy_grad", "attention",
      "attention_grad", "gather_matmul", "scatter_matmul"};
  return !inexact.contains(c.kind);
}

bool is_generated(const Case& c) {
  return !c.instrs.empty() || c.kind == "norm_param_grad" ||
         (c.kind == "reduce" && c.in[0].dims[2] != 1);
}

}  // namespace emulated
