// SPDX-License-Identifier: Apache-2.0
#include "program/program.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "base/error.h"
#include "base/text.h"
#include "program/axes.h"
#include "program/eight_bits.h"
#include "program/elements.h"
#include "program/op.h"
#include "program/own_rows.h"
#include "program/relate.h"
#include "program/state.h"
#include "program/varying.h"

namespace orrery {
namespace {

// The hash FNV-1a, so that RNG ids are the same on every machine and build. It has 31 bits, because
// the plugin interface carries ids in a double and in a word of a Philox counter.
int64_t hash_id(const std::string& text) {
  uint64_t h = 1469598103934665603ULL;
  for (char c : text) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return static_cast<int64_t>((h ^ (h >> 31)) & 0x7fffffff);
}

int promotion_rank(int32_t dtype) {
  switch (dtype) {
    case ORR_BOOL: return 0;
    case ORR_U8: return 1;
    case ORR_I32: return 2;
    case ORR_I64: return 3;
    case ORR_F16: return 4;
    case ORR_BF16: return 5;
    case ORR_F32: return 6;
    default: return 7;
  }
}

}  // namespace

void Program::fail_here(const std::string& message) const {
  throw Error(ORR_FAILED, site_.prefix() + message);
}

ValueId Program::new_value(const Type& type, Role role, const std::string& name) {
  Value v;
  v.type = type, v.role = role, v.name = name, v.site = site_;
  values_.push_back(std::move(v));
  const ValueId id = static_cast<ValueId>(values_.size()) - 1;
  if (role != Role::activation) given_.push_back(id);
  return id;
}

ValueId Program::find_given(const std::function<bool(const Value&)>& is) const {
  const auto at =
      std::find_if(given_.begin(), given_.end(), [&](ValueId v) { return is(value(v)); });
  return at == given_.end() ? kNone : *at;
}

ValueId Program::batch_input(const std::string& name, const Type& type) {
  const auto is_it = [&](const Value& v) { return v.role == Role::batch && v.name == name; };
  if (ValueId found = find_given(is_it); found != kNone) return found;
  if (type.dims.empty())
    fail_here(fmt::format("batch field '{}' has no dims: the first one is the batch", name));
  if (batch_size_ && type.dims[0] != batch_size_)
    fail_here(fmt::format("batch field '{}' has {} rows, the others have {}", name, type.dims[0],
                          batch_size_));
  batch_size_ = type.dims[0];
  ValueId id = new_value(type, Role::batch, name);
  values_.back().set_batch(Batch::sharded, 0);
  return id;
}

ValueId Program::whole_batch_input(const std::string& name, const Type& type) {
  const auto is_it = [&](const Value& v) { return v.role == Role::whole_batch && v.name == name; };
  if (ValueId found = find_given(is_it); found != kNone) return found;
  return new_value(type, Role::whole_batch, name);
}

ValueId Program::scalar_input(const std::string& name, int32_t dtype) {
  const auto is_it = [&](const Value& v) {
    return v.role == Role::scalar && v.name == name && v.type.dtype == dtype;
  };
  if (ValueId found = find_given(is_it); found != kNone) return found;
  return new_value({dtype, {}}, Role::scalar, name);
}

ValueId Program::input(const std::string& name, const Type& type) {
  return new_value(type, Role::input, name);
}

ValueId Program::state_value(const std::shared_ptr<State>& state) {
  const auto is_it = [&](const Value& v) { return v.state == state; };
  if (ValueId found = find_given(is_it); found != kNone) return found;
  ValueId id = new_value(state->type, state->role, state->name);
  values_.back().state = state, values_.back().tier = state->tier;
  return id;
}

ValueId Program::batch_weight() {
  if (!batch_size_) fail_here("a mean over the batch needs a value that depends on the batch");
  return batch_input("$weight", {ORR_F32, {batch_size_}});
}

ValueId Program::seed() { return scalar_input("$seed", ORR_I64); }
ValueId Program::step() { return scalar_input("$step", ORR_I64); }

int64_t Program::next_rng_id() {
  int64_t ordinal = rng_ordinals_[site_.region]++;
  return hash_id(stream_ + site_.region + "#" + std::to_string(ordinal));
}

int Program::axis_size(const std::string& name) const {
  int size = 1;
  for (const std::string& one : factors_of(name)) {
    const auto at = std::find_if(axes_.begin(), axes_.end(),
                                 [&](const MeshAxis& axis) { return axis.name == one; });
    if (at != axes_.end()) {
      size *= at->size;
      continue;
    }
    // "*" stands for any axis, of one rank: the update is tried before strategies have made axes
    // (Training::declare_states).
    if (axes_.size() == 1 && axes_[0].name == "*") continue;
    if (axes_.empty())
      fail_here(
          fmt::format("there is no axis '{}' here: strategies make axes, for their hooks; "
                      "over all samples \"batch\" is one",
                      one));
    std::vector<std::string> known;
    for (const MeshAxis& axis : axes_) known.push_back(axis.name);
    fail_here(fmt::format("there is no axis '{}'{}; there are: {}", one, did_you_mean(one, known),
                          join(known, ", ")));
  }
  return size;
}

std::vector<ValueId> Program::add(const std::string& kind, const std::vector<ValueId>& in,
                                  Attrs attrs) {
  Op op;
  op.kind = kind, op.attrs = std::move(attrs), op.in = in, op.phase = phase_, op.site = site_;
  append(std::move(op));
  return ops_.back().out;
}

ValueId Program::add1(const std::string& kind, const std::vector<ValueId>& in, Attrs attrs) {
  return add(kind, in, std::move(attrs))[0];
}

Program Program::without_ops() const {
  return without_ops([](ValueId) { return true; });
}

Program Program::without_ops(const std::function<bool(ValueId)>& keep) const {
  Program p;
  p.values_.reserve(values_.size() + values_.size() / 16);  // some will be added
  p.values_.resize(values_.size());
  for (size_t v = 0; v < values_.size(); ++v)
    if (keep(static_cast<ValueId>(v))) p.values_[v] = values_[v];
  p.given_ = given_;
  p.updates_ = updates_, p.outputs_ = outputs_, p.rng_ordinals_ = rng_ordinals_;
  p.stream_ = stream_;
  p.user_gradients_ = user_gradients_, p.site_ = site_, p.phase_ = phase_,
  p.batch_size_ = batch_size_, p.axes_ = axes_, p.origin_ = origin_;
  for (Value& v : p.values_) v.producer = kNone;
  return p;
}

void Program::append(Op op) {
  if (op.twin == kNone) op.twin = twin_;
  if (op.stage == 0) op.stage = stage_;
  if (op.out.empty()) {
    complete_for_samples(op);
    check_eight_bits(*this, op);
    const OpDef& def = op_def(op.kind);
    std::vector<Type> types;
    try {
      types = def.infer(args_of(*this, op));
    } catch (const std::invalid_argument& e) {
      fail_here(op.kind + ": " + e.what());
    }
    take_own_rows(*this, op, types);
    for (const Type& t : types) {
      if (std::any_of(t.dims.begin(), t.dims.end(), [](int64_t d) { return d < 0; }))
        fail_here(op.kind + ": there is no tensor of the dims " + to_string(t.dims));
      op.out.push_back(new_value(t, Role::activation));
    }
    relate_to_batch(*this, op);
    relate_to_axes(*this, op);
  }
  for (size_t j = 0; j < op.out.size(); ++j) {
    Value& v = mutable_value(op.out[j]);
    v.producer = static_cast<OpId>(ops_.size());
    v.out_index = static_cast<int32_t>(j);
  }
  ops_.push_back(std::move(op));
}

namespace {

// The dtype of arithmetic with both; 0: none yet.
int32_t promoted(int32_t a, int32_t b) {
  if (!a || a == b) return b;
  if (orr_dtype_bytes(a) == 2 && orr_dtype_bytes(b) == 2)
    return ORR_F32;  // neither holds the other
  return promotion_rank(a) > promotion_rank(b) ? a : b;
}

// Whether a number would become infinite, or zero, in a dtype of 16 bits.
bool is_lost(double number, int32_t dtype) {
  if (orr_dtype_bytes(dtype) != 2 || !std::isfinite(number) || number == 0) return false;
  uint16_t bits = 0;
  write_element(dtype, &bits, number);
  const double rounded = read_element(dtype, &bits);
  return !std::isfinite(rounded) || rounded == 0;
}

// An op on tensors of 16 bits with a number that these do not hold: it is computed in f32.
ValueId computed_wide(Program& p, int32_t fn, std::vector<Operand> operands, int32_t dtype) {
  for (Operand& o : operands)
    if (o.id != kNone && p.type(o.id).dtype == dtype) o.id = p.cast(o.id, ORR_F32);
  const ValueId wide = p.pointwise(fn, operands);
  return p.type(wide).dtype == ORR_F32 ? p.cast(wide, dtype) : wide;
}

}  // namespace

ValueId Program::pointwise(int32_t fn, const std::vector<Operand>& operands) {
  const ScalarFn& row = scalar_fn(fn);
  if (static_cast<int>(operands.size()) != row.arity && fn != ORR_FN_INPUT)
    fail_here(fmt::format("{} takes {} operands, not {}", row.name, row.arity, operands.size()));
  bool select = fn == ORR_FN_SELECT, logic = fn >= ORR_FN_AND && fn <= ORR_FN_NOT;
  int32_t dtype = 0;
  for (size_t i = select ? 1 : 0; i < operands.size(); ++i)
    if (operands[i].id != kNone) {
      dtype = promoted(dtype, type(operands[i].id).dtype);
    }
  if (!dtype) dtype = ORR_F32;
  const auto any_number = [&](auto&& is) {
    return std::any_of(operands.begin() + (select ? 1 : 0), operands.end(),
                       [&](const Operand& o) { return o.id == kNone && is(o.value); });
  };
  bool fraction = any_number([](double x) { return !fits(x, ORR_I64); });
  bool real_only = fn == ORR_FN_DIV || (fn >= ORR_FN_SQRT && fn <= ORR_FN_COS) ||
                   fn == ORR_FN_GELU || fn == ORR_FN_GELU_GRAD || fn == ORR_FN_POW ||
                   fn == ORR_FN_ISFINITE;
  if ((fraction || real_only) && !is_real(dtype) && !logic) dtype = ORR_F32;
  if (dtype == ORR_BOOL && !logic && !select && fn != ORR_FN_INPUT && fn != ORR_FN_EQ &&
      fn != ORR_FN_NE)
    dtype = ORR_F32;
  if (logic) dtype = ORR_BOOL;
  if (!is_real(dtype) && !logic && any_number([&](double x) { return !fits(x, dtype); }))
    dtype = ORR_I64;
  if (fn >= ORR_FN_FLOOR && fn <= ORR_FN_ROUND && !is_real(dtype)) return operands[0].id;
  if (any_number([&](double x) { return is_lost(x, dtype); }))
    return computed_wide(*this, fn, operands, dtype);
  Op op;
  op.kind = "pointwise", op.phase = phase_, op.site = site_;
  int32_t regs[3] = {-1, -1, -1};
  for (size_t i = 0; i < operands.size(); ++i) {
    int32_t want = select && i == 0 ? ORR_BOOL : dtype;
    if (operands[i].id == kNone) {
      regs[i] = op.expr.push(ORR_FN_CONST, want, -1, -1, -1, operands[i].value);
      continue;
    }
    ValueId v = operands[i].id;
    if (type(v).dtype != want) v = cast(v, want);
    auto at = std::find(op.in.begin(), op.in.end(), v);
    if (at == op.in.end()) op.in.push_back(v), at = op.in.end() - 1;
    regs[i] = op.expr.push(ORR_FN_INPUT, want, static_cast<int32_t>(at - op.in.begin()));
  }
  if (op.in.empty()) fail_here(std::string(row.name) + ": no operand is a tensor");
  if (fn == ORR_FN_INPUT) {
    op.expr.outputs = {regs[0]};
  } else {
    op.expr.outputs = {op.expr.push(fn, row.boolean ? ORR_BOOL : dtype, regs[0], regs[1], regs[2])};
  }
  append(std::move(op));
  return ops_.back().out[0];
}

ValueId Program::cast(ValueId x, int32_t dtype) {
  if (type(x).dtype == dtype) return x;
  if (value(x).role == Role::scalar && dtype == ORR_F64 && type(x).dtype == ORR_F32)
    return scalar_input(value(x).name, dtype);  // with all of its digits
  Op op;
  op.kind = "pointwise", op.phase = phase_, op.site = site_;
  op.in = {x};
  int32_t r = op.expr.push(ORR_FN_INPUT, type(x).dtype, 0);
  op.expr.outputs = {op.expr.push(ORR_FN_CAST, dtype, r)};
  append(std::move(op));
  return ops_.back().out[0];
}

ValueId Program::constant(double number, int32_t dtype, const Dims& dims) {
  if (!fits(number, dtype))
    fail_here(fmt::format("the number {} does not fit into {}", number, dtype_name(dtype)));
  Op op;
  op.kind = "pointwise", op.phase = phase_, op.site = site_;
  op.attrs.set("dims", dims);
  op.expr.outputs = {op.expr.push(ORR_FN_CONST, dtype, -1, -1, -1, number)};
  append(std::move(op));
  return ops_.back().out[0];
}

ValueId Program::random_uniform(const Type& type, ValueId like) {
  Op op;
  op.kind = "pointwise", op.phase = phase_, op.site = site_;
  op.in = {seed(), step()};
  op.attrs.set("dims", type.dims);
  int32_t s = op.expr.push(ORR_FN_INPUT, ORR_I64, 0), t = op.expr.push(ORR_FN_INPUT, ORR_I64, 1);
  int32_t base = op.expr.push(ORR_FN_CONST, ORR_I64, -1, -1, -1, 0);
  op.expr.outputs = {
      op.expr.push(ORR_FN_RAND, type.dtype, s, t, base, static_cast<double>(next_rng_id()))};
  append(std::move(op));
  ValueId out = ops_.back().out[0];
  if (like != kNone && value(like).batch() == Batch::sharded)
    mutable_value(out).set_batch(Batch::sharded, value(like).batch_dim());
  return out;
}

ValueId Program::with_gradient(ValueId y, const std::vector<ValueId>& xs, UserGradient backward) {
  std::vector<ValueId> in = {y};
  in.insert(in.end(), xs.begin(), xs.end());
  user_gradients_.push_back(std::move(backward));
  return add1("user_gradient", in, {{"index", static_cast<int64_t>(user_gradients_.size()) - 1}});
}

ValueId Program::now(ValueId v) const {
  for (auto at = replaced_.find(v); at != replaced_.end(); at = replaced_.find(v)) v = at->second;
  return v;
}

void Program::update(ValueId state, ValueId next) {
  if (!value(state).state) fail_here("only parameters and states can be updated");
  if (type(state) != type(next))
    fail_here(fmt::format("state '{}' is {}, its new value {}", value(state).name,
                          to_string(type(state)), to_string(type(next))));
  if (value(next).batch() == Batch::sharded)
    fail_here(
        fmt::format("state '{}' is one for all samples, its new value {} has one for each: "
                    "reduce it over dim {}, such as with :mean({})",
                    value(state).name, to_string(type(next)), value(next).batch_dim() + 1,
                    value(next).batch_dim() + 1));
  if (value(next).batch() == Batch::partial) next = add1("total", {next});
  if (!value(next).varying().empty())
    check_varies_within(*this, next, value(state).varying(),
                        fmt::format("'{}'", value(state).name));
  for (auto& [old, now] : updates_)
    if (old == state) {
      now = next;
      return;
    }
  updates_.emplace_back(state, next);
}

void Program::output(const std::string& name, ValueId id) {
  check_varies_within(*this, id, "", fmt::format("the result '{}'", name));
  outputs_.emplace_back(name, id);
}

}  // namespace orrery
