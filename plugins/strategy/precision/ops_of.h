// SPDX-License-Identifier: Apache-2.0
//
// All ops of a program, in the program's order, with the facts that a change of element types
// needs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <orrery/sdk/program.hpp>

namespace precision {

struct Op {
  std::string kind, region;
  std::vector<int32_t> in, out;
  bool is_cast = false;         // a pointwise op whose last instruction is a cast
  bool is_plain_cast = false;   // a pointwise op that does nothing but cast
  bool is_square = false;       // a pointwise op that multiplies a value by itself
  std::vector<double> numbers;  // of a pointwise op
};

struct OpsOf {
  explicit OpsOf(const orr::Program& p) {
    p.each(~0u, [&](orr::Value v, const orr_value_info& info) {
      dtype.resize(std::max(dtype.size(), static_cast<size_t>(v.id) + 1));
      dtype[static_cast<size_t>(v.id)] = info.type.dtype;
      batch.resize(dtype.size()), state.resize(dtype.size());
      batch[static_cast<size_t>(v.id)] = info.batch;
      state[static_cast<size_t>(v.id)] = info.role == ORR_ROLE_PARAM || info.role == ORR_ROLE_STATE;
      if (info.op < 0) return;
      Op& op = ops[info.op];
      op.kind = info.kind, op.region = info.region;
      op.out.resize(std::max(op.out.size(), static_cast<size_t>(info.output) + 1));
      op.out[static_cast<size_t>(info.output)] = v.id;
      number[v.id] = info.op;
    });
    for (auto& [number, op] : ops) {
      op.in = p.inputs(op.out[0]);
      if (op.kind != "pointwise") continue;
      p.maker(op.out[0], [&, &op = op](const orr_op_desc& desc) {
        const int32_t last = desc.expr->instrs[desc.expr->n_instrs - 1].fn;
        op.is_cast = last == ORR_FN_CAST;
        op.is_plain_cast = op.is_cast && desc.expr->n_instrs == 2;
        for (int32_t i = 0; i < desc.expr->n_instrs; ++i)
          if (const orr_instr& one = desc.expr->instrs[i]; one.fn == ORR_FN_CONST)
            op.numbers.push_back(one.imm);
        op.is_square = (last == ORR_FN_MUL && op.in.size() == 1 && op.numbers.empty()) ||
                       (last == ORR_FN_POW && op.numbers == std::vector<double>{2});
      });
    }
  }

  // Returns the op that makes a value; null if no op makes it (a parameter, a batch field).
  const Op* maker(int32_t value) const {
    const auto at = number.find(value);
    return at == number.end() ? nullptr : &ops.at(at->second);
  }

  std::map<int64_t, Op> ops;
  std::map<int32_t, int64_t> number;  // by value: the number of the op that makes it
  std::vector<int32_t> dtype, batch;  // by value
  std::vector<bool> state;
};

}  // namespace precision
