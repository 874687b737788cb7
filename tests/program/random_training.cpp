// SPDX-License-Identifier: Apache-2.0
#include "random_training.h"

#include <cmath>
#include <numeric>

#include "base/error.h"
#include "program/autodiff.h"
#include "program/build.h"
#include "program/build_comm.h"
#include "program/state.h"
#include "program/train.h"

namespace program_test {

using namespace orrery;

namespace {

int64_t elements(const Dims& dims) { return Type{ORR_F32, dims}.elements(); }

// Rows of the table that a script can have a part in, each with the factors that the batch may be.
struct Usable {
  Entry entry;
  std::vector<std::vector<int>> cuts;
};

const std::vector<Usable>& usable() {
  static const std::vector<Usable> found = [] {
    std::vector<Usable> rows;
    for (const Entry& e : all_entries()) {
      // Means, updates and gradients make them.
      if (e.kind == "batch_mean" || e.kind == "total" || e.kind == "batch_sum" ||
          e.kind.ends_with("_grad"))
        continue;
      rows.push_back({e, e.sharding ? cuts(e) : std::vector<std::vector<int>>{}});
    }
    return rows;
  }();
  return found;
}

}  // namespace

RandomTraining::RandomTraining(uint32_t seed) : random_(seed) {
  p_.set_site({"net", "model.lua:1"});
  batch_ = any(std::vector<int64_t>{1, 4, 5, 6, 6, 6, 7, 12});
  optimizer_ = pick(4), smooth_ = optimizer_ == 0;
  scalars_ = {{"$seed", {7}}, {"$step", {3}}, {"lr", {0.0625}}};
  sharded_.push_back(field({ORR_F32, {batch_, 3}}, -1, 1, false));
  shared_.push_back(state("w", {ORR_F32, {3}}, Role::param, -1, 1));
  const size_t ops = 2 + pick(9);
  for (size_t i = 0; i < ops; ++i) {
    p_.set_site({fmt::format("net.{}", i), fmt::format("model.lua:{}", 2 + i)});
    attempt([&] { chance(0.2) ? extra() : apply(any(usable()).entry); });
  }
  p_.set_site({"net", "model.lua:90"});
  for (size_t i = pick(3); i-- > 0;) attempt([&] { update_state(); });
  p_.set_site({"net", "model.lua:91"});
  const ValueId l = loss();
  TrainParts parts;
  parts.update = [this](Program&, const std::shared_ptr<State>& s, ValueId value,
                        ValueId gradient) { return optimize(s, value, gradient); };
  if (chance(0.3)) clip_norms(parts);
  build_training(p_, l, params_, parts);
  p_.set_site({"net", "model.lua:92"});
  results(l);
}

// All gradients together, those of some parameters, or those of the others as well.
void RandomTraining::clip_norms(TrainParts& parts) {
  const double limit = number(0.1, 2);
  const auto middle = params_.begin() + static_cast<long>(params_.size() / 2);
  parts.clips = {{limit, params_}};
  if (batch_ % 3 > 0) parts.clips = {{limit, {params_.begin(), middle}}};
  if (batch_ % 3 > 1) parts.clips.push_back({limit / 2, {middle, params_.end()}});
  smooth_ = false;
}

// A script ends at its first error; here it goes on without the line.
template <class Body>
void RandomTraining::attempt(Body body) {
  try {
    body();
  } catch (const Error& e) {
    refused_.push_back(e.what());
  }
}

ValueId RandomTraining::state(const std::string& kind, const Type& type, Role role, double lo,
                              double hi) {
  auto s = std::make_shared<State>();
  s->name = kind + std::to_string(n_states_++), s->type = type, s->role = role, s->site = p_.site();
  HostTensor t = HostTensor::make(type);
  for (int64_t i = 0; i < type.elements(); ++i)
    t.data<float>()[i] = static_cast<float>(number(lo, hi));
  s->initial = Initial::of_data(t);
  if (role == Role::param) params_.push_back(s);
  return p_.state_value(s);
}

ValueId RandomTraining::field(const Type& type, double lo, double hi, bool whole) {
  const std::string name = fmt::format("f{}", fields_.size());
  Values v;
  for (int64_t i = 0; i < type.elements(); ++i)
    v.push_back(whole ? std::floor(number(lo, hi)) : static_cast<float>(number(lo, hi)));
  fields_[name] = v;
  return p_.batch_input(name, type);
}

// Between lo and hi, whatever x is.
ValueId RandomTraining::into(ValueId x, double lo, double hi) {
  ValueId s = p_.pointwise(ORR_FN_SIGMOID, {x});
  ValueId wide = p_.pointwise(ORR_FN_MUL, {s, Operand::number(hi - lo)});
  return p_.pointwise(ORR_FN_ADD, {wide, Operand::number(lo)});
}

// A value of samples with these dims.
ValueId RandomTraining::samples(const Dims& dims, int batch_dim, const In& in) {
  Dims first{batch_}, back;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (static_cast<int>(d) != batch_dim) first.push_back(dims[d]);
    back.push_back(static_cast<int>(d) == batch_dim
                       ? 0
                       : static_cast<int64_t>(d) + (static_cast<int>(d) < batch_dim));
  }
  const int32_t dtype = in.dtype ? in.dtype : int32_t{ORR_F32};
  ValueId x = kNone;
  if (dtype == ORR_BOOL) {
    x = p_.pointwise(ORR_FN_GT, {field({ORR_F32, first}, -1, 1, false), Operand::number(0)});
  } else if (dtype != ORR_F32) {
    x = field({dtype, first}, in.lo, in.hi, true);
  } else if (chance(0.3)) {
    x = field({ORR_F32, first}, in.lo, in.hi, in.fill == In::whole);
  } else {
    x = into(fit(build::reshape(p_, build::batch_first(p_, any(sharded_)), {batch_, -1}), first),
             in.lo, in.hi);
    if (in.fill != In::uniform) x = p_.pointwise(ORR_FN_FLOOR, {x}), smooth_ = false;
  }
  return batch_dim == 0 ? x : build::transpose(p_, x, back);
}

