// SPDX-License-Identifier: Apache-2.0
#include "partition/cut/pass.h"

#include <algorithm>

#include "base/error.h"
#include "partition/cut/move.h"
#include "partition/localize.h"
#include "program/axes.h"
#include "program/build.h"
#include "program/state.h"

namespace orrery {

CutPass::CutPass(const Program& program, const Mesh& mesh, const Placing& placing,
                 std::map<ValueId, PartsAsked> asked, int outer, int rank)
    : OnParts(program,
              {mesh.coordinate(placing.axis, rank), mesh.size_of(placing.axis), placing.axis,
               placing.origin, placing.chunks > 0},
              std::max(mesh.size_of(placing.axis), placing.chunks),
              has_axis(mesh.batch_axis, placing.axis)),
      mesh_(mesh),
      ask_(placing),
      axis_(placing.axis),
      asked_(std::move(asked)),
      outer_(outer),
      at_(from.values().size()),
      here_(from.values().size(), kNone),
      readers_(from.values().size()),
      ops_(from.ops().size(), kNone) {
  for (size_t i = 0; i < from.ops().size(); ++i)
    if (from.ops()[i].phase == Phase::forward)
      for (ValueId v : from.ops()[i].in)
        readers_[static_cast<size_t>(v)].push_back(static_cast<OpId>(i));
}

// The segments of a parameter's dim: the sizes of the split that the ops behind it end in (a fused
// [q|k|v]), or the whole dim if there is none.
Dims CutPass::segments_of(ValueId param, int dim) const {
  const int64_t extent = from.type(param).dims[static_cast<size_t>(dim)];
  std::vector<std::pair<ValueId, size_t>> todo;  // values with their dim of that extent
  todo.emplace_back(param, dim);
  std::set<ValueId> seen = {param};
  for (size_t i = 0; i < todo.size(); ++i) {
    const auto [x, at] = todo[i];
    for (OpId reader : readers_[static_cast<size_t>(x)]) {
      const Op& op = from.ops()[static_cast<size_t>(reader)];
      const OpDef& def = op_def(op.kind);
      if (op.out.empty() || (def.parts && !def.parts->factors)) continue;
      const Sharding s = def.sharding(args_of(from, op), out_types(from, op));
      const auto which = std::find(op.in.begin(), op.in.end(), x) - op.in.begin();
      const std::vector<int>& factors = s.in[static_cast<size_t>(which)];
      const int factor = at < factors.size() ? factors[at] : kNone;
      if (factor == kNone && !s.segments.empty()) return s.segments;
      const int to = factor == kNone ? int{kNone} : dim_of(s.out[0], factor);
      if (to == kNone || from.type(op.out[0]).dims[static_cast<size_t>(to)] != extent) continue;
      if (seen.insert(op.out[0]).second) todo.emplace_back(op.out[0], to);
    }
  }
  return {extent};
}

// Cuts a parameter, or a state of the same shape that belongs to one, such as a moment, which is
// cut as the parameter is.
void CutPass::declare_state(ValueId v) {
  const Value& value = from.value(v);
  const std::string& name = value.role == Role::param ? value.name : value.state->beside;
  const auto asked = ask_.cuts.find(name);
  const auto param = params_.find(name);
  if (asked == ask_.cuts.end() || param == params_.end() ||
      from.type(param->second).dims != value.type.dims)
    return;
  const int dim = asked->second.dim;
  auto [segments, fresh] = out_.segments[me.axis].try_emplace(name);
  if (fresh) {
    const auto known = ask_.segments.find(name);
    segments->second =
        known == ask_.segments.end() ? segments_of(param->second, dim) : known->second;
  }
  Placement cut = Placement::along(dim, segments->second);
  at_[static_cast<size_t>(v)] = cut;
  note(v, cut);
  if (me.ranks > 1) p.mutable_value(v).part.cut(dim, ranges_of(cut, me));
  p.mutable_value(v).type = held(value.type, cut, me);
}

void CutPass::declare_values() {
  p = from.without_ops();
  p.mutable_updates().clear(), p.mutable_outputs().clear();
  for (size_t i = 0; i < at_.size(); ++i)
    if (const Value& value = from.values()[i]; value.role == Role::param)
      params_[value.name] = static_cast<ValueId>(i);
  for (size_t i = 0; i < at_.size(); ++i) {
    const ValueId v = static_cast<ValueId>(i);
    at_[i] = usual(v);
    if (from.value(v).producer == kNone) here_[i] = v;
    if (from.value(v).state) declare_state(v);
  }
  place_given();
}

// Moves the values that no op makes (batch fields), which arrive whole.
void CutPass::place_given() {
  p.set_phase(Phase::forward);
  for (auto& [v, how] : asked_)
    if (from.value(v).producer == kNone) {
      p.set_site(from.value(v).site);
      place_asked(v);
    }
}

// Moves a value to the layout that a strategy has asked for.
void CutPass::place_asked(ValueId v) {
  const auto how = asked_.find(v);
  if (how == asked_.end()) return;
  const Value& value = from.value(v);
  const int64_t extent = value.type.dims[static_cast<size_t>(how->second.dim)];
  const std::string name =
      value.producer == kNone ? value.name : from.ops()[static_cast<size_t>(value.producer)].kind;
  if (extent % n_parts)
    fail(ORR_INVALID,
         "{}: dim {} of '{}' {} does not divide over the {} {} of axis '{}': choose an extent "
         "that they divide, or another number of them",
         how->second.by, how->second.dim + 1, name, to_string(value.type.dims), n_parts,
         n_chunks > 1 ? "chunks" : "ranks", me.axis);
  const Placement parts = Placement::along(how->second.dim, {extent});
  become(v, read(v, parts), parts);
}

ValueId CutPass::known(ValueId v) const {
  ValueId x = here_[static_cast<size_t>(v)];
  if (x == kNone) fail(ORR_FAILED, "a value is read before it is made");
  return x;
}

void CutPass::note(ValueId x, const Placement& how) {
  Value& v = p.mutable_value(x);
  const bool gathers = how.kind == Placement::whole && over_batch && v.batch() == Batch::sharded;
  const bool plain = how.kind == Placement::samples || (how.kind == Placement::whole && !gathers);
  v.layout = plain ? v.layout.without(axis_) : v.layout.with(axis_, how);
}

void CutPass::become(ValueId v, ValueId x, Placement cut) {
  if (x != kNone) note(x, cut);
  here_[static_cast<size_t>(v)] = x, at_[static_cast<size_t>(v)] = std::move(cut);
}

CutPass::Moved CutPass::move_of(ValueId v, const Placement& to) const {
  bool again = (ask_.scatter != kNone || !asked_.empty()) && to.kind == Placement::whole &&
               from.value(v).batch() == Batch::sharded;
  return {v, to.kind, to.dim, to.segments, again ? static_cast<int>(p.phase()) : 0};
}

std::pair<Way, ValueId> CutPass::moved_before(ValueId v, const Placement& to) const {
  const OpId maker = from.value(v).producer;
  if (maker == kNone || to.kind != Placement::split) return {{}, kNone};
  const Op& op = from.ops()[static_cast<size_t>(maker)];
  if (op.in.size() != 1 || op.out.size() != 1) return {{}, kNone};
  for (auto at = moved_.lower_bound({op.in[0], Placement::split, 0, {}, 0}); at != moved_.end();
       ++at) {
    const auto& [value, kind, dim, segments, phase] = at->first;
    if (value != op.in[0] || kind != Placement::split) break;
    const Placement moved = Placement::along(dim, segments);
    for (Way& way : options_of(op, {moved}))
      if (way.in[0] == moved && way.out[0] == to) return {std::move(way), at->second};
  }
  return {{}, kNone};
}

ValueId CutPass::rename_moved(ValueId v, const Placement& to) {
  const auto [way, before] = moved_before(v, to);
  if (before == kNone || !may_read(before)) return kNone;
  const Value& whole = from.value(v);
  const Op& op = from.ops()[static_cast<size_t>(whole.producer)];
  Op copy = op;
  copy.in = {before}, copy.out = {p.new_value(held(whole.type, to, me), Role::activation)};
  copy.phase = p.phase(), copy.site = p.site(), copy.twin = kNone, copy.stage = 0;
  p.mutable_value(copy.out[0]).layout = whole.layout;
  append_fitted(op, way, me, std::move(copy));
  return p.ops().back().out[0];
}

// Whether v is made of random numbers, as the mask of dropout is.
bool CutPass::is_random(ValueId v) const {
  const OpId maker = from.value(v).producer;
  if (maker == kNone) return false;
  const Op& op = from.ops()[static_cast<size_t>(maker)];
  bool random = std::any_of(op.expr.instrs.begin(), op.expr.instrs.end(),
                            [](const orr_instr& i) { return i.fn == ORR_FN_RAND; });
  for (ValueId x : op.in) {
    if (from.type(x).dims.empty()) continue;
    if (!is_random(x)) return false;
    random = true;
  }
  return random && op.kind == "pointwise";
}

// Whether ops that are added now may read x, where the model is dealt to stages: forward passes go
// from a stage to later ones, backward passes to earlier ones.
bool CutPass::may_read(ValueId x) const {
  const OpId maker = p.value(x).producer;
  if (maker == kNone) return true;
  const Op& op = p.ops()[static_cast<size_t>(maker)];
  if (op.phase != p.phase() || op.phase == Phase::update) return true;
  return op.phase == Phase::forward ? op.stage <= stage_ : op.stage >= stage_;
}

void CutPass::go_to_maker(const Program& program, ValueId v) {
  const OpId maker = program.value(v).producer;
  if (maker == kNone) return go_to(Phase::forward, 0);
  const Op& op = program.ops()[static_cast<size_t>(maker)];
  go_to(op.phase, op.stage);
}

void CutPass::go_to(Phase phase, int32_t stage) {
  stage_ = stage;
  p.set_phase(phase), p.set_stage(stage);
}

// A sum is completed by the stage that makes it: it is no larger than its summands, and travels to
// the stages that read it.
void CutPass::go_to_maker_of_sum(ValueId v) {
  const OpId maker = from.value(v).producer;
  if (cut(v).kind != Placement::partial || maker == kNone) return;
  if (from.ops()[static_cast<size_t>(maker)].phase == p.phase()) go_to_maker(from, v);
}

// A result of the step is read where it is made, or where it has been moved before.
ValueId CutPass::read_result(ValueId v) {
  p.set_phase(Phase::forward);
  const auto moved = moved_.find(move_of(v, usual(v)));
  if (moved == moved_.end()) go_to_maker(from, v);
  const ValueId x = moved == moved_.end() ? read(v, usual(v)) : moved->second;
  go_to_maker(p, x);
  return x;
}

ValueId CutPass::read(ValueId v, const Placement& to) {
  if (cut(v) == to) return known(v);
  auto [at, fresh] = moved_.emplace(move_of(v, to), kNone);
  if (!fresh && may_read(at->second)) return at->second;
  if (usual(v).kind == Placement::samples && cut(v).kind != Placement::split &&
      to.kind != Placement::split)
    fail(ORR_UNIMPLEMENTED,
         "{}one index of a dim that is cut over axis '{}' cannot be sent to other ranks by itself, "
         "because the batch is split over that axis, too: use the whole dim, or place what it is "
         "computed with over '{}'",
         from.value(v).site.prefix(), me.axis, me.axis);
  if (cut(v).kind == Placement::owned)
    return at->second = noted(move(p, from_owner(v), from.type(v).dims, Placement{}, to, me), to);
  if (const ValueId renamed = rename_moved(v, to); renamed != kNone)
    return at->second = noted(renamed, to);
  const int32_t stage = stage_;
  go_to_maker_of_sum(v);
  const ValueId x = cut(v).kind == Placement::partial ? build::tree(p, summands(v)) : known(v);
  ValueId moved = move(p, x, from.type(v).dims, cut(v), to, me);
  go_to(p.phase(), stage);
  // A share is a view of the whole; a copy lets it wait for backward without the whole.
  if (moved != x && cut(v).kind == Placement::whole && is_random(v))
    moved = p.pointwise(ORR_FN_INPUT, {moved});
  return at->second = noted(moved, to);
}

// Carries out an op in one way. If an output becomes a sum, the op runs once on each chunk.
void CutPass::emit(const Op& op, const Way& way) {
  const bool sums = std::any_of(way.out.begin(), way.out.end(),
                                [](const Placement& c) { return c.kind == Placement::partial; });
  std::vector<std::vector<ValueId>> out(op.out.size());
  for (int i = 0; i < (sums ? n_chunks : 1); ++i) {
    Op copy = op;
    const Member part = sums ? chunk(i) : me;
    for (size_t k = 0; k < op.in.size(); ++k)
      copy.in[k] = way.in[k].kind == Placement::partial ? summands(op.in[k])[static_cast<size_t>(i)]
                                                        : read_part(op.in[k], way.in[k], part);
    for (size_t j = 0; j < op.out.size(); ++j) {
      const Value& whole = from.value(op.out[j]);
      if (sums && n_chunks > 1) copy.out[j] = p.new_value(whole.type, Role::activation, whole.name);
      Value& v = p.mutable_value(copy.out[j]);
      v.type = held(whole.type, way.out[j], part);
      v.layout = whole.layout;
      out[j].push_back(copy.out[j]);
    }
    append_fitted(op, way, part, std::move(copy));
  }
  for (size_t j = 0; j < op.out.size(); ++j) {
    const Placement& to = way.out[j];
    if (to.kind == Placement::partial)
      become_sum(op.out[j], std::move(out[j]));
    else
      become(op.out[j], out[j].size() == 1 ? out[j][0] : build::concat(p, out[j], to.dim), to);
  }
}

void CutPass::append_fitted(const Op& op, const Way& way, const Member& part, Op copy) {
  const OpDef& def = op_def(op.kind);
  if (def.parts && def.parts->fit) def.parts->fit(copy, p, way, part);
  const std::vector<Type> types = def.infer(args_of(p, copy));
  if (types != out_types(p, copy))
    fail(ORR_FAILED,
         "{}{}: the share of rank {} of axis '{}' does not have the shape that the op gives",
         op.site.prefix(), op.kind, me.rank, me.axis);
  p.append(std::move(copy));
}

void CutPass::remark(const Op& op, const Way& way) {
  if (over_batch) return;  // here samples travel back to their ranks, and are not gathered
  for (const Placement& in : way.in)
    if (in.kind == Placement::split) return;
  for (ValueId v : op.in)
    if (cut(v).kind == Placement::split && from.value(v).batch() == Batch::sharded &&
        !moved_.count(move_of(v, Placement{})))
      out_.remarks.push_back(
          fmt::format("{}{} cannot work on parts of {}: they are gathered on every rank",
                      op.site.prefix(), op.kind, to_string(from.type(v).dims)));
}

void CutPass::translate(const Op& op) {
  p.set_site(op.site), p.set_twin(op.twin), go_to(op.phase, op.stage);
  const bool varies = std::any_of(op.out.begin(), op.out.end(), [&](ValueId v) {
    return has_axis(from.value(v).varying(), me.axis);
  });
  const int owner = varies ? int{kNone} : owner_among(op);
  const bool all_owned = std::all_of(op.in.begin(), op.in.end(),
                                     [&](ValueId v) { return cut(v).kind == Placement::owned; });
  on_wholes_ = varies || (owner != kNone && !all_owned);
  const PartsRule* rule = op_def(op.kind).parts;
  if (rule && rule->run && rule->run(*this, op)) {
    // The rule has carried the op out.
  } else if (varies) {
    emit(op, whole(op));
  } else if (owner != kNone) {
    run_at_owner(op, owner);
  } else if (!by_blocks(op)) {
    const Way way = choose(op);
    remark(op, way);
    emit(op, way);
  }
  for (ValueId v : op.out) place_asked(v);
}

void CutPass::finish() {
  p.set_twin(kNone), go_to(Phase::update, 0);
  for (auto& [state, next] : from.updates()) {
    p.set_site(from.value(next).site);
    p.update(state, read(next, cut(state)));
  }
  for (auto& [name, id] : from.outputs()) {
    p.set_site(from.value(id).site);
    const bool moves = cut(id) != usual(id) && !from.type(id).dims.empty();
    const ValueId x = read_result(id);
    p.output(name, moves ? p.pointwise(ORR_FN_INPUT, {x}) : x);  // in memory of its own
  }
  go_to(Phase::forward, 0);
  for (Op& op : p.mutable_ops()) {
    if (op.twin != kNone) op.twin = ops_[static_cast<size_t>(op.twin)];
    // If one rank needs an exchange for a value that it owns, the others must take part in it.
    if (!alone_ || !is_exchange(op.kind)) continue;
    CommOp how = op.exchange();
    how.awaited = true;
    op.set_exchange(how);
  }
}

// Ops whose results nothing reads, such as those that a strategy has replaced, are left out: they
// must not ask for layouts.
CutProgram CutPass::run() {
  declare_values();
  const std::vector<bool> needed = live_ops(from);
  for (size_t i = 0; i < from.ops().size(); ++i) {
    if (needed[i]) translate(from.ops()[i]);
    ops_[i] = static_cast<OpId>(p.ops().size()) - 1;
  }
  finish();
  p.set_site(from.site());
  out_.here = std::move(here_);
  for (auto& [v, summands] : summands_)
    if (summands.size() == 1) out_.here[static_cast<size_t>(v)] = summands[0];
  out_.program = std::move(p);
  return std::move(out_);
}

}  // namespace orrery
