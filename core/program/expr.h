// SPDX-License-Identifier: Apache-2.0
//
// Pointwise expressions, as lists of instructions of the plugin interface (orrery/kernel.h), and
// the table of scalar functions with their names, arities and properties.
#pragma once

#include <orrery/kernel.h>
#include <orrery/ops.h>

#include <string>

#include "base/short_list.h"

namespace orrery {

// Instruction k defines register k; outputs[j] is the register of output j.
struct Expr {
  ShortList<orr_instr, 3> instrs;
  ShortList<int32_t, 2> outputs;

  int32_t push(int32_t fn, int32_t dtype, int32_t a = -1, int32_t b = -1, int32_t c = -1,
               double imm = 0);
};

struct ScalarFn {
  int32_t fn;
  const char* name;  // as in Lua: "tanh"
  int arity;
  bool boolean;  // the result is BOOL
  bool linear;   // jointly linear in its real operands (a partial sum may pass through)
};

// The row of a function; throws Error for an unknown number. INPUT, CONST, CAST, RAND included.
const ScalarFn& scalar_fn(int32_t fn);

std::string to_string(const Expr& expr);

}  // namespace orrery