// x [rows, n] as `dims` of as many rows: multiplied by a matrix if it has another width.
ValueId RandomTraining::fit(ValueId x, const Dims& dims) {
  const int64_t rows = p_.type(x).dims[0], have = p_.type(x).dims[1], want = elements(dims) / rows;
  if (have != want) {
    ValueId w = state("w", {ORR_F32, {have, want}}, Role::param, -1, 1);
    x = build::matmul(p_, x, w);
  }
  return build::reshape(p_, x, dims);
}

// A value of these dims that is the same for all samples.
ValueId RandomTraining::shared(const Dims& dims, const In& in) {
  const int32_t dtype = in.dtype ? in.dtype : int32_t{ORR_F32};
  if (dtype != ORR_F32) {
    ValueId count = build::reshape(p_, build::iota(p_, elements(dims), ORR_I64), dims);
    ValueId x = p_.pointwise(ORR_FN_MOD, {count, Operand::number(std::max(1.0, in.hi))});
    return dtype == ORR_BOOL ? p_.pointwise(ORR_FN_GT, {x, Operand::number(0)}) : p_.cast(x, dtype);
  }
  ValueId x = chance(0.5)   ? state("w", {ORR_F32, dims}, Role::param, in.lo, in.hi)
              : chance(0.3) ? state("s", {ORR_F32, dims}, Role::state, in.lo, in.hi)
                            : fit(build::reshape(p_, any(shared_), {1, -1}), dims);
  return chance(0.5)               ? into(x, in.lo, in.hi)
         : p_.type(x).dims == dims ? x
                                   : build::reshape(p_, x, dims);
}

void RandomTraining::keep(ValueId v) {
  const Value& value = p_.value(v);
  if (value.type.dtype != ORR_F32 || value.type.elements() == 0) return;
  (value.batch() == Batch::sharded   ? sharded_
   : value.batch() == Batch::partial ? sums_
   : value.batch() == Batch::mean    ? means_
                                     : shared_)
      .push_back(v);
}

