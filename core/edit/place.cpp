// SPDX-License-Identifier: Apache-2.0
#include "edit/calls.h"

#include <algorithm>

#include "base/error.h"
#include "edit/edit_table.h"
#include "plugin/host.h"

namespace orrery::edit {
namespace {

const Placing* find_placing(const Mesh& mesh, const std::string& axis_name) {
  for (const Placing& placing : mesh.placed)
    if (placing.axis == axis_name) return &placing;
  return nullptr;
}

// Makes the axis whose ranks exchange samples the innermost of the batch axes, so that
// these ranks have consecutive microbatches.
void order_batch_axes(Mesh& mesh) {
  const std::string inner = mesh.gathered_axis();
  mesh.batch_axis = with_axis(without_axis(mesh.batch_axis, inner), inner);
  if (factors_of(inner).size() > 1)
    fail(ORR_UNIMPLEMENTED,
         "values are cut over the axes '{}', which both deal the batch: cut them over one of them",
         inner);
}

// Whether the ranks of the axis share the work on every sample.
bool shares_samples(const orr_program* e, const Placing& on) {
  return on.scatter != kNone || on.chunks > 0 ||
         std::any_of(on.values.begin(), on.values.end(), [&](auto& asked) {
           return e->program->value(asked.first).role == Role::batch;
         });
}

void split_batch(orr_program* e, const Value& v, const std::string& axis_name) {
  if (const Placing* known = find_placing(*e->mesh, axis_name); known && shares_samples(e, *known))
    fail(ORR_INVALID,
         "the ranks of axis '{}' share the work on every sample, as strategy.{} asked: it cannot "
         "deal the batch field '{}' as well",
         axis_name, known->origin, v.name);
  if (std::string& all = e->mesh->batch_axis; !has_axis(all, axis_name))
    all = with_axis(all, axis_name);
  order_batch_axes(*e->mesh);
}

void check_shared(const Mesh& mesh, const std::string& axis_name) {
  if (has_axis(mesh.batch_axis, axis_name))
    fail(ORR_INVALID,
         "axis '{}' deals the batch: only the first dim of batch fields can be cut over it; "
         "make another axis, whose ranks share the work on every sample",
         axis_name);
}

Placing& placing_on(orr_program* e, const std::string& axis_name) {
  Mesh& mesh = *e->mesh;
  if (const Placing* known = find_placing(mesh, axis_name)) return const_cast<Placing&>(*known);
  mesh.placed.emplace_back();
  mesh.placed.back().axis = axis_name, mesh.placed.back().origin = e->strategy;
  order_batch_axes(mesh);
  return mesh.placed.back();
}

void check_dim(const orr_program* e, ValueId value, int32_t dim) {
  const Value& v = e->program->value(value);
  const int rank = static_cast<int>(v.type.dims.size());
  if (dim >= rank)
    fail(ORR_INVALID, "{} is {} and has no dim {} to cut", title(*e->program, value),
         to_string(v.type), dim + 1);
  if (v.batch() == Batch::sharded && v.batch_dim() == dim)
    fail(ORR_INVALID,
         "dim {} of {} is the batch's: it is dealt by placing batch fields along their first dim",
         dim + 1, title(*e->program, value));
  if (v.state && v.role != Role::param)
    fail(ORR_INVALID,
         "'{}' is a state: one of a parameter's shape follows its parameter, others stay whole",
         v.name);
}

std::string here(const orr_program* e) {
  return "strategy." + e->strategy + (e->use->line.empty() ? "" : " (" + e->use->line + ")");
}

template <class Key>
void ask(orr_program* e, std::map<Key, PartsAsked>& asked, const Key& key, int32_t dim,
         ValueId value, const std::string& axis_name) {
  auto [at, fresh] = asked.try_emplace(key, PartsAsked{dim, here(e)});
  if (at->second.dim != dim)
    fail(ORR_INVALID,
         "{} is cut along dim {} over axis '{}' by {} and cannot be cut along dim {} as well",
         title(*e->program, value), at->second.dim + 1, axis_name, at->second.by, dim + 1);
}

}  // namespace

const Axis& find_axis(orr_program* e, const char* name) {
  if (!name) fail(ORR_INVALID, "the name of an axis is NULL");
  for (const Axis& known : e->mesh->axes)
    if (known.name == name) return known;
  fail(ORR_INVALID, "there is no axis '{}'", name);
}

orr_status* place(orr_program* e, int32_t value, const char* axis_name, int32_t dim) {
  return guarded([&] {
    check_value(e, value);
    const Value& v = e->program->value(value);
    find_axis(e, axis_name);
    if (dim < 0 && v.role != Role::param && v.role != Role::batch)
      fail(ORR_INVALID,
           "{} is computed, and lies as the values that it is computed from: only parameters and "
           "batch fields can be asked to be whole; place these, or what reads it",
           title(*e->program, value));
    if (dim < 0) return;  // they are whole by default
    if (v.role == Role::batch && dim == 0) return split_batch(e, v, axis_name);
    if (v.role == Role::batch) check_shared(*e->mesh, axis_name);
    check_dim(e, value, dim);
    Placing& placing = placing_on(e, axis_name);
    if (v.role != Role::param) return ask(e, placing.values, value, dim, value, axis_name);
    ask(e, placing.cuts, v.name, dim, value, axis_name);
  });
}

orr_status* scatter(orr_program* e, const char* axis_name, int32_t dim) {
  return guarded([&] {
    find_axis(e, axis_name);
    check_shared(*e->mesh, axis_name);
    placing_on(e, axis_name).scatter = dim;
  });
}

orr_status* chunk(orr_program* e, const char* axis_name, int32_t chunks) {
  return guarded([&] {
    const int ranks = find_axis(e, axis_name).size;
    check_shared(*e->mesh, axis_name);
    const int each = chunks < 1 || chunks % ranks ? 0 : chunks / ranks;
    if (each == 0 || (ranks > 1 && (each & (each - 1)))) {
      int below = ranks;
      while (2 * below <= chunks) below *= 2;
      fail(ORR_INVALID,
           "{} chunks are no power of two times the {} ranks of axis '{}': the nearest that are, "
           "are {} and {}",
           chunks, ranks, axis_name, below, 2 * below);
    }
    placing_on(e, axis_name).chunks = chunks;
  });
}

}  // namespace orrery::edit
