// SPDX-License-Identifier: Apache-2.0
//
// Makes one op (ops.h, matmul_pointwise) of a matmul and the pointwise op that reads its result, in
// the place of the pointwise op, if a kernel takes it: such a kernel uses the product while it is
// in cache. Kernels are asked here about contiguous tensors, and about windows of such. If the
// kernel refuses the strides that the plan has in the end, the two ops are launched one after the
// other (lower/kernels/launcher.cpp).
#include <algorithm>

#include "lower/kernels/joined_ops.h"
#include "lower/lower.h"
#include "program/strided.h"

namespace orrery {
namespace {

class ProductFuser {
 public:
  ProductFuser(LocalProgram& local, const std::vector<std::string>& kernels)
      : p_(local.program),
        kernels_(kernels),
        first_reader_(p_.values().size(), SIZE_MAX),
        readers_(p_.values().size()),
        gone_(p_.ops().size()) {
    for (size_t i = 0; i < p_.ops().size(); ++i)
      for (ValueId v : p_.ops()[i].in)
        first_reader_[at(v)] = std::min(first_reader_[at(v)], i), ++readers_[at(v)];
    for (const Total& t : local.totals) ++readers_[at(t.partial)];
    for (auto& [state, next] : p_.updates()) ++readers_[at(next)];
    for (auto& [name, id] : p_.outputs()) ++readers_[at(id)];
  }

  void run() {
    for (size_t i = 0; i < p_.ops().size(); ++i)
      if (size_t maker = product_of(i); maker != SIZE_MAX) join(maker, i);
    remove_ops(p_, gone_);
  }

 private:
  static size_t at(ValueId v) { return static_cast<size_t>(v); }

  // The last matmul that this pointwise op can be joined to, or SIZE_MAX.
  size_t product_of(size_t i) const {
    const Op& op = p_.ops()[i];
    size_t found = SIZE_MAX;
    if (op.kind != "pointwise" || op.phase == Phase::update) return found;
    for (ValueId v : op.in) {
      const OpId maker = p_.value(v).producer;
      if (maker == kNone || first_reader_[at(v)] != i) continue;
      const auto m = static_cast<size_t>(maker);
      if (fits(p_.ops()[m], op) && (found == SIZE_MAX || m > found)) found = m;
    }
    return found;
  }

  static bool copies(const Op& op) {
    return std::any_of(op.expr.outputs.begin(), op.expr.outputs.end(), [&](int32_t r) {
      return op.expr.instrs[static_cast<size_t>(r)].fn == ORR_FN_INPUT;
    });
  }

  bool fits(const Op& product, const Op& op) const {
    if (product.kind != "matmul" || product.attrs.has("leaf_n")) return false;
    const Value &y = p_.value(product.out[0]), &z = p_.value(op.out[0]);
    if (product.phase != op.phase || product.stage != op.stage || copies(op)) return false;
    if (y.batch() != z.batch() || y.batch() == Batch::partial || y.type.dims != z.type.dims)
      return false;
    const Op both = joined(product, op);
    std::vector<Strided> in, out;
    for (ValueId v : both.in) in.push_back(Strided::contiguous(p_.type(v)));
    for (ValueId v : both.out) out.push_back(Strided::contiguous(p_.type(v)));
    if (taken_as_one(kernels_, both, in, out)) return true;
    for (size_t i = 0; i < 2; ++i) in[i] = as_it_lies(both.in[i]);
    return taken_as_one(kernels_, both, in, out);
  }

  // v as windows of contiguous memory, if it is such.
  Strided as_it_lies(ValueId v) const {
    const OpId maker = p_.value(v).producer;
    const Op* op = maker == kNone ? nullptr : &p_.ops()[static_cast<size_t>(maker)];
    if (!op || (op->kind != "windows" && op->kind != "reshape"))
      return Strided::contiguous(p_.type(v));
    const Strided x = as_it_lies(op->in[0]);
    if (op->kind == "windows") return windows_of(x, op->attrs);
    Strided view;
    return reshaped(x, p_.type(v).dims, view) ? view : x;
  }

  Op joined(const Op& product, const Op& op) const {
    const ValueId y = product.out[0];
    Op both = op;
    both.kind = "matmul_pointwise", both.in = product.in;
    for (auto& [name, attr] : product.attrs) both.attrs.set(name, attr);
    std::vector<int32_t> number;  // by input of the op: its index among the expression's inputs
    for (ValueId v : op.in) {
      number.push_back(v == y ? 0 : static_cast<int32_t>(both.in.size()) - 1);
      if (v != y) both.in.push_back(v);
    }
    int32_t product_register = kNone, k = 0;
    for (orr_instr& i : both.expr.instrs) {
      if (i.fn == ORR_FN_INPUT) i.a = number[static_cast<size_t>(i.a)];
      if (i.fn == ORR_FN_INPUT && i.a == 0) product_register = k;
      ++k;
    }
    if (readers_[at(y)] > static_cast<size_t>(std::count(op.in.begin(), op.in.end(), y)))
      both.out.push_back(y), both.expr.outputs.push_back(product_register);
    return both;
  }

  void join(size_t product, size_t i) {
    p_.mutable_ops()[i] = joined(p_.ops()[product], p_.ops()[i]);
    gone_[product] = true;
  }

  Program& p_;
  KernelChoice kernels_;
  std::vector<size_t> first_reader_, readers_;  // by value; SIZE_MAX: nothing reads it
  std::vector<char> gone_;                      // by op: it became part of another
};

}  // namespace

void fuse_products(LocalProgram& local, const std::vector<std::string>& kernels) {
  ProductFuser(local, kernels).run();
}

}  // namespace orrery
