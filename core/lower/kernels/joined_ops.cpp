// SPDX-License-Identifier: Apache-2.0
#include "lower/kernels/joined_ops.h"

#include "program/eight_bits.h"

#include <algorithm>

namespace orrery {
namespace {

// Whether the kernel takes all tensors of the form with the strides that they have.
bool suits(const KernelForm& form, const orr_support& support) {
  auto all = [](const std::vector<Strided>& x, uint32_t strided) {
    for (size_t i = 0; i < x.size(); ++i)
      if (!x[i].is_contiguous() && !(strided >> i & 1)) return false;
    return true;
  };
  return all(form.in, support.strided_in) && all(form.out, support.strided_out);
}

std::vector<Strided> contiguous(const Program& p, const std::vector<ValueId>& values) {
  std::vector<Strided> out;
  for (ValueId v : values) out.push_back(Strided::contiguous(p.type(v)));
  return out;
}

}  // namespace

std::vector<char> read_from_outside(const LocalProgram& local) {
  std::vector<char> found(local.program.values().size());
  const auto mark = [&](ValueId v) { found[static_cast<size_t>(v)] = true; };
  for (const Total& t : local.totals) mark(t.partial);
  for (auto& [state, next] : local.program.updates()) mark(next);
  for (auto& [name, id] : local.program.outputs()) mark(id);
  return found;
}

Op product_of(Op both) {
  both.kind = "matmul", both.expr = {};
  return both;
}

bool is_product(const Op& both, int32_t reg) {
  const orr_instr& i = both.expr.instrs[static_cast<size_t>(reg)];
  return i.fn == ORR_FN_INPUT && i.a == 0;
}

int32_t product_dtype(const Op& both) {
  int32_t reg = 0;
  while (!is_product(both, reg)) ++reg;
  return both.expr.instrs[static_cast<size_t>(reg)].dtype;
}

int32_t wider_factors(int32_t result) { return result == ORR_F16 ? ORR_F32 : ORR_BF16; }

bool is_better_wider(const KernelChoice& kernels, const Launch& product) {
  Launch wide = product;
  bool eight = false;
  for (size_t i = 0; i < 2; ++i)
    if (is_eight_bits(wide.in[i].dtype))
      wide.in[i].dtype = wider_factors(product.out[0].dtype), eight = true;
  if (!eight) return false;
  const int32_t score = kernels.best(product).score;
  return !score || kernels.best(wide).score > score;
}

std::vector<orr_tensor> abi_tensors(const std::vector<Strided>& layouts) {
  std::vector<orr_tensor> out;
  for (const Strided& x : layouts) out.push_back(x.abi());
  return out;
}

int32_t score_as_it_is(const KernelChoice& kernels, const Op& op, const std::vector<Strided>& in,
                       const std::vector<Strided>& out, Launch& launch) {
  const KernelForm form = op_def(op.kind).form(op, in, out);
  if (!form.copy.empty() || !form.out_ok) return 0;
  launch.op = op, launch.in = abi_tensors(form.in), launch.out = abi_tensors(form.out);
  const orr_support support = kernels.best(launch);
  return suits(form, support) ? support.score : 0;
}

bool taken_as_one(const KernelChoice& kernels, const Op& both, const std::vector<Strided>& in,
                  const std::vector<Strided>& out) {
  Launch one, product;
  const int32_t score = score_as_it_is(kernels, both, in, out, one);
  if (!score) return false;
  product.op = product_of(both);
  product.in = {one.in[0], one.in[1]}, product.out = {one.out[0]};
  product.out[0].dtype = product_dtype(both);
  return score >= kernels.best(product).score && !is_better_wider(kernels, product);
}

int32_t score_of(const KernelChoice& kernels, const Program& p, const Op& op) {
  const KernelForm form = op_def(op.kind).form(op, contiguous(p, op.in), contiguous(p, op.out));
  Launch launch;
  launch.op = op, launch.in = abi_tensors(form.in), launch.out = abi_tensors(form.out);
  return kernels.best(launch).score;
}

bool taken_as_joined(const KernelChoice& kernels, const Program& p, const Op& joined,
                     const std::vector<const Op*>& ops) {
  const int32_t found = score_of(kernels, p, joined);
  return found > 0 && std::all_of(ops.begin(), ops.end(),
                                  [&](const Op* op) { return found >= score_of(kernels, p, *op); });
}

void remove_ops(Program& p, const std::vector<char>& gone) {
  std::vector<Op> ops;
  std::swap(ops, p.mutable_ops());
  for (size_t i = 0; i < ops.size(); ++i)
    if (!gone[i]) p.append(std::move(ops[i]));
}

}  // namespace orrery
