// SPDX-License-Identifier: Apache-2.0
#include "edit/calls.h"

#include <algorithm>
#include <cstddef>

#include "base/error.h"
#include "edit/edit_table.h"
#include "edit/plugin_ops.h"
#include "plugin/host.h"
#include "program/build_comm.h"
#include "program/op.h"
#include "program/state.h"

namespace orrery::edit {
int32_t copied(const std::vector<int32_t>& from, int32_t* to, int32_t capacity) {
  const int32_t n = static_cast<int32_t>(from.size());
  std::copy_n(from.begin(), std::min(n, capacity), to);
  return n;
}

int32_t append(orr_program* e, Op op, int32_t* out, int32_t capacity) {
  if (const PluginOp* plugin = find_plugin_op(op.kind))
    return copied(add_plugin_op(*e->program, *plugin, options_given(*plugin, op.attrs), op.in), out,
                  capacity);
  e->program->append(std::move(op));
  return copied(e->program->ops().back().out, out, capacity);
}

namespace {

Leave leave_of(int32_t leave) {
  if (leave < ORR_LEAVE_MEAN || leave > ORR_LEAVE_REFUSE)
    fail(ORR_INVALID, "there is no way {} to leave an axis", leave);
  return static_cast<Leave>(leave);
}

// The ordinal in the key of a state's random numbers. The script's own states are numbered from 0;
// no such number may be used here.
int64_t ordinal_of(const std::string& name) {
  uint64_t h = 1469598103934665603ULL;
  for (char c : name) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return static_cast<int64_t>(h >> 33) + (int64_t{1} << 31);
}

// Older strategies fill shorter structs: reads a field only if the struct has it.
double constant_of(const orr_state_desc& how) {
  return how.size > offsetof(orr_state_desc, value) ? how.value : 0;
}

int32_t dtype_of(const orr_state_desc& how) {
  const int32_t dtype = how.size > offsetof(orr_state_desc, dtype) ? how.dtype : 0;
  if (dtype < ORR_F32 || dtype > ORR_BOOL || how.rank < 0)
    fail(ORR_INVALID, "state '{}' is beside no parameter: give its dtype and dims", how.name);
  return dtype;
}

Type type_of(const orr_state_desc& how, const std::shared_ptr<State>& like) {
  Type type;
  type.dtype = like ? like->type.dtype : dtype_of(how);
  if (how.rank >= 0)
    type.dims = Dims(how.dims, how.dims + how.rank);
  else
    type.dims = like->type.dims;
  return type;
}

void begin_as(State& state, const std::string& strategy, const std::shared_ptr<State>& like,
              const orr_state_desc& how) {
  if (how.init == ORR_INIT_LIKE && (how.rank >= 0 || !like))
    fail(ORR_INVALID, "strategy.{}: state '{}' cannot begin like '{}' with another shape", strategy,
         how.name, like ? like->name : "nothing");
  if (how.init == ORR_INIT_LIKE) state.initial.kind = Initial::like, state.initial.of = like;
  if (how.init == ORR_INIT_CONSTANT) state.initial = Initial::of_constant(constant_of(how));
  if (how.init == ORR_INIT_NORMAL) {
    state.initial.kind = Initial::normal, state.initial.b = 1;
    state.initial.ordinal = ordinal_of((like ? like->name + "." : "") + how.name);
  }
}

std::shared_ptr<State> new_state(orr_program* e, const std::string& name,
                                 const std::shared_ptr<State>& like, const orr_state_desc& how) {
  for (const Value& v : e->program->values())
    if (v.state && v.state->name == name)
      fail(ORR_INVALID,
           "strategy.{}: there is a parameter or state '{}' already: give the state another name",
           e->strategy, name);
  auto state = std::make_shared<State>();
  state->name = name, state->type = type_of(how, like), state->role = Role::state;
  state->leave = leave_of(how.leave);
  state->passing = how.size > offsetof(orr_state_desc, passing) && how.passing;
  if (like) {
    state->site = like->site;
    state->beside = like->role == Role::param ? like->name : like->beside;
  } else {
    state->site.line = e->use->line;
  }
  begin_as(*state, e->strategy, like, how);
  return state;
}

}  // namespace

orr_status* add_op(orr_program* e, const orr_op_desc* desc, int32_t* out, int32_t capacity,
                   int32_t* n) {
  return guarded([&] { *n = append(e, op_of(e, *desc), out, capacity); });
}

orr_status* make_state(orr_program* e, const orr_state_desc* how, int32_t* out) {
  return guarded([&] {
    if (how->like != kNone) check_value(e, how->like);
    const std::shared_ptr<State> like =
        how->like == kNone ? nullptr : e->program->value(how->like).state;
    if (how->like != kNone && !like)
      fail(ORR_INVALID, "state '{}' is to be like value {}, which is neither parameter nor state",
           how->name, how->like);
    const std::string name =
        e->strategy + "." + (like ? like->name + "." : std::string()) + how->name;
    std::shared_ptr<State>& state = e->states->by_name[name];
    if (!state) state = new_state(e, name, like, *how);
    if (const Type type = type_of(*how, like); type != state->type)
      fail(ORR_INVALID, "strategy.{}: state '{}' is {} for some batches and {} for others",
           e->strategy, how->name, to_string(state->type), to_string(type));
    *out = e->program->state_value(state);
    if (how->varying) e->program->mutable_value(*out).set_varying(how->varying);
  });
}

orr_status* update(orr_program* e, int32_t state, int32_t value) {
  return guarded([&] {
    check_value(e, state), check_value(e, value);
    e->program->update(state, value);
  });
}

int32_t updated(orr_program* e, int32_t state) {
  for (auto& [old, now] : e->program->updates())
    if (old == state) return now;
  return state;
}

orr_status* exchange(orr_program* e, const char* axis, const orr_gradient_hook* hook) {
  return guarded([&] {
    const auto mine = kept(*hook);
    if (!hook->exchange) fail(ORR_INVALID, "the hook's `exchange` is NULL");
    if (!has_axis(e->mesh->batch_axis, axis) || !*axis)
      fail(ORR_INVALID, "axis '{}' does not deal the batch: nothing is summed over it", axis);
    for (const GradientHook& other : e->asked->exchanges)
      if (has_axis(other.axis, axis))
        fail(ORR_INVALID, "gradients are exchanged over axis '{}' by strategy.{} already", axis,
             other.origin);
    e->asked->exchanges.push_back(
        {axis, e->strategy, e->use->line,
         [kept = mine, later = LaterEdits(e)](Program& p, const std::shared_ptr<State>& param,
                                              ValueId gradient) {
           orr_program now = later.of(p);
           const std::string& name = later.use().name;
           int32_t out = kNone;
           check(kept->exchange(kept->arg, &now, &edit_table, p.state_value(param), gradient, &out),
                 "strategy." + name + ": exchange");
           if (out == kNone)
             fail(ORR_INVALID, "strategy.{}: exchange set no value for '{}'", name, param->name);
           check_value(&now, out);
           settle(now);
           return out;
         }});
  });
}

orr_status* independent(orr_program* e, const char* axis) {
  return guarded([&] {
    if (!has_axis(e->mesh->batch_axis, axis) || !*axis)
      fail(ORR_INVALID, "axis '{}' does not deal the batch: its ranks have no parts of their own",
           axis);
    Mesh& mesh = *e->mesh;
    mesh.independent_axis = with_axis(mesh.independent_axis, axis);
    mesh.batch_axis = with_axis(mesh.independent_axis, mesh.batch_axis);
  });
}

orr_status* average(orr_program* e, const char* axis, int32_t every, int32_t states) {
  if (orr_status* status = independent(e, axis)) return status;
  return guarded([&] {
    if (every < 1) fail(ORR_INVALID, "every {} steps: give at least 1", every);
    const auto write = [axis = std::string(axis), states](Program& p, int) {
      const std::vector<Value> values = p.values();
      for (size_t i = 0; i < values.size(); ++i)
        if (const Value& v = values[i];
            v.state && is_real(v.type.dtype) && (states || v.role == Role::param)) {
          const auto state = static_cast<ValueId>(i);
          p.update(state, build::all_reduce(p, state, axis, "mean"));
        }
    };
    e->asked->periodic.push_back({e->strategy, e->use->line, every, write});
  });
}

orr_status* every(orr_program* e, int32_t every, int32_t rounds, const orr_program_hook* hook) {
  return guarded([&] {
    const auto mine = kept(*hook);
    if (!hook->write) fail(ORR_INVALID, "the hook's `write` is NULL");
    if (every < 1) fail(ORR_INVALID, "every {} steps: give at least 1", every);
    if (rounds < 1) fail(ORR_INVALID, "{} rounds: give at least 1", rounds);
    e->asked->periodic.push_back({e->strategy, e->use->line, every,
                                  [kept = mine, later = LaterEdits(e)](Program& p, int round) {
                                    orr_program now = later.of(p);
                                    check(kept->write(kept->arg, &now, &edit_table, round),
                                          "strategy." + later.use().name);
                                    settle(now);
                                  },
                                  rounds});
  });
}

}  // namespace orrery::edit
