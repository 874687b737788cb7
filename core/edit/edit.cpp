// SPDX-License-Identifier: Apache-2.0
#include "edit/edit_table.h"

#include <algorithm>
#include <cstddef>

#include "base/error.h"
#include "base/text.h"
#include "edit/calls.h"
#include "partition/stage.h"
#include "plugin/host.h"
#include "program/build_comm.h"
#include "program/op.h"
#include "program/state.h"

namespace orrery {
namespace {

orr_status* each(orr_program* e, uint32_t roles, void* arg,
                 orr_status* (*visit)(void*, int32_t, const orr_value_info*)) {
  std::vector<ValueId> found;
  for (size_t i = 0; i < e->program->values().size(); ++i)
    if (roles >> static_cast<int>(e->program->values()[i].role) & 1)
      found.push_back(static_cast<ValueId>(i));
  std::stable_sort(found.begin(), found.end(), [&](ValueId a, ValueId b) {
    return natural_less(e->program->value(a).name, e->program->value(b).name);
  });
  for (ValueId v : found) {
    orr_value_info info = edit::info_of(*e->program, e->program->value(v));
    if (orr_status* s = visit(arg, v, &info)) return s;
  }
  return nullptr;
}

int32_t ranks_left(orr_program* e) {
  int taken = 1;
  for (const Axis& axis : e->mesh->axes) taken *= axis.size;
  return e->mesh->world / taken;
}

void check_new(const Mesh& mesh, const std::string& name) {
  for (const Axis& known : mesh.axes)
    if (known.name == name)
      fail(ORR_INVALID, "axis '{}' exists already, made by {}", name, known.strategy);
  for (const SplitAxis& known : mesh.split_axes)
    if (known.outer == name || known.inner == name)
      fail(ORR_INVALID, "axis '{}' exists already, as a half of axis '{}'", name, known.axis);
  if (name == build::kBatch)
    fail(ORR_INVALID, "axis '{}': collectives mean all samples by that name", name);
  if (name.find('*') != std::string::npos)
    fail(ORR_INVALID, "axis '{}': a name has no '*', which stands between several axes", name);
}

orr_status* axis(orr_program* e, const char* name, int32_t size) {
  return guarded([&] {
    if (!name || !*name) fail(ORR_INVALID, "an axis has no name");
    int left = ranks_left(e);
    if (size == 0) size = left;
    if (size < 1 || left % size)
      fail(ORR_INVALID, "axis '{}' of size {} does not fit: {} of {} ranks are left", name, size,
           left, e->mesh->world);
    check_new(*e->mesh, name);
    e->mesh->axes.push_back({name, size, e->strategy});
    e->program->set_axes(axes_of(*e->mesh));
  });
}

// The op that makes a value; null if the value is given, or does not exist.
const Op* maker_of(orr_program* e, int32_t value) {
  const Program& p = *e->program;
  if (value < 0 || static_cast<size_t>(value) >= p.values().size()) return nullptr;
  OpId maker = p.value(value).producer;
  return maker == kNone ? nullptr : &p.ops()[static_cast<size_t>(maker)];
}

int32_t inputs(orr_program* e, int32_t value, int32_t* out, int32_t capacity) {
  const Op* op = maker_of(e, value);
  return op ? edit::copied(op->in, out, capacity) : 0;
}

int32_t rule(orr_program* e, int32_t value, int32_t input, int32_t* factors, int32_t capacity) {
  const Op* op = maker_of(e, value);
  if (!op || input >= static_cast<int32_t>(op->in.size())) return 0;
  Sharding s = op_def(op->kind).sharding(args_of(*e->program, *op), out_types(*e->program, *op));
  return edit::copied(input < 0 ? s.out[0] : s.in[static_cast<size_t>(input)], factors, capacity);
}

orr_status* reduce(orr_program* e, int32_t value, const char* axis_name, int64_t bucket) {
  return guarded([&] {
    edit::find_axis(e, axis_name);
    const Value& v = e->program->value(value);
    if (v.batch() != Batch::partial) fail(ORR_INVALID, "'{}' is not a sum over the batch", v.name);
    Reduction& known = e->mesh->reduced[value];
    if (has_axis(axis_name, known.axis)) known.bucket = bucket, known.origin = e->strategy;
    known.axis = with_axis(known.axis, axis_name);
  });
}

orr_status* diag(orr_program* e, const char* message) {
  e->asked->remarks.push_back(e->strategy + ": " + message);
  return nullptr;
}

orr_status* life(orr_program* e, int32_t value, const char*, int32_t life) {
  return guarded([&] {
    Value& v = e->program->mutable_value(value);
    if (life < ORR_LIFE_KEEP || life > ORR_LIFE_DISK)
      fail(ORR_INVALID, "there is no life {}", life);
    if (life < ORR_LIFE_HOST)
      fail(ORR_UNIMPLEMENTED,
           "strategy.{} was built for lives of activations that have left the editing table: build "
           "it anew on copy and replace (strategy.h)",
           e->strategy);
    if (v.batch() == Batch::sharded) v.tier = life == ORR_LIFE_DISK ? Tier::disk : Tier::host;
  });
}

orr_status* stage(orr_program* e, const char* axis_name, int32_t n, const int32_t* where,
                  const char* const* modules) {
  return guarded([&] {
    if (!e->mesh->schedule.axis.empty())
      fail(ORR_INVALID, "the model is already dealt to stages by {}",
           edit::find_axis(e, e->mesh->schedule.axis.c_str()).strategy);
    int ranks = edit::find_axis(e, axis_name).size;
    std::vector<std::string> patterns;
    for (int32_t c = 0; c < n; ++c) {
      if (where[c] < 0 || where[c] >= ranks)
        fail(ORR_INVALID, "chunk {} is given to coordinate {} of axis '{}', which has {}", c,
             where[c], axis_name, ranks);
      if (modules) patterns.push_back(modules[c]);
    }
    e->mesh->schedule.axis = axis_name, e->mesh->schedule.one_by_one = true;
    e->mesh->schedule.microbatch_strategy = e->strategy;
    e->mesh->schedule.chunk_at.assign(where, where + n);
    e->mesh->schedule.pipeline_strategy = e->strategy;
    e->mesh->schedule.timetable =
        [use = *e->use, at = e->mesh->schedule.chunk_at,
         known = std::make_shared<std::map<int, std::shared_ptr<const Timetable>>>()](
            int microbatches) {
          if (auto found = known->find(microbatches); found != known->end()) return found->second;
          return known
              ->emplace(microbatches,
                        std::make_shared<const Timetable>(tables_of(use, at, microbatches)))
              .first->second;
        };
    if (modules)
      assign_stages(*e->program, n, patterns);
    else
      balance_stages(*e->program, n, e->states->chunks[n]);
  });
}

orr_status* loop(orr_program* e) {
  e->mesh->schedule.one_by_one = true, e->mesh->schedule.microbatch_strategy = e->strategy;
  return nullptr;
}

// The axis that a strategy's call names. build::kBatch means the product of all axes over which
// gradients are summed.
std::string axis_named(const orr_program* e, const char* name) {
  if (std::string_view(name) != build::kBatch) return name;
  std::string axis = e->mesh->gradient_axis();
  for (const GradientHook& hook : e->asked->exchanges) axis = without_axis(axis, hook.axis);
  return axis;
}

// Says why axis "batch" has no ranks here, and what to do.
[[noreturn]] void fail_no_shares(const orr_program* e) {
  std::string why;
  for (const GradientHook& hook : e->asked->exchanges)
    why += fmt::format("strategy.{} exchanges the gradients of axis '{}' by a rule of its own; ",
                       hook.origin, hook.axis);
  if (!e->mesh->independent_axis.empty())
    why += fmt::format("the ranks of axis '{}' train apart; ", e->mesh->independent_axis);
  fail(ORR_INVALID,
       "{}so no ranks add up their gradients that could share what is kept: put a strategy that "
       "deals the batch before this one, with the number of ranks that shall as its size",
       why);
}

int32_t axis_size(orr_program* e, const char* name) {
  const std::string axis = axis_named(e, name);
  if (axis != name) return axis.empty() ? 0 : e->mesh->size_of(axis);
  for (const Axis& known : e->mesh->axes)
    if (known.name == name) return known.size;
  return 0;
}

orr_status* halve(orr_program* e, const char* name, const char* outer, const char* inner,
                  int32_t inner_size) {
  return guarded([&] {
    const std::string axis = axis_named(e, name);
    if (axis.empty()) fail_no_shares(e);
    if (axis.find('*') != std::string::npos)
      fail(ORR_INVALID, "groups are parts of one axis, and the batch is dealt over {}", axis);
    int size = edit::find_axis(e, axis.c_str()).size;
    if (inner_size < 1 || size % inner_size)
      fail(ORR_INVALID, "groups of {} do not divide the {} ranks of axis '{}'", inner_size, size,
           axis);
    for (const char* half : {outer, inner}) check_new(*e->mesh, half);
    e->mesh->split_axes.push_back({axis, outer, inner, inner_size});
  });
}

void set_shares(orr_program* e, const char* axis, std::vector<int> of) {
  if (!e->mesh->shares.of.empty())
    fail(ORR_INVALID, "strategy.{} deals the batch in shares already", e->mesh->shares.origin);
  e->mesh->shares = {axis, e->strategy, std::move(of)};
}

orr_status* idle(orr_program* e, const char* name, int32_t n) {
  return guarded([&] {
    if (e->mesh->batch_axis != name) fail(ORR_INVALID, "axis '{}' does not deal the batch", name);
    const int ranks = edit::find_axis(e, name).size;
    if (n < 0 || n >= ranks)
      fail(ORR_INVALID, "{} of the {} ranks of axis '{}' without microbatches: give from 0 to {}",
           n, ranks, name, ranks - 1);
    std::vector<int> of(static_cast<size_t>(ranks), 1);
    std::fill_n(of.begin(), n, 0);
    set_shares(e, name, std::move(of));
  });
}

orr_status* deal(orr_program* e, const char* name, const int32_t* shares, int32_t n) {
  return guarded([&] {
    if (!has_axis(e->mesh->batch_axis, name))
      fail(ORR_INVALID, "axis '{}' does not deal the batch", name);
    if (int ranks = edit::find_axis(e, name).size; n != ranks)
      fail(ORR_INVALID, "{} shares for the {} ranks of axis '{}': give one for each", n, ranks,
           name);
    const std::vector<int> of(shares, shares + n);
    for (int share : of)
      if (share < 1) fail(ORR_INVALID, "a share of {}: give 1 or more", share);
    set_shares(e, name, of);
  });
}

[[noreturn]] void fail_second_shard(const Program& p, const Value& v, const std::string& first) {
  for (const Value& other : p.values())
    if (&other != &v && other.role == Role::param && other.name == v.name)
      fail(ORR_INVALID,
           "the step reads two parameters named '{}': put their modules into one table, "
           "orrery.parameters{{a = ..., b = ...}}",
           v.name);
  fail(ORR_INVALID, "'{}' is sharded already, by {}", v.name, first);
}

orr_status* shard(orr_program* e, int32_t value, const orr_shard* how) {
  return guarded([&] {
    const Value& v = e->program->value(value);
    const Mesh& s = *e->mesh;
    const std::string axis = axis_named(e, how->axis);
    bool half = std::any_of(s.split_axes.begin(), s.split_axes.end(), [&](const SplitAxis& h) {
      return has_axis(s.batch_axis, h.axis) && h.inner == axis;
    });
    if (v.role != Role::param) fail(ORR_INVALID, "'{}' is no parameter", v.name);
    if (axis.empty()) fail_no_shares(e);
    if (!has_axis(s.batch_axis, axis) && !half)
      fail(ORR_INVALID,
           "axis '{}' has no ranks that share a batch: put a strategy before this one that deals "
           "the batch to ranks which do not train apart",
           how->axis);
    if (how->owner < -1 || how->owner >= s.size_of(axis))
      fail(ORR_INVALID, "'{}' is given to owner {} of the {} on axis '{}'", v.name, how->owner,
           s.size_of(axis), axis);
    if (auto known = s.sharded.find(v.name); known != s.sharded.end())
      fail_second_shard(*e->program, v, known->second.origin);
    const int64_t ahead = how->size > offsetof(orr_shard, ahead) ? how->ahead : 0;
    if (how->keep != 0 || ahead < 0 || ahead > 1)
      fail(ORR_UNIMPLEMENTED,
           "strategy.{} asks by keep and ahead where parameters are gathered: add the op `unshard` "
           "there (docs/ops.md)",
           e->strategy);
    const bool each = how->size > offsetof(orr_shard, each) && how->each != 0;
    const bool rows = how->size > offsetof(orr_shard, rows) && how->rows != 0;
    e->mesh->sharded[v.name] = {axis, e->strategy, how->unit, how->owner, how->what, each, rows};
  });
}

// The function for slots of revision 1 that are not supported any more; it says which calls to use.
template <class... Given>
orr_status* removed_call(orr_program* e, Given...) {
  return guarded([&] {
    fail(ORR_UNIMPLEMENTED,
         "strategy.{} was built for calls that have left the editing table, such as compute, "
         "loss_scale, wire and serve: build it anew on retype, cotangent, complete and drive "
         "(strategy.h)",
         e->strategy);
  });
}

orr_status* offload(orr_program* e, int32_t value, int32_t tier, const char* directory) {
  return guarded([&] {
    Offload& asked = e->mesh->offload;
    if (tier != ORR_TIER_HOST && tier != ORR_TIER_DISK)
      fail(ORR_INVALID, "nothing can be kept in tier {}", tier);
    if (asked.used && asked.directory != directory)
      fail(ORR_INVALID, "files are made in '{}' already, not in '{}' as well", asked.directory,
           directory);
    Value& v = e->program->mutable_value(value);
    if (!v.state) fail(ORR_INVALID, "'{}' is neither parameter nor state", v.name);
    asked = {true, directory};
    v.tier = tier == ORR_TIER_DISK ? Tier::disk : Tier::host;
  });
}

// A name as a template's argument.
template <size_t n>
struct Name {
  constexpr Name(const char (&from)[n]) { std::copy_n(from, n, text); }  // NOLINT: meant to convert
  char text[n];
};

// The call, which is refused before differentiation: there are no ranks yet, and what it asks of
// them would be forgotten.
template <Name name, auto call>
struct Late;
template <Name name, class... Given, orr_status* (*call)(orr_program*, Given...)>
struct Late<name, call> {
  static orr_status* run(orr_program* e, Given... given) {
    if (!e->forward) return call(e, given...);
    return guarded([&] {
      fail(ORR_INVALID,
           "{} is called in transform_forward, where the program has no gradients and no ranks "
           "yet: call it in transform",
           name.text);
    });
  }
};
template <Name name, auto call>
constexpr auto late = Late<name, call>::run;

}  // namespace

const orr_edit edit_table = {sizeof(orr_edit),
                             each,
                             ranks_left,
                             late<"axis", axis>,
                             late<"place", edit::place>,
                             late<"reduce", reduce>,
                             late<"diag", diag>,
                             late<"loop", loop>,
                             late<"stage", stage>,
                             life,
                             inputs,
                             rule,
                             late<"scatter", edit::scatter>,
                             axis_size,
                             late<"halve", halve>,
                             late<"shard", shard>,
                             removed_call,
                             late<"average", edit::average>,
                             removed_call,
                             late<"idle", idle>,
                             removed_call,
                             late<"chunk", edit::chunk>,
                             late<"offload", offload>,
                             removed_call,
                             edit::add_op,
                             edit::make_state,
                             edit::update,
                             edit::updated,
                             late<"exchange", edit::exchange>,
                             late<"independent", edit::independent>,
                             late<"every", edit::every>,
                             edit::info,
                             edit::maker,
                             edit::beside,
                             edit::copy,
                             edit::replace,
                             edit::reread,
                             edit::retype,
                             edit::trains,
                             edit::cotangent,
                             edit::output,
                             late<"complete", edit::complete>,
                             late<"drive", edit::drive>,
                             late<"program", edit::program>,
                             late<"copy_part", edit::copy_part>,
                             edit::gradient,
                             late<"deal", deal>,
                             edit::before};

}  // namespace orrery
