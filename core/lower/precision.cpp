// SPDX-License-Identifier: Apache-2.0
#include "lower/precision.h"

#include <stdexcept>
#include <tuple>

#include "program/op.h"

namespace orrery {
namespace {

class Rewriter {
 public:
  Rewriter(Program& p, const std::map<ValueId, int32_t>& dtypes) : p_(p), dtypes_(dtypes) {
    for (const Value& v : p.values()) traced_.push_back(v.type.dtype);
  }

  void run() {
    const std::vector<Op> ops = p_.ops();
    const Site site = p_.site();
    p_.mutable_ops().clear();
    for (size_t i = 0; i < ops.size(); ++i) {
      p_.set_site(ops[i].site);
      translate(ops[i], static_cast<OpId>(i));
    }
    p_.set_site(site);
  }

 private:
  static bool is_cast(const Op& op) {
    return op.kind == "pointwise" && op.expr.instrs.back().fn == ORR_FN_CAST;
  }

  // The dtype that the op computes in; 0: the traced one.
  int32_t wanted(const Op& op) const {
    auto at = dtypes_.find(op.out[0]);
    return at == dtypes_.end() ? 0 : at->second;
  }

  ValueId as(ValueId v, int32_t dtype, OpId reader) {
    if (p_.type(v).dtype == dtype) return v;
    auto [at, fresh] = casts_.try_emplace({v, dtype, p_.value(v).state ? reader : kNone}, kNone);
    if (fresh) at->second = p_.cast(v, dtype);
    return at->second;
  }

  void translate(Op op, OpId index) {
    const int32_t dtype = wanted(op), from = dtype ? p_.type(op.out[0]).dtype : 0;
    for (ValueId& v : op.in) {
      const size_t at = static_cast<size_t>(v);
      if (is_cast(op) || !is_real(traced_[at])) continue;
      v = as(v, dtype && traced_[at] == from ? dtype : traced_[at], index);
    }
    retype(op, from, dtype);
    infer(op);
    p_.append(std::move(op));
  }

  // Registers follow what they are loaded from; those that computed in `from` compute in `dtype`.
  void retype(Op& op, int32_t from, int32_t dtype) const {
    for (orr_instr& i : op.expr.instrs) {
      if (i.fn == ORR_FN_INPUT)
        i.dtype = p_.type(op.in[static_cast<size_t>(i.a)]).dtype;
      else if (dtype && i.dtype == from && i.fn != ORR_FN_CAST)
        i.dtype = dtype;
    }
  }

  void infer(const Op& op) {
    std::vector<Type> types;
    try {
      types = op_def(op.kind).infer(args_of(p_, op));
    } catch (const std::invalid_argument& e) {
      p_.fail_here(op.kind + ": " + e.what());
    }
    for (size_t j = 0; j < op.out.size(); ++j) p_.mutable_value(op.out[j]).type = types[j];
  }

  Program& p_;
  const std::map<ValueId, int32_t>& dtypes_;
  std::vector<int32_t> traced_;  // by ValueId
  std::map<std::tuple<ValueId, int32_t, OpId>, ValueId> casts_;
};

}  // namespace

void set_precision(Program& p, const std::map<ValueId, int32_t>& dtypes) {
  if (!dtypes.empty()) Rewriter(p, dtypes).run();
}

}  // namespace orrery