// The op of a row, its batch factor as long as the batch; now and then an op of what all share.
void RandomTraining::apply(const Entry& e) {
  const Usable* row = nullptr;
  for (const Usable& u : usable())
    if (u.entry.name == e.name) row = &u;
  const bool batched = !row->cuts.empty() && !e.in.empty() && chance(0.8);
  std::vector<int> dim(e.in.size(), kNone);
  if (batched) dim = any(row->cuts);
  static const std::set<int32_t> steps = {ORR_FN_SIGN, ORR_FN_FLOOR, ORR_FN_CEIL, ORR_FN_ROUND,
                                          ORR_FN_MOD};
  if (steps.count(e.fn) || e.kind == "argmax" || e.kind == "topk" || e.kind == "categorical" ||
      (e.kind == "pointwise" && scalar_fn(e.fn).boolean))
    smooth_ = false;
  Ids in;
  for (size_t i = 0; i < e.in.size(); ++i) {
    Dims dims = e.in[i].dims;
    if (dim[i] != kNone) dims[static_cast<size_t>(dim[i])] = batch_;
    in.push_back(dim[i] != kNone ? samples(dims, dim[i], e.in[i]) : shared(dims, e.in[i]));
  }
  if (!e.gradient && !e.refuses.empty())
    for (ValueId& v : in) v = build::stop_gradient(p_, v);
  Ids out = e.build(p_, in);
  static const std::set<std::string> with_statistics = {"layernorm", "rmsnorm", "attention",
                                                        "cross_entropy"};
  if (with_statistics.count(e.kind)) out.resize(1);  // the others are for the gradient
  for (ValueId v : out) keep(v);
}

ValueId RandomTraining::summed() {
  ValueId x = any(sharded_);
  Dims all(p_.type(x).dims.size());
  std::iota(all.begin(), all.end(), 0);
  if (chance(0.5)) x = p_.pointwise(ORR_FN_ADD, {x, Operand::number(0.25)});
  if (chance(0.4) && p_.value(x).batch_dim() == 0 && all.size() > 1) all = {0};
  return chance(0.5) ? build::mean(p_, x, all, false)
                     : build::reduce(p_, chance(0.7) ? "sum" : "sumsq", x, all, false);
}

// x [batch, width] with something of all samples in each: a statistic, or how it is like others.
ValueId RandomTraining::of_batch(ValueId x) {
  const int64_t width = p_.type(x).dims[1];
  if (chance(0.7)) x = p_.pointwise(ORR_FN_MUL, {x, shared({width}, {})});
  ValueId all = build::all_gather(p_, x, build::kBatch, 0);
  ValueId s = kNone;
  switch (pick(5)) {
    case 0: s = build::mean(p_, x, {0}, true); break;
    case 1: s = build::reduce(p_, chance(0.5) ? "sum" : "sumsq", x, {0}, false); break;
    case 2: s = build::reduce(p_, chance(0.5) ? "sum" : "max", all, {0}, false); break;
    case 3: return build::matmul(p_, p_.pointwise(ORR_FN_TANH, {x}), all, false, true);
    default: s = sums_.empty() ? build::mean(p_, x, {0}, true) : any(sums_);
  }
  if (chance(0.3)) s = p_.pointwise(ORR_FN_MUL, {s, shared({}, {})});
  if (chance(0.5)) s = p_.pointwise(ORR_FN_TANH, {s});
  return p_.pointwise(chance(0.5) ? ORR_FN_SUB : ORR_FN_MUL, {x, s});
}

