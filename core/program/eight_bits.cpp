// SPDX-License-Identifier: Apache-2.0
#include "program/eight_bits.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "program/custom_kind.h"
#include "program/program.h"
#include "program/relate.h"

namespace orrery {
namespace {

bool computes_in_eight_bits(const Expr& expr, const orr_instr& i) {
  const auto eight = [&](int32_t r) {
    return r >= 0 && is_eight_bits(expr.instrs[static_cast<size_t>(r)].dtype);
  };
  if (i.fn == ORR_FN_INPUT || i.fn == ORR_FN_CONST || i.fn == ORR_FN_CAST) return false;
  return is_eight_bits(i.dtype) || eight(i.a) || eight(i.b) || eight(i.c);
}

// Ops of plugins say themselves what they take.
bool takes_eight_bits(const Op& op) {
  static const std::set<std::string> kinds = {
      "matmul",       "matmul_pointwise", "reshape",      "transpose",  "split",
      "concat",       "gather",           "slice_at",     "windows",    "update_slice",
      "vary",         "stop_gradient",    "unshard",      "all_gather", "all_to_all",
      "permute",      "broadcast",        "send",         "recv",       "sample_exchange",
      "batch_gather", "batch_slice",      "user_gradient"};
  if (op.kind == "pointwise")
    return std::none_of(op.expr.instrs.begin(), op.expr.instrs.end(),
                        [&](const orr_instr& i) { return computes_in_eight_bits(op.expr, i); });
  return kinds.count(op.kind) || custom_kind(op.kind);
}

}  // namespace

void check_eight_bits(const Program& p, const Op& op) {
  for (ValueId v : op.in)
    if (is_eight_bits(p.type(v).dtype) && !takes_eight_bits(op))
      p.fail_here(fmt::format(
          "{} reads {}, and numbers of eight bits are only multiplied by matmul, converted and "
          "moved: cast it first, x:cast(\"bf16\") changes no value",
          name_of(op), to_string(p.type(v))));
}

}  // namespace orrery
