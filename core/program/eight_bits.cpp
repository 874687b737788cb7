// SPDX-License-Identifier: Apache-2.0
#include "program/eight_bits.h"

#include "base/error.h"
#include "program/op.h"
#include "program/program.h"
#include "program/relate.h"

namespace orrery {

bool takes_eight_bits(const Expr&) { return true; }

void check_eight_bits(const Program& p, const Op& op) {
  const OpDef& def = op_def(op.kind);
  if (def.eight_bits && def.eight_bits(op.expr)) return;
  for (ValueId v : op.in)
    if (is_eight_bits(p.type(v).dtype))
      p.fail_here(fmt::format(
          "{} reads {}, and numbers of eight bits are only multiplied by matmul, converted and "
          "moved: cast it first, x:cast(\"bf16\") changes no value",
          name_of(op), to_string(p.type(v))));
}

}  // namespace orrery