// What no row has alone: sharing along the batch, sums of samples and of what they share, masks.
void RandomTraining::extra() {
  ValueId x = build::reshape(p_, build::batch_first(p_, any(sharded_)), {batch_, -1});
  const int64_t width = p_.type(x).dims[1];
  switch (pick(15)) {
    case 0: return keep(p_.pointwise(ORR_FN_ADD, {x, shared({width}, {})}));
    case 1: return keep(p_.pointwise(ORR_FN_MUL, {x, shared({1, width}, {})}));
    case 2: return keep(summed());
    case 3: return keep(build::broadcast_like(p_, shared({1, width}, {}), x));
    case 4: {
      ValueId mask = p_.pointwise(ORR_FN_GT, {shared({width}, {}), Operand::number(0)});
      return keep(p_.pointwise(ORR_FN_SELECT, {mask, x, shared({}, {})}));
    }
    case 5: return keep(build::dropout(p_, x, 0.3));
    case 6: {  // matrices that all samples share, one for each of two parts
      ValueId w = state("w", {ORR_F32, {2, width, 3}}, Role::param, -1, 1);
      return keep(build::matmul(p_, build::reshape(p_, x, {batch_, 1, 1, width}), w));
    }
    case 7: {  // tokens in one dim with the samples
      ValueId rows = build::reshape(p_, samples({batch_, 2, 5}, 0, {}), {-1, 5});
      ValueId labels = build::reshape(p_, field({ORR_I64, {batch_, 2}}, 0, 5, true), {-1});
      return keep(build::cross_entropy(p_, rows, labels, kNone, std::nullopt));
    }
    case 8:
    case 9: return keep(of_batch(x));
    case 10:
      return keep(build::reduce(p_, chance(0.5) ? "sum" : "sumsq",
                                build::all_gather(p_, x, build::kBatch, 0), {0}, false));
    case 11: {  // how well each sample is told from the others
      ValueId alike = build::matmul(p_, x, build::all_gather(p_, x, build::kBatch, 0), false, true);
      return keep(build::cross_entropy(p_, alike, build::sample_index(p_), kNone, std::nullopt));
    }
    case 12: return derivative();
    case 13:
      smooth_ = false;  // another number of microbatches has other means
      return keep(p_.pointwise(ORR_FN_SUB, {x, build::microbatch_mean(p_, x).first}));
    default:
      return keep(p_.pointwise(ORR_FN_MUL, {p_.pointwise(ORR_FN_TANH, {x}),
                                            p_.cast(p_.scalar_input("lr", ORR_F32), ORR_F32)}));
  }
}

// Of a sum over the batch by what samples have, or of a mean by what they share.
void RandomTraining::derivative() {
  const bool own = chance(0.5);
  ValueId y = p_.pointwise(ORR_FN_SIN, {any(sharded_)});
  y = own ? build::reduce(p_, "sum", y, {}, false) : build::mean(p_, y, {}, false);
  const ValueId x = own ? any(sharded_) : any(shared_);
  smooth_ = false;  // slopes may jump
  const ValueId d = derivatives(p_, y, p_.constant(1, ORR_F32), {x})[0];
  keep(own ? into(d, -2, 2) : d);
}

// A state's next value out of the whole batch, of its old value, or of both.
void RandomTraining::update_state() {
  ValueId next = sums_.empty() || chance(0.6)    ? summed()
                 : chance(0.5) || means_.empty() ? any(sums_)
                                                 : any(means_);
  ValueId s = state("s", p_.type(next), Role::state, -1, 1);
  auto scaled = [&](ValueId v, double by) {
    return p_.pointwise(ORR_FN_MUL, {v, Operand::number(by)});
  };
  if (chance(0.3)) next = p_.pointwise(ORR_FN_TANH, {next});
  if (chance(0.2)) next = p_.pointwise(ORR_FN_MUL, {next, next});
  if (chance(0.3)) next = p_.pointwise(ORR_FN_ADD, {next, Operand::number(1)});
  if (chance(0.6)) next = p_.pointwise(ORR_FN_ADD, {scaled(s, 0.75), scaled(next, 0.25)});
  p_.update(s, next);
  if (chance(0.3)) {  // a running sum of the old value and of samples
    ValueId x = build::reshape(p_, build::batch_first(p_, any(sharded_)), {batch_, -1});
    ValueId t = state("s", {ORR_F32, {p_.type(x).dims[1]}}, Role::state, -1, 1);
    ValueId both = p_.pointwise(ORR_FN_ADD, {scaled(t, 0.25), scaled(x, 0.25)});
    p_.update(t, build::reduce(p_, "sum", both, {0}, false));
  }
}

ValueId RandomTraining::term() {
  ValueId x = any(sharded_);
  if (chance(0.3)) x = p_.pointwise(ORR_FN_TANH, {x});
  if (chance(0.4)) x = p_.pointwise(ORR_FN_MUL, {x, x});
  ValueId m = build::mean(p_, x, {}, false);
  if (chance(0.2))
    m = p_.pointwise(ORR_FN_MUL, {m, build::reduce(p_, "sum", any(shared_), {}, false)});
  if (chance(0.3)) m = p_.pointwise(ORR_FN_DIV, {m, Operand::number(number(1, 3))});
  return m;
}

