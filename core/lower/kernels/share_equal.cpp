// SPDX-License-Identifier: Apache-2.0
//
// Computes a small value once where several ops compute the same one in one part of a step, such as
// the samples of a microbatch, which every batch normalization counts. A large one is computed
// anew: what it costs to keep is more than a launch.
#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

#include "lower/kernels/joined_ops.h"
#include "lower/lower.h"
#include "partition/timetable.h"

namespace orrery {
namespace {

constexpr uint64_t kSmall = 4 << 10;  // bytes

bool same_instr(const orr_instr& a, const orr_instr& b) {
  const auto bits = [](double x) { return std::bit_cast<uint64_t>(x); };  // 0 is not -0
  return std::tie(a.fn, a.dtype, a.a, a.b, a.c) == std::tie(b.fn, b.dtype, b.a, b.b, b.c) &&
         bits(a.imm) == bits(b.imm);
}

bool same_expr(const Expr& a, const Expr& b) {
  return std::equal(a.instrs.begin(), a.instrs.end(), b.instrs.begin(), b.instrs.end(),
                    same_instr) &&
         std::equal(a.outputs.begin(), a.outputs.end(), b.outputs.begin(), b.outputs.end());
}

class Sharer {
 public:
  explicit Sharer(LocalProgram& local)
      : p_(local.program), pinned_(read_from_outside(local)), once_(once_a_step(p_)) {}

  void run() {
    const size_t n = p_.ops().size();
    std::vector<char> gone(n);
    for (size_t i = 0; i < n; ++i) {
      Op& op = p_.mutable_ops()[i];
      for (ValueId& v : op.in)
        if (const auto at = same_.find(v); at != same_.end()) v = at->second;
      if (!may_share(op)) continue;
      std::vector<size_t>& alike = known_[{op.kind, op.in, op.phase, op.stage, once_[i]}];
      const auto equal = std::find_if(alike.begin(), alike.end(),
                                      [&](size_t k) { return computes_the_same(op, p_.ops()[k]); });
      if (equal == alike.end()) {
        alike.push_back(i);
        continue;
      }
      for (size_t j = 0; j < op.out.size(); ++j) same_[op.out[j]] = p_.ops()[*equal].out[j];
      gone[i] = true;
    }
    if (!same_.empty()) remove_ops(p_, gone);
  }

 private:
  bool may_share(const Op& op) const {
    if (op.kind != "pointwise" && op.kind != "reduce" && op.kind != "reshape") return false;
    if (op.in.empty()) return false;  // a constant: groups repeat it
    uint64_t bytes = 0;
    for (ValueId v : op.out) {
      if (pinned_[static_cast<size_t>(v)]) return false;
      bytes += p_.type(v).bytes();
    }
    return bytes <= kSmall;
  }

  bool computes_the_same(const Op& a, const Op& b) const {
    const auto same_type = [&](ValueId x, ValueId y) { return p_.type(x) == p_.type(y); };
    return a.attrs == b.attrs && same_expr(a.expr, b.expr) &&
           std::equal(a.out.begin(), a.out.end(), b.out.begin(), b.out.end(), same_type);
  }

  Program& p_;
  std::vector<char> pinned_;
  std::vector<bool> once_;  // by op: it runs once a step, not once a microbatch
  std::map<std::tuple<std::string, std::vector<ValueId>, Phase, int32_t, bool>, std::vector<size_t>>
      known_;
  std::map<ValueId, ValueId> same_;
};

}  // namespace

void share_equal(LocalProgram& local) { Sharer(local).run(); }

}  // namespace orrery
