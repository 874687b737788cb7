// SPDX-License-Identifier: Apache-2.0
#include "program/rewrite.h"

#include <orrery/strategy.h>

#include <algorithm>
#include <stdexcept>

#include "base/error.h"
#include "program/op.h"
#include "program/varying.h"

namespace orrery {
namespace {

Op& maker_of(Program& p, ValueId value) {
  const OpId maker = p.value(value).producer;
  if (maker == kNone) fail(ORR_INVALID, "{} is given: no op makes it", title(p, value));
  return p.mutable_ops()[static_cast<size_t>(maker)];
}

// The title with the Lua line; the title of an op's result has it already.
std::string title_and_line(const Program& p, ValueId v) {
  const Value& value = p.value(v);
  const bool told = value.name.empty() && value.producer != kNone;
  return title(p, v) + (told || value.site.line.empty() ? "" : " (" + value.site.line + ")");
}

[[noreturn]] void refuse(const Program& p, ValueId value, ValueId by, const std::string& why) {
  fail(ORR_INVALID, "{} cannot stand for {}: {}", title_and_line(p, by), title_and_line(p, value),
       why);
}

void check_shape(const Program& p, ValueId value, ValueId by) {
  if (p.type(value).dims != p.type(by).dims)
    refuse(p, value, by,
           fmt::format("one is {}, the other {}: reshape it", to_string(p.type(by)),
                       to_string(p.type(value))));
}

std::string relation(const Value& v) {
  switch (v.batch()) {
    case Batch::sharded: return fmt::format("one for each sample, by dim {}", v.batch_dim() + 1);
    case Batch::partial: return "a sum over the batch";
    case Batch::mean: return "made of sums over the batch";
    default: return "one for all samples";
  }
}

void check_alike(const Program& p, ValueId value, ValueId by) {
  check_shape(p, value, by);
  const Value &old = p.value(value), &now = p.value(by);
  if (old.type.dtype != now.type.dtype)
    refuse(p, value, by,
           fmt::format("one is {}, the other {}: cast it", dtype_name(now.type.dtype),
                       dtype_name(old.type.dtype)));
  if (old.batch() != now.batch() ||
      (old.batch() == Batch::sharded && old.batch_dim() != now.batch_dim()))
    refuse(p, value, by, fmt::format("one is {}, the other {}", relation(now), relation(old)));
  check_varies_within(p, by, old.varying(), title(p, value));
}

bool is_cast(const Op& op) {
  return op.kind == "pointwise" && op.expr.instrs.back().fn == ORR_FN_CAST;
}

// Sets the dtype of the registers that load inputs to those of the inputs.
void reload(const Program& p, Op& op) {
  for (orr_instr& i : op.expr.instrs)
    if (i.fn == ORR_FN_INPUT) i.dtype = p.type(op.in[static_cast<size_t>(i.a)]).dtype;
}

std::vector<Type> inferred(const Program& p, const Op& op) {
  try {
    return op_def(op.kind).infer(args_of(p, op));
  } catch (const std::invalid_argument& e) {
    fail(ORR_FAILED, "{}{}: {}", op.site.prefix(), op.kind, e.what());
  }
}

}  // namespace

std::vector<bool> ops_behind(const Program& p, std::vector<ValueId> wanted,
                             const std::function<bool(ValueId)>& stops) {
  std::vector<bool> found(p.ops().size());
  while (!wanted.empty()) {
    const ValueId v = wanted.back();
    const OpId maker = p.value(v).producer;
    wanted.pop_back();
    if (maker == kNone || found[static_cast<size_t>(maker)] || (stops && stops(v))) continue;
    found[static_cast<size_t>(maker)] = true;
    const std::vector<ValueId>& in = p.ops()[static_cast<size_t>(maker)].in;
    wanted.insert(wanted.end(), in.begin(), in.end());
  }
  return found;
}

void replace_uses(Program& p, ValueId value, ValueId by, uint32_t uses) {
  check_alike(p, value, by);
  const auto above = ops_behind(p, {by}, [&](ValueId v) { return v == value; });
  for (size_t i = 0; i < p.ops().size(); ++i) {
    Op& op = p.mutable_ops()[i];
    if (!above[i] && uses >> static_cast<int>(op.phase) & 1)
      std::replace(op.in.begin(), op.in.end(), value, by);
  }
  if (!(uses & ORR_USES_RESULTS)) return;
  for (auto& [state, next] : p.mutable_updates())
    if (next == value) next = by;
  for (auto& [name, id] : p.mutable_outputs())
    if (id == value) id = by;
  p.note_replaced(value, by);
}

void replace_input(Program& p, ValueId of, ValueId value, ValueId by) {
  check_shape(p, value, by);
  Op& op = maker_of(p, of);
  if (!std::count(op.in.begin(), op.in.end(), value))
    fail(ORR_INVALID, "{} does not read {}", title_and_line(p, of), title_and_line(p, value));
  std::replace(op.in.begin(), op.in.end(), value, by);
}

OpId twin_beside(const Program& p, ValueId value, Phase phase) {
  const OpId maker = p.value(value).producer;
  if (phase != Phase::backward || maker == kNone) return kNone;
  const Op& op = p.ops()[static_cast<size_t>(maker)];
  return op.twin == kNone && op.phase == Phase::forward ? maker : op.twin;
}

std::vector<ValueId> copy_op(Program& p, ValueId value, const std::vector<ValueId>& in,
                             Phase phase) {
  Op op = maker_of(p, value);
  if (in.size() != op.in.size())
    fail(ORR_INVALID, "{} is made of {} values: a copy cannot be made of {}", title(p, value),
         op.in.size(), in.size());
  for (size_t i = 0; i < in.size(); ++i)
    if (in[i] != op.in[i]) check_alike(p, op.in[i], in[i]);
  op.twin = twin_beside(p, value, phase);
  op.phase = phase, op.in = in;
  for (ValueId& out : op.out) {
    const Value original = p.value(out);
    out = p.new_value(original.type, original.role, original.name);
    Value& made = p.mutable_value(out);
    made.layout = original.layout, made.site = original.site;
  }
  const std::vector<ValueId> made = op.out;
  p.append(std::move(op));
  return made;
}

ValueId append_op(Program& p, Op op, const Type& type) {
  op.phase = p.phase(), op.site = p.site();
  const ValueId out = p.new_value(type, Role::activation);
  op.out = {out};
  p.append(std::move(op));
  return out;
}

ValueId append_op(Program& p, const char* kind, const Attrs& attrs, const std::vector<ValueId>& in,
                  const Type& type) {
  Op op;
  op.kind = kind, op.attrs = attrs, op.in = in;
  return append_op(p, std::move(op), type);
}

void retype_op(Program& p, ValueId value, int32_t compute, int32_t store) {
  Op& op = maker_of(p, value);
  const int32_t from = p.type(op.out[0]).dtype;
  reload(p, op);
  for (orr_instr& i : op.expr.instrs)
    if (compute && i.fn != ORR_FN_INPUT && i.fn != ORR_FN_CAST && i.dtype == from)
      i.dtype = compute;
  if (store && is_cast(op))
    op.expr.instrs.back().dtype = store;
  else if (store)
    op.attrs.set("dtype", int64_t{store});
  const std::vector<Type> types = inferred(p, op);
  if (store && types[0].dtype != store)
    fail(ORR_INVALID, "{}{} cannot store {}", op.site.prefix(), op.kind, dtype_name(store));
  for (size_t j = 0; j < op.out.size(); ++j) p.mutable_value(op.out[j]).type = types[j];
}

void check_types(Program& p) {
  for (Op& op : p.mutable_ops()) {
    if (is_cast(op)) reload(p, op);
    for (const orr_instr& i : op.expr.instrs)
      if (i.fn == ORR_FN_INPUT && i.dtype != p.type(op.in[static_cast<size_t>(i.a)]).dtype)
        fail(ORR_INVALID,
             "{}{} reads {} as {}, and it is {} now: cast it, or re-type this op as well",
             op.site.prefix(), op.kind, title(p, op.in[static_cast<size_t>(i.a)]),
             dtype_name(i.dtype), dtype_name(p.type(op.in[static_cast<size_t>(i.a)]).dtype));
    const std::vector<Type> types = inferred(p, op);
    for (size_t j = 0; j < op.out.size(); ++j)
      if (types[j] != p.type(op.out[j]))
        fail(ORR_INVALID,
             "{}{} would make {} of what it reads now, and not {}: cast that, or re-type this op "
             "as well",
             op.site.prefix(), op.kind, to_string(types[j]), to_string(p.type(op.out[j])));
  }
  for (const auto& [state, next] : p.updates())
    if (p.type(next) != p.type(state))
      fail(ORR_INVALID, "{}the new value of {} is {} now: cast it", p.value(next).site.prefix(),
           title(p, state), to_string(p.type(next)));
}

}  // namespace orrery
