// SPDX-License-Identifier: Apache-2.0
#include "random_program.h"

#include <cstring>

#include "program/build.h"
#include "run/run.h"

namespace program_test {

using namespace orrery;

namespace {

constexpr int64_t kRows = 4, kColumns = 6;

HostTensor tensor(const Values& v) {
  HostTensor t = HostTensor::make({ORR_F32, {kRows, kColumns}});
  std::copy(v.begin(), v.end(), t.data<float>());
  return t;
}

}  // namespace

RandomProgram::RandomProgram(uint32_t seed) : random_(seed) {
  declare_inputs();
  size_t ops = 4 + pick(36), update = ops - pick(ops / 2);
  for (size_t i = 0; i < ops; ++i) {
    if (i == update) p_.set_phase(Phase::update);
    values_.push_back(next_value());
  }
  declare_results();
}

Values RandomProgram::fill(int64_t n) {
  Values v;
  std::uniform_real_distribution<float> uniform(-2, 2);
  for (int64_t i = 0; i < n; ++i) v.push_back(uniform(random_));
  return v;
}

void RandomProgram::declare_inputs() {
  for (const Dims& dims : {Dims{kRows, kColumns}, Dims{kColumns}, Dims{kRows, 1}, Dims{}}) {
    Type type{ORR_F32, dims};
    std::string name = to_string(dims);
    values_.push_back(p_.input(name, type));
    inputs_[name] = fill(type.elements());
  }
  for (int i = 0; i < 3; ++i) {
    auto s = std::make_shared<State>();
    s->name = "s" + std::to_string(i), s->type = {ORR_F32, {kRows, kColumns}},
    s->role = Role::state;
    states_.push_back(s);
    first_.push_back(fill(kRows * kColumns));
    values_.push_back(p_.state_value(s));
  }
}

// Shape ops, and a sum now and then, stand in the way of fusion.
ValueId RandomProgram::view() {
  ValueId x = any();
  Dims dims = p_.type(x).dims;
  if (dims.size() != 2) return build::reduce(p_, "sum", x, {}, false);
  switch (pick(3)) {
    case 0: return build::reshape(p_, build::transpose(p_, x, {1, 0}), {dims[0], dims[1]});
    case 1: return build::slice(p_, x, 1, 0, 1);
    default: return build::concat(p_, build::split(p_, x, 0, {dims[0] - 1, 1}), 0);
  }
}

ValueId RandomProgram::next_value() {
  static const int32_t unary[] = {ORR_FN_NEG, ORR_FN_ABS,   ORR_FN_TANH,
                                  ORR_FN_EXP, ORR_FN_FLOOR, ORR_FN_GELU};
  static const int32_t binary[] = {ORR_FN_ADD, ORR_FN_SUB, ORR_FN_MUL,
                                   ORR_FN_DIV, ORR_FN_MIN, ORR_FN_MAX};
  ValueId a = any(), b = any();
  switch (pick(8)) {
    case 0: return p_.pointwise(unary[pick(6)], {a});
    case 1: return p_.pointwise(binary[pick(6)], {a, Operand::number(0.75)});
    case 2: return p_.pointwise(ORR_FN_SELECT, {p_.pointwise(ORR_FN_LT, {a, b}), a, b});
    case 3: return p_.cast(p_.cast(a, ORR_F64), ORR_F32);
    case 4: return p_.pointwise(ORR_FN_MUL, {a, p_.constant(1.5, ORR_F32, {kRows, kColumns})});
    case 5: return view();
    default: return p_.pointwise(binary[pick(6)], {a, b});
  }
}

void RandomProgram::declare_results() {
  p_.set_phase(Phase::update);
  for (size_t i = 0; i < 3; ++i) give(p_, "out" + std::to_string(i), any());
  for (auto& s : states_) {
    ValueId next = any();
    if (p_.type(next).dims != s->type.dims) next = build::broadcast(p_, next, s->type.dims);
    if (pick(4)) p_.update(p_.state_value(s), next);
  }
}

Named RandomProgram::run(const std::string& kernels, bool fuse) {
  materialize(states_);
  for (size_t i = 0; i < states_.size(); ++i) write_state(*states_[i], tensor(first_[i]));
  Named found = Machine(p_, {kernels}, {}, fuse).run(inputs_);
  for (auto& s : states_) {
    HostTensor now = read_state(*s);
    found[s->name] = Values(now.data<float>(), now.data<float>() + now.type.elements());
  }
  return found;
}

}  // namespace program_test
