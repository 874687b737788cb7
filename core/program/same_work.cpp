// SPDX-License-Identifier: Apache-2.0
#include "program/same_work.h"

#include <algorithm>

namespace orrery {

static bool is_same(const orr_instr& a, const orr_instr& b) {
  const bool imm = a.imm == b.imm || (a.imm != a.imm && b.imm != b.imm);
  return imm && a.fn == b.fn && a.dtype == b.dtype && a.a == b.a && a.b == b.b && a.c == b.c;
}

bool is_same_work(const Op& a, const Op& b) {
  return a.kind == b.kind && a.attrs == b.attrs && a.completed_over == b.completed_over &&
         a.reads_whole == b.reads_whole && a.expr.outputs == b.expr.outputs &&
         std::equal(a.expr.instrs.begin(), a.expr.instrs.end(), b.expr.instrs.begin(),
                    b.expr.instrs.end(), is_same);
}

}  // namespace orrery
