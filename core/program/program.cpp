// SPDX-License-Identifier: Apache-2.0
#include "program/program.h"

#include <algorithm>
#include <stdexcept>

#include "base/error.h"
#include "program/op.h"
#include "program/state.h"

namespace orrery {
namespace {

// FNV-1a, so that RNG ids are the same on every machine and build. 31 bits: the ABI carries them in
// a double and in a Philox counter word.
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
  return static_cast<ValueId>(values_.size()) - 1;
}

ValueId Program::find(Role role, const std::string& name) const {
  for (size_t i = 0; i < values_.size(); ++i)
    if (values_[i].role == role && values_[i].name == name) return static_cast<ValueId>(i);
  return kNone;
}

ValueId Program::batch_input(const std::string& name, const Type& type) {
  if (ValueId found = find(Role::batch, name); found != kNone) return found;
  if (type.dims.empty())
    fail_here(fmt::format("batch field '{}' has no dims: the first one is the batch", name));
  if (batch_size_ && type.dims[0] != batch_size_)
    fail_here(fmt::format("batch field '{}' has {} rows, the others have {}", name, type.dims[0],
                          batch_size_));
  batch_size_ = type.dims[0];
  ValueId id = new_value(type, Role::batch, name);
  values_.back().batch = Batch::sharded;
  values_.back().batch_dim = 0;
  return id;
}

ValueId Program::scalar_input(const std::string& name, int32_t dtype) {
  if (ValueId found = find(Role::scalar, name); found != kNone) return found;
  return new_value({dtype, {}}, Role::scalar, name);
}

ValueId Program::input(const std::string& name, const Type& type) {
  return new_value(type, Role::input, name);
}

ValueId Program::state_value(const std::shared_ptr<State>& state) {
  for (size_t i = 0; i < values_.size(); ++i)
    if (values_[i].state == state) return static_cast<ValueId>(i);
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
  return hash_id(site_.region + "#" + std::to_string(ordinal));
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
  p.values_.resize(values_.size());
  for (size_t v = 0; v < values_.size(); ++v)
    if (keep(static_cast<ValueId>(v))) p.values_[v] = values_[v];
  p.updates_ = updates_, p.outputs_ = outputs_, p.rng_ordinals_ = rng_ordinals_;
  p.user_gradients_ = user_gradients_, p.site_ = site_, p.phase_ = phase_,
  p.batch_size_ = batch_size_;
  for (Value& v : p.values_) v.producer = kNone;
  return p;
}

void Program::append(Op op) {
  if (op.twin == kNone) op.twin = twin_;
  if (op.out.empty()) {
    const OpDef& def = op_def(op.kind);
    std::vector<Type> types;
    try {
      types = def.infer(args_of(*this, op));
    } catch (const std::invalid_argument& e) {
      fail_here(op.kind + ": " + e.what());
    }
    for (const Type& t : types) op.out.push_back(new_value(t, Role::activation));
    relate_to_batch(op);
  }
  for (size_t j = 0; j < op.out.size(); ++j) {
    Value& v = mutable_value(op.out[j]);
    v.producer = static_cast<OpId>(ops_.size());
    v.out_index = static_cast<int32_t>(j);
  }
  ops_.push_back(std::move(op));
}

// A partial or mean operand needs a linear op; `total` and `batch_mean` are where partials end.
static void check_linear(const Program& p, const Op& op, Batch kind) {
  const char* what = kind == Batch::mean ? "a mean over the batch" : "a sum over the batch";
  auto refuse = [&](const std::string& name) {
    p.fail_here(
        fmt::format("{}: {} is known only after all microbatches, so only sums and multiples "
                    "of it can be formed, not a nonlinear function; apply '{}' to each "
                    "sample before the mean, or to the result of the step",
                    name, what, name));
  };
  if (op.kind == "pointwise") {
    int32_t fn = op.expr.instrs.back().fn;
    int varying = 0;
    for (ValueId v : op.in) varying += p.value(v).batch == kind;
    const orr_instr& last = op.expr.instrs.back();
    auto varies = [&](int32_t r) {
      const orr_instr& i = op.expr.instrs[static_cast<size_t>(r)];
      return i.fn == ORR_FN_INPUT && p.value(op.in[static_cast<size_t>(i.a)]).batch == kind;
    };
    bool scaled = fn == ORR_FN_INPUT || (fn == ORR_FN_MUL && varies(last.a) != varies(last.b)) ||
                  (fn == ORR_FN_DIV && varies(last.a) && !varies(last.b));
    bool sum = scalar_fn(fn).linear && is_real(op.expr.instrs.back().dtype) &&
               (kind == Batch::mean || varying == static_cast<int>(op.in.size()));
    bool constants = std::any_of(op.expr.instrs.begin(), op.expr.instrs.end(),
                                 [](const orr_instr& i) { return i.fn == ORR_FN_CONST; });
    if (kind == Batch::partial && sum && constants) sum = false;
    if (!scaled && !sum) refuse(scalar_fn(fn).name);
  } else if (is_exchange(op.kind)) {
    return;  // moves or sums
  } else if (op.kind == "reduce" && attr_text(op.attrs, "fn", "") != "sum") {
    refuse(attr_text(op.attrs, "fn", ""));
  } else if (op.kind != "reduce" && op.kind != "reshape" && op.kind != "transpose" &&
             op.kind != "split" && op.kind != "concat" && op.kind != "stop_gradient") {
    refuse(op.kind);
  }
}

// Leaves are consecutive pieces of what a kernel sums over, so nothing may lie outside the batch.
static void check_sum(const Program& p, const Op& op) {
  for (size_t i = 0; i < op.in.size(); ++i) {
    const Value& v = p.value(op.in[i]);
    if (v.batch != Batch::sharded) continue;
    size_t outside = static_cast<size_t>(v.batch_dim);
    if (op.kind == "matmul") {
      bool merged = p.type(op.in[1]).dims.size() == 2 && !attr_int(op.attrs, "ta", 0);
      outside = merged ? 0 : v.type.dims.size() - 2;
    }
    for (size_t d = 0; d < outside; ++d)
      if (v.type.dims[d] > 1)
        p.fail_here(fmt::format("{}: cannot sum dim {} of {} over the batch: put the batch first",
                                op.kind, v.batch_dim + 1, to_string(v.type.dims)));
  }
}

void Program::relate_to_batch(Op& op) {
  auto all_outputs = [&](Batch batch) {
    for (ValueId v : op.out) mutable_value(v).batch = batch;
  };
  bool sharded = false, partial = false, mean = false;
  for (ValueId v : op.in) {
    sharded |= value(v).batch == Batch::sharded;
    partial |= value(v).batch == Batch::partial;
    mean |= value(v).batch == Batch::mean;
  }
  if (op.kind == "batch_mean") return all_outputs(Batch::mean);
  if (op.kind == "user_gradient") {
    Value& out = mutable_value(op.out[0]);
    out.batch = value(op.in[0]).batch, out.batch_dim = value(op.in[0]).batch_dim;
    return;
  }
  if (op.kind == "total" || !(sharded || partial || mean)) return;
  if ((sharded || partial) && mean)
    fail_here(op.kind +
              ": a mean over the batch is known only after all microbatches and cannot "
              "meet values of single samples");
  if (partial && sharded)
    fail_here(op.kind + ": a sum over the batch cannot meet values of single samples");
  if (mean || partial) {
    // Backward ops are linear in their cotangents, whatever their kind.
    if (op.phase != Phase::backward) check_linear(*this, op, mean ? Batch::mean : Batch::partial);
    return all_outputs(mean ? Batch::mean : Batch::partial);
  }
  Sharding s = op_def(op.kind).sharding(args_of(*this, op), out_types(*this, op));
  int factor = kNone;
  for (size_t i = 0; i < op.in.size(); ++i) {
    const Value& v = value(op.in[i]);
    if (v.batch != Batch::sharded) continue;
    int f = s.in[i][static_cast<size_t>(v.batch_dim)];
    if (f == kNone || (factor != kNone && f != factor))
      fail_here(
          fmt::format("{}: works across the samples of a batch along dim {} of {}; every "
                      "microbatch must be computable alone",
                      op.kind, v.batch_dim + 1, to_string(v.type.dims)));
    factor = f;
  }
  for (size_t i = 0; i < op.in.size(); ++i) {
    const Value& v = value(op.in[i]);
    if (v.batch == Batch::sharded) continue;
    for (size_t d = 0; d < s.in[i].size(); ++d)
      if (s.in[i][d] == factor && v.type.dims[d] > 1)
        fail_here(
            fmt::format("{}: operand {} {} does not depend on the batch but has the batch's "
                        "extent in dim {}; build it from a value of the batch",
                        op.kind, i + 1, to_string(v.type), d + 1));
  }
  for (size_t j = 0; j < op.out.size(); ++j) {
    Value& v = mutable_value(op.out[j]);
    auto at = std::find(s.out[j].begin(), s.out[j].end(), factor);
    if (at != s.out[j].end()) {
      v.batch = Batch::sharded;
      v.batch_dim = static_cast<int32_t>(at - s.out[j].begin());
      if (v.type.dims[static_cast<size_t>(v.batch_dim)] % std::max<int64_t>(batch_size_, 1))
        fail_here(op.kind + ": cuts the batch dim into pieces: " + to_string(v.type.dims));
    } else if (op.kind == "reduce" && attr_text(op.attrs, "fn", "") != "sum" &&
               attr_text(op.attrs, "fn", "") != "sumsq") {
      fail_here(
          "the " + attr_text(op.attrs, "fn", "") +
          " over the batch is known only after all microbatches and cannot be used in a model");
    } else {
      check_sum(*this, op);
      v.batch = Batch::partial;
    }
  }
}

ValueId Program::pointwise(int32_t fn, const std::vector<Operand>& operands) {
  const ScalarFn& row = scalar_fn(fn);
  if (static_cast<int>(operands.size()) != row.arity && fn != ORR_FN_INPUT)
    fail_here(fmt::format("{} takes {} operands, not {}", row.name, row.arity, operands.size()));
  bool select = fn == ORR_FN_SELECT, logic = fn >= ORR_FN_AND && fn <= ORR_FN_NOT;
  int32_t dtype = 0;
  for (size_t i = select ? 1 : 0; i < operands.size(); ++i)
    if (operands[i].id != kNone) {
      int32_t t = type(operands[i].id).dtype;
      if (!dtype || promotion_rank(t) > promotion_rank(dtype)) dtype = t;
    }
  if (!dtype) dtype = ORR_F32;
  bool fraction =
      std::any_of(operands.begin() + (select ? 1 : 0), operands.end(), [](const Operand& o) {
        return o.id == kNone && o.value != static_cast<double>(static_cast<int64_t>(o.value));
      });
  bool real_only = fn == ORR_FN_DIV || (fn >= ORR_FN_SQRT && fn <= ORR_FN_COS) ||
                   fn == ORR_FN_GELU || fn == ORR_FN_GELU_GRAD || fn == ORR_FN_POW ||
                   fn == ORR_FN_ISFINITE;
  if ((fraction || real_only) && !is_real(dtype) && !logic) dtype = ORR_F32;
  if (dtype == ORR_BOOL && !logic && !select && fn != ORR_FN_INPUT && fn != ORR_FN_EQ &&
      fn != ORR_FN_NE)
    dtype = ORR_F32;
  if (logic) dtype = ORR_BOOL;
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
  Op op;
  op.kind = "pointwise", op.phase = phase_, op.site = site_;
  op.in = {x};
  int32_t r = op.expr.push(ORR_FN_INPUT, type(x).dtype, 0);
  op.expr.outputs = {op.expr.push(ORR_FN_CAST, dtype, r)};
  append(std::move(op));
  return ops_.back().out[0];
}

ValueId Program::constant(double number, int32_t dtype, const Dims& dims) {
  Op op;
  op.kind = "pointwise", op.phase = phase_, op.site = site_;
  op.attrs["dims"] = dims;
  op.expr.outputs = {op.expr.push(ORR_FN_CONST, dtype, -1, -1, -1, number)};
  append(std::move(op));
  return ops_.back().out[0];
}

ValueId Program::random_uniform(const Type& type, ValueId like) {
  Op op;
  op.kind = "pointwise", op.phase = phase_, op.site = site_;
  op.in = {seed(), step()};
  op.attrs["dims"] = type.dims;
  int32_t s = op.expr.push(ORR_FN_INPUT, ORR_I64, 0), t = op.expr.push(ORR_FN_INPUT, ORR_I64, 1);
  int32_t base = op.expr.push(ORR_FN_CONST, ORR_I64, -1, -1, -1, 0);
  op.expr.outputs = {
      op.expr.push(ORR_FN_RAND, type.dtype, s, t, base, static_cast<double>(next_rng_id()))};
  append(std::move(op));
  ValueId out = ops_.back().out[0];
  if (like != kNone && value(like).batch == Batch::sharded) {
    mutable_value(out).batch = Batch::sharded;
    mutable_value(out).batch_dim = value(like).batch_dim;
  }
  return out;
}

ValueId Program::with_gradient(ValueId y, const std::vector<ValueId>& xs, UserGradient backward) {
  std::vector<ValueId> in = {y};
  in.insert(in.end(), xs.begin(), xs.end());
  user_gradients_.push_back(std::move(backward));
  return add1("user_gradient", in, {{"index", static_cast<int64_t>(user_gradients_.size()) - 1}});
}

void Program::update(ValueId state, ValueId next) {
  if (!value(state).state) fail_here("only parameters and states can be updated");
  if (type(state) != type(next))
    fail_here(fmt::format("state '{}' is {}, its new value {}", value(state).name,
                          to_string(type(state)), to_string(type(next))));
  for (auto& [old, now] : updates_)
    if (old == state) {
      now = next;
      return;
    }
  updates_.emplace_back(state, next);
}

void Program::output(const std::string& name, ValueId id) { outputs_.emplace_back(name, id); }

}  // namespace orrery
