// SPDX-License-Identifier: Apache-2.0
#include "edit/calls.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "edit/edit_table.h"
#include "lower/abi_op.h"
#include "plugin/host.h"
#include "program/op.h"
#include "program/rewrite.h"

namespace orrery::edit {
namespace {

const Op& op_that_makes(const orr_program* e, int32_t value) {
  check_value(e, value);
  const OpId maker = e->program->value(value).producer;
  if (maker == kNone) fail(ORR_INVALID, "{} is given: no op makes it", title(*e->program, value));
  return e->program->ops()[static_cast<size_t>(maker)];
}

// Copies lie over ranks as the values that they repeat.
void place_alike(Mesh& mesh, const std::vector<ValueId>& originals,
                 const std::vector<ValueId>& copies) {
  for (Placing& placing : mesh.placed)
    for (size_t i = 0; i < copies.size(); ++i)
      if (const auto asked = placing.values.find(originals[i]); asked != placing.values.end())
        placing.values.emplace(copies[i], PartsAsked(asked->second));
}

Phase phase_of(int32_t phase) {
  if (phase < ORR_PHASE_FORWARD || phase > ORR_PHASE_UPDATE)
    fail(ORR_INVALID, "there is no phase {}", phase);
  return static_cast<Phase>(phase);
}

void check_dtype(int32_t dtype) {
  if (dtype && !is_real(dtype)) fail(ORR_INVALID, "dtype {} is not one of real numbers", dtype);
}

// Makes `now` the gradient in place of `before`: the one that is summed over the batch and reduced.
void be_gradient(orr_program* e, ValueId before, ValueId now) {
  Value &old = e->program->mutable_value(before), &made = e->program->mutable_value(now);
  std::swap(old.role, made.role), std::swap(old.name, made.name);
  auto reduced = e->mesh->reduced.extract(before);
  if (reduced.empty()) return;
  reduced.key() = now;
  e->mesh->reduced.insert(std::move(reduced));
}

}  // namespace

orr_value_info info_of(const Program& p, const Value& v) {
  orr_value_info info{};
  const Op* maker = v.producer == kNone ? nullptr : &p.ops()[static_cast<size_t>(v.producer)];
  const Phase runs = maker ? maker->phase : Phase::forward;
  // A derivative that the loss reads is computed in forward, but is not part of a layer's forward.
  const bool derivative = maker && runs == Phase::forward && maker->twin != kNone;
  info.size = sizeof info;
  info.kind = maker ? maker->kind.c_str() : "";
  info.phase = static_cast<int32_t>(derivative ? Phase::backward : runs);
  info.role = static_cast<int32_t>(v.role);
  info.type = Strided::contiguous(v.type).abi();
  info.name = v.name.c_str(), info.region = v.site.region.c_str(), info.where = v.site.line.c_str();
  info.batch = static_cast<int32_t>(v.batch());
  info.batch_dim = v.batch() == Batch::sharded ? v.batch_dim() : kNone;
  info.op = v.producer, info.output = v.out_index, info.runs = static_cast<int32_t>(runs);
  info.chunk = maker ? maker->stage : kNone;
  info.beside = v.state ? v.state->beside.c_str() : "";
  return info;
}

orr_status* info(orr_program* e, int32_t value, orr_value_info* out) {
  return guarded([&] {
    check_value(e, value);
    orr_value_info known = info_of(*e->program, e->program->value(value));
    known.size = out->size;
    std::memcpy(out, &known, std::min<size_t>(out->size, sizeof known));
  });
}

orr_status* maker(orr_program* e, int32_t value, void* arg,
                  orr_status* (*visit)(void*, const orr_op_desc*)) {
  return guarded([&] {
    const Op& op = op_that_makes(e, value);
    std::vector<orr_attr> attrs;
    for (auto& [name, attr] : op.attrs) attrs.push_back(abi_attr(name, attr));
    const orr_expr expr = abi_expr(op.expr);
    const orr_op_desc desc = {sizeof desc,
                              static_cast<int32_t>(op.in.size()),
                              static_cast<int32_t>(attrs.size()),
                              op.kind.c_str(),
                              op.in.data(),
                              attrs.data(),
                              op.expr.instrs.empty() ? nullptr : &expr};
    check(visit(arg, &desc));
  });
}

orr_status* beside(orr_program* e, int32_t value, int32_t phase) {
  return guarded([&] {
    Program& p = *e->program;
    if (!e->before) e->before = {p.phase(), p.site()};
    p.set_phase(phase_of(phase));
    p.set_twin(kNone), p.set_stage(0);
    if (value == kNone) return p.set_site({"", e->use->line});
    check_value(e, value);
    p.set_twin(twin_beside(p, value, phase_of(phase)));
    p.set_site(p.value(value).site);
    if (const OpId maker = p.value(value).producer; maker != kNone)
      p.set_stage(p.ops()[static_cast<size_t>(maker)].stage);
  });
}

orr_status* before(orr_program* e, int32_t value) {
  return guarded([&] {
    const auto next = static_cast<OpId>(e->program->ops().size());
    if (value != kNone) op_that_makes(e, value);
    e->stands.push_back({next, value == kNone ? kNone : e->program->value(value).producer});
  });
}

orr_status* copy(orr_program* e, int32_t value, int32_t phase, const int32_t* in, int32_t n_in,
                 int32_t* out, int32_t capacity, int32_t* n) {
  return guarded([&] {
    const std::vector<ValueId> originals = op_that_makes(e, value).out;
    for (int32_t i = 0; i < n_in; ++i) check_value(e, in[i]);
    const std::vector<ValueId> made =
        copy_op(*e->program, value, std::vector<ValueId>(in, in + n_in), phase_of(phase));
    place_alike(*e->mesh, originals, made);
    *n = copied(made, out, capacity);
  });
}

orr_status* replace(orr_program* e, int32_t value, int32_t by, uint32_t uses) {
  return guarded([&] {
    check_value(e, value), check_value(e, by);
    replace_uses(*e->program, value, by, uses);
    if (uses == ORR_USES_ALL && e->program->value(value).role == Role::grad)
      be_gradient(e, value, by);
  });
}

orr_status* reread(orr_program* e, int32_t of, int32_t value, int32_t by) {
  return guarded([&] {
    op_that_makes(e, of), check_value(e, value), check_value(e, by);
    replace_input(*e->program, of, value, by);
    if (e->program->type(value) != e->program->type(by)) e->retyped = true;
  });
}

orr_status* retype(orr_program* e, int32_t value, int32_t compute, int32_t store) {
  return guarded([&] {
    op_that_makes(e, value), check_dtype(compute), check_dtype(store);
    retype_op(*e->program, value, compute, store);
    e->retyped = true;
  });
}

}  // namespace orrery::edit
