// SPDX-License-Identifier: Apache-2.0
//
// Computes a value again where it is read, if that reads no more memory than the value itself
// takes: then it need not be written. Such is x + bias behind a product, which a layer hands to its
// activation and keeps for the gradient: the product is kept instead. Runs after the other passes,
// since a product with its bias as one op keeps the sum for nothing.
#include <algorithm>

#include "lower/kernels/joined_ops.h"
#include "lower/lower.h"

namespace orrery {
namespace {

constexpr size_t kCheap = 3;    // instructions that compute
constexpr int64_t kSmall = 16;  // a tensor that is smaller by this factor costs nothing to read

class Recomputer {
 public:
  explicit Recomputer(LocalProgram& local) : p_(local.program), pinned_(read_from_outside(local)) {
    readers_.resize(p_.values().size());
    for (size_t i = 0; i < p_.ops().size(); ++i)
      for (ValueId v : p_.ops()[i].in) readers_[at(v)].push_back(i);
  }

  void run() {
    // In the order of the program, so that nobody comes to read a value after it was looked at.
    for (Op& op : p_.mutable_ops())
      for (size_t j = op.out.size(); j-- > 0;)
        if (op.kind == "pointwise" && op.out.size() > 1 && is_cheap(op, j) && readers_take(op, j))
          recompute(op, j);
  }

 private:
  static size_t at(ValueId v) { return static_cast<size_t>(v); }

  // The registers from which a register is computed, in order, and itself.
  static std::vector<int32_t> behind(const Expr& e, int32_t reg) {
    std::vector<char> found(e.instrs.size());
    found[static_cast<size_t>(reg)] = true;
    std::vector<int32_t> all;
    for (int32_t r = reg; r >= 0; --r) {
      const orr_instr& i = e.instrs[static_cast<size_t>(r)];
      if (!found[static_cast<size_t>(r)]) continue;
      all.insert(all.begin(), r);
      for (int32_t from : {i.a, i.b, i.c})
        if (i.fn != ORR_FN_INPUT && from >= 0) found[static_cast<size_t>(from)] = true;
    }
    return all;
  }

  // Whether output j is a few instructions on one tensor of its size, and small ones.
  bool is_cheap(const Op& op, size_t j) const {
    const Type& type = p_.type(op.out[j]);
    size_t computes = 0, large = 0;
    for (int32_t r : behind(op.expr, op.expr.outputs[j])) {
      const orr_instr& i = op.expr.instrs[static_cast<size_t>(r)];
      if (i.fn == ORR_FN_RAND) return false;
      if (i.fn != ORR_FN_INPUT) {
        computes += i.fn != ORR_FN_CONST;
        continue;
      }
      const Type& x = p_.type(op.in[static_cast<size_t>(i.a)]);
      if (kSmall * x.elements() > type.elements()) large += x.bytes() <= type.bytes() ? 1 : 2;
    }
    return computes > 0 && computes <= kCheap && large == 1;
  }

  bool readers_take(const Op& op, size_t j) const {
    const ValueId v = op.out[j];
    if (pinned_[at(v)] || readers_[at(v)].empty()) return false;
    return std::all_of(readers_[at(v)].begin(), readers_[at(v)].end(), [&](size_t i) {
      const Op& reader = p_.ops()[i];
      return reader.kind == "pointwise" && p_.type(reader.out[0]).dims == p_.type(v).dims &&
             reader.in.size() + kCheap <= kMostInputs &&
             reader.expr.instrs.size() + 2 * kCheap <= kMostInstrs;
    });
  }

  void recompute(Op& op, size_t j) {
    const ValueId v = op.out[j];
    for (size_t i : readers_[at(v)])
      if (Op& reader = p_.mutable_ops()[i]; std::count(reader.in.begin(), reader.in.end(), v))
        inline_into(reader, v, op, op.expr.outputs[j]);
    op.out.erase(op.out.begin() + static_cast<std::ptrdiff_t>(j));
    op.expr.outputs.erase(op.expr.outputs.begin() + static_cast<std::ptrdiff_t>(j));
  }

  // Has `reader` compute v, which is register `reg` of `maker`, instead of reading it.
  void inline_into(Op& reader, ValueId v, const Op& maker, int32_t reg) {
    const Op old = reader;
    reader.in.clear(), reader.expr = {};
    std::vector<int32_t> now(old.expr.instrs.size(), kNone);
    for (size_t r = 0; r < now.size(); ++r) {
      const orr_instr& i = old.expr.instrs[r];
      if (i.fn != ORR_FN_INPUT)
        now[r] = push(reader, i, now);
      else if (const ValueId x = old.in[static_cast<size_t>(i.a)]; x != v)
        now[r] = read(reader, x, i.dtype);
      else
        now[r] = emit(reader, maker, reg);
    }
    for (int32_t r : old.expr.outputs) reader.expr.outputs.push_back(now[static_cast<size_t>(r)]);
  }

  int32_t emit(Op& reader, const Op& maker, int32_t reg) {
    std::vector<int32_t> now(maker.expr.instrs.size(), kNone);
    for (int32_t r : behind(maker.expr, reg)) {
      const orr_instr& i = maker.expr.instrs[static_cast<size_t>(r)];
      now[static_cast<size_t>(r)] = i.fn == ORR_FN_INPUT
                                        ? read(reader, maker.in[static_cast<size_t>(i.a)], i.dtype)
                                        : push(reader, i, now);
    }
    return now[static_cast<size_t>(reg)];
  }

  static int32_t push(Op& op, orr_instr i, const std::vector<int32_t>& now) {
    for (int32_t* r : {&i.a, &i.b, &i.c})
      if (*r >= 0) *r = now[static_cast<size_t>(*r)];
    op.expr.instrs.push_back(i);
    return static_cast<int32_t>(op.expr.instrs.size()) - 1;
  }

  // A register with the value, which is read once.
  int32_t read(Op& op, ValueId v, int32_t dtype) {
    auto input = std::find(op.in.begin(), op.in.end(), v);
    const auto number = static_cast<int32_t>(input - op.in.begin());
    if (input == op.in.end()) {
      op.in.push_back(v);
      return op.expr.push(ORR_FN_INPUT, dtype, number);
    }
    const auto is = [&](const orr_instr& i) { return i.fn == ORR_FN_INPUT && i.a == number; };
    return static_cast<int32_t>(std::find_if(op.expr.instrs.begin(), op.expr.instrs.end(), is) -
                                op.expr.instrs.begin());
  }

  Program& p_;
  std::vector<std::vector<size_t>> readers_;  // by value, as they were before
  std::vector<char> pinned_;                  // by value: read from outside
};

}  // namespace

void recompute_cheap(LocalProgram& local) {
  if (!local.microbatches.one_by_one) Recomputer(local).run();
}

}  // namespace orrery
