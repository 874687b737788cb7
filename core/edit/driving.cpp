// SPDX-License-Identifier: Apache-2.0
#include "edit/calls.h"

#include <algorithm>
#include <cstring>
#include <deque>

#include "base/error.h"
#include "edit/edit_table.h"
#include "partition/copy_part.h"
#include "plugin/host.h"
#include "plugin/inside.h"
#include "program/rewrite.h"
#include "program/state.h"

namespace orrery {
namespace {

// Throws Error if a strategy cuts the step, orders its microbatches or sums over ranks: a driver
// needs one axis, on which each rank has the whole step.
void check_nothing_together(const Mesh& mesh, const Asked& asked) {
  const bool together = mesh.axes.size() > 1 || mesh.schedule.one_by_one || !mesh.sharded.empty() ||
                        !mesh.reduced.empty() || !asked.exchanges.empty() ||
                        !asked.periodic.empty() || !mesh.independent_axis.empty() ||
                        !mesh.placed.empty();
  const Driving& d = asked.driving;
  if (together)
    fail(ORR_INVALID,
         "{}: strategy.{} without a common step runs whole microbatches on all ranks in one call: "
         "leave out the strategies that cut a step or sum over ranks, or {}",
         d.line, d.origin, mesh.alone.remedy);
}

// Removes the states that the step was traced with and does not use any more.
void forget_unread(Program& p) {
  std::erase_if(p.mutable_updates(), [](auto& update) { return update.first == update.second; });
  std::vector<ValueId> wanted;
  for (auto& [name, id] : p.outputs()) wanted.push_back(id);
  for (auto& [state, next] : p.updates()) wanted.insert(wanted.end(), {state, next});
  std::vector<bool> read(p.values().size());
  for (ValueId v : wanted) read[static_cast<size_t>(v)] = true;
  const std::vector<bool> live = ops_behind(p, wanted);
  for (size_t i = 0; i < live.size(); ++i)
    for (ValueId v : p.ops()[i].in)
      if (live[i]) read[static_cast<size_t>(v)] = true;
  for (size_t v = 0; v < read.size(); ++v)
    if (Value& value = p.mutable_value(static_cast<ValueId>(v));
        value.role == Role::state && !read[v])
      value.state.reset();
}

}  // namespace

void write_driven(Program& step, const Mesh& mesh, Asked& asked, int64_t microbatches,
                  const std::map<std::string, ValueId>& gradients) {
  check_nothing_together(mesh, asked);
  Driving& driving = asked.driving;
  for (auto& [name, gradient] : gradients) driving.gradients[name] = step.now(gradient);
  const Site site = step.site();
  step.set_phase(Phase::update);
  driving.write(step, assign_microbatches(microbatches, mesh));
  driving.write = nullptr;
  step.set_phase(Phase::forward);
  step.set_site(site);
  forget_unread(step);
}

namespace edit {

orr_status* drive(orr_program* e, const orr_driver* given) {
  return guarded([&] {
    orr_driver all{};
    std::memcpy(&all, given, std::min<size_t>(given->size, sizeof all));
    const auto driver = kept(all);
    Driving& d = e->asked->driving;
    if (d.on()) fail(ORR_INVALID, "the ranks are driven by strategy.{} already", d.origin);
    if (!all.write || !all.open || !all.step || !all.settle || !all.stop || !all.predicted)
      fail(ORR_INVALID, "a driver has all of write, open, step, settle, stop and predicted");
    d.origin = e->strategy, d.line = e->use->line, d.driver = driver;
    e->mesh->alone = {e->strategy, driver->remedy ? driver->remedy : "leave it out"};
    d.write = [driver, later = LaterEdits(e)](Program& step,
                                              const std::vector<int64_t>& leaf_first) {
      std::deque<orr_program> others;
      const StrategyUse& use = later.use();
      orr_program now = later.of(step);
      now.others = &others;
      const Inside inside({kept_text("strategy '" + use.name + "'"), "write"});
      check(caught([&] {
              return driver->write(driver->arg, &now, &edit_table, leaf_first.data(),
                                   static_cast<int32_t>(leaf_first.size()) - 1);
            }),
            use.line + ": strategy." + use.name);
      settle(now);
      for (orr_program& other : others) settle(other);
    };
  });
}

orr_status* program(orr_program* e, const char* name, int32_t rank, orr_program** out) {
  return guarded([&] {
    if (!e->others) fail(ORR_INVALID, "programs beside a step are written by drivers");
    if (rank < 0 || rank >= e->mesh->world)
      fail(ORR_INVALID, "program '{}' is of rank {}, of {}", name, rank, e->mesh->world);
    std::vector<Beside>& programs = e->asked->driving.programs;
    for (const Beside& other : programs)
      if (other.name == name) fail(ORR_INVALID, "there is a program '{}' already", name);
    programs.push_back({name, rank, std::make_shared<Program>()});
    Program& made = *programs.back().program;
    made.set_phase(Phase::update);
    *out = &e->others->emplace_back(
        orr_program{&made, e->mesh, e->asked, e->strategy, e->use, e->states});
    (*out)->others = e->others;
  });
}

orr_status* copy_part(orr_program* e, const orr_part* how, int32_t* out) {
  return guarded([&] {
    std::map<ValueId, ValueId> given;
    for (int32_t i = 0; i < how->n_given; ++i) {
      check_value(how->from, how->given[i]), check_value(e, how->as[i]);
      given[how->given[i]] = how->as[i];
    }
    for (int32_t i = 0; i < how->n_wanted; ++i) check_value(how->from, how->wanted[i]);
    if (how->from == e || e->program->batch_size() > 0)
      fail(ORR_INVALID, "parts of a step are copied into programs beside it");
    const std::vector<ValueId> made = orrery::copy_part(
        *how->from->program, given, {how->wanted, how->wanted + how->n_wanted}, *e->program);
    std::copy(made.begin(), made.end(), out);
  });
}

int32_t gradient(orr_program* e, int32_t parameter) {
  if (parameter < 0 || static_cast<size_t>(parameter) >= e->program->values().size()) return kNone;
  const auto& all = e->asked->driving.gradients;
  auto found = all.find(e->program->value(parameter).name);
  return found == all.end() ? kNone : found->second;
}

}  // namespace edit
}  // namespace orrery