ValueId RandomTraining::loss() {
  ValueId last = sharded_.back();
  if (chance(0.2))
    attempt([&] {
      last = of_batch(build::reshape(p_, build::batch_first(p_, last), {batch_, -1}));
    });
  ValueId all = build::mean(p_, last, {}, false);
  for (size_t i = pick(3); i-- > 0;)
    attempt([&] { all = p_.pointwise(chance(0.5) ? ORR_FN_ADD : ORR_FN_SUB, {all, term()}); });
  if (chance(0.4))
    all = p_.pointwise(
        ORR_FN_ADD,
        {all, p_.pointwise(ORR_FN_MUL, {build::reduce(p_, "sumsq", any(shared_), {}, false),
                                        Operand::number(0.125)})});
  return all;
}

void RandomTraining::results(ValueId loss) {
  auto give = [&](const std::string& name, ValueId v) {
    attempt([&] {
      if (!p_.type(v).dims.empty()) v = build::reduce(p_, "sum", v, {}, false);
      p_.output(name, p_.value(v).batch() == Batch::partial ? p_.add1("total", {v}) : v);
    });
  };
  if (chance(0.5)) give("sum", build::reduce(p_, "sum", sharded_[0], {}, false));
  if (chance(0.5)) give("sumsq", build::reduce(p_, "sumsq", any(sharded_), {}, false));
  if (chance(0.5)) give("summed", summed());
  if (chance(0.3)) give("again", loss);
  if (chance(0.3)) give("shared", any(shared_));
  if (chance(0.3)) give("lr", p_.scalar_input("lr", ORR_F32));
  if (chance(0.3)) give("exp", p_.pointwise(ORR_FN_EXP, {loss}));
  if (!sums_.empty() && chance(0.5)) give("any sum", any(sums_));
  if (!means_.empty() && chance(0.5)) give("any mean", any(means_));
  if (chance(0.3)) {
    ValueId s = state("s", {ORR_F32, {}}, Role::state, -1, 1);
    give("old", s);
    p_.update(s, build::reduce(p_, "sum", sharded_[0], {}, false));
  }
}

ValueId RandomTraining::optimize(const std::shared_ptr<State>& param, ValueId value,
                                 ValueId gradient) {
  auto f = [&](int32_t fn, std::vector<Operand> in) { return p_.pointwise(fn, in); };
  auto num = [](double x) { return Operand::number(x); };
  ValueId lr = p_.scalar_input("lr", ORR_F32), d = gradient;
  auto moment = [&](const char* name, ValueId now, double keep) {
    auto s = std::make_shared<State>();
    s->name = std::string("optim.") + param->name + name, s->type = param->type,
    s->role = Role::state;
    ++n_states_;
    ValueId old = p_.state_value(s);
    ValueId next =
        f(ORR_FN_ADD, {f(ORR_FN_MUL, {old, num(keep)}), f(ORR_FN_MUL, {now, num(1 - keep)})});
    p_.update(old, next);
    return next;
  };
  if (optimizer_ == 1) d = moment(".m", d, 0.9);
  if (optimizer_ >= 2) {
    ValueId m = moment(".m", d, 0.9), v = moment(".v", f(ORR_FN_MUL, {d, d}), 0.99);
    d = f(ORR_FN_DIV, {m, f(ORR_FN_ADD, {f(ORR_FN_SQRT, {v}), num(1e-3)})});
  }
  if (optimizer_ == 3) {  // by the ratio of norms
    ValueId up = f(ORR_FN_SQRT, {build::reduce(p_, "sumsq", value, {}, false)}),
            down = f(ORR_FN_ADD,
                     {f(ORR_FN_SQRT, {build::reduce(p_, "sumsq", d, {}, false)}), num(1e-3)});
    d = f(ORR_FN_MUL, {d, f(ORR_FN_DIV, {up, down})});
  }
  if (optimizer_ & 1) d = f(ORR_FN_ADD, {d, f(ORR_FN_MUL, {value, num(0.01)})});
  return f(ORR_FN_SUB, {value, f(ORR_FN_MUL, {d, lr})});
}

}  // namespace program_test
