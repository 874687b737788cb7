// SPDX-License-Identifier: Apache-2.0
#include "lower/cut_program.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/in_parallel.h"
#include "lower/cut_pass.h"
#include "lower/turns.h"
#include "program/build.h"

namespace orrery {

CutPass::CutPass(const Program& from, const Mesh& mesh, const Placing& placing,
                 std::map<ValueId, PartsAsked> asked, int rank)
    : from_(from),
      mesh_(mesh),
      ask_(placing),
      asked_(std::move(asked)),
      me_{mesh.coordinate(placing.axis, rank), mesh.size_of(placing.axis), placing.axis,
          placing.origin, placing.chunks > 0},
      deals_(has_axis(mesh.batch_axis, placing.axis)),
      parts_(std::max(me_.ranks, placing.chunks)),
      chunks_(parts_ / me_.ranks),
      to_(out_.program),
      at_(from.values().size()),
      here_(from.values().size(), kNone) {
  ops_.assign(from.ops().size(), kNone);
  readers_.resize(from.values().size());
  for (size_t i = 0; i < from.ops().size(); ++i)
    if (from.ops()[i].phase == Phase::forward)
      for (ValueId v : from.ops()[i].in)
        readers_[static_cast<size_t>(v)].push_back(static_cast<OpId>(i));
}

// How a fused output is taken apart: the sizes of the split that follows, the whole if none does.
Dims CutPass::segments_of(ValueId param, int dim) const {
  std::vector<std::pair<ValueId, int>> todo = {
      {param, dim}};  // values with their dim of that extent
  std::set<ValueId> seen = {param};
  for (size_t i = 0; i < todo.size(); ++i) {
    const auto [x, at] = todo[i];
    for (OpId reader : readers_[static_cast<size_t>(x)]) {
      const Op& op = from_.ops()[static_cast<size_t>(reader)];
      if (op.kind == "split" && attr_int(op.attrs, "dim", 0) == at)
        return attr_ints(op.attrs, "sizes");
      if (op.kind != "matmul" && op.kind != "pointwise") continue;
      const Sharding s = op_def(op.kind).sharding(args_of(from_, op), out_types(from_, op));
      const auto which = std::find(op.in.begin(), op.in.end(), x) - op.in.begin();
      const int factor = s.in[static_cast<size_t>(which)][static_cast<size_t>(at)];
      const int to = factor == kNone ? int{kNone} : dim_of(s.out[0], factor);
      if (to != kNone && seen.insert(op.out[0]).second) todo.emplace_back(op.out[0], to);
    }
  }
  return {from_.type(param).dims[static_cast<size_t>(dim)]};
}

// Cut parameters, and the states of their shape that lie beside them, such as moments: with the
// parameter.
void CutPass::declare_state(ValueId v) {
  const Value& value = from_.value(v);
  const std::string& name = value.role == Role::param ? value.name : value.state->beside;
  const auto asked = ask_.cuts.find(name);
  const auto param = params_.find(name);
  if (asked == ask_.cuts.end() || param == params_.end() ||
      from_.type(param->second).dims != value.type.dims)
    return;
  const int dim = asked->second.dim;
  auto [segments, fresh] = out_.segments[me_.axis].try_emplace(name);
  if (fresh) {
    const auto known = ask_.segments.find(name);
    segments->second =
        known == ask_.segments.end() ? segments_of(param->second, dim) : known->second;
  }
  Cut cut = Cut::of(dim, segments->second);
  at_[static_cast<size_t>(v)] = cut;
  if (me_.ranks > 1) to_.mutable_value(v).part.cut(dim, ranges_of(cut, me_));
  to_.mutable_value(v).type = held(value.type, cut, me_);
}

void CutPass::declare_values() {
  to_ = from_.without_ops();
  to_.mutable_updates().clear(), to_.mutable_outputs().clear();
  for (size_t i = 0; i < at_.size(); ++i)
    if (const Value& value = from_.values()[i]; value.role == Role::param)
      params_[value.name] = static_cast<ValueId>(i);
  for (size_t i = 0; i < at_.size(); ++i) {
    const ValueId v = static_cast<ValueId>(i);
    at_[i] = usual(v);
    if (from_.value(v).producer == kNone) here_[i] = v;
    if (from_.value(v).state) declare_state(v);
  }
  place_given();
}

// Values that no op makes arrive whole.
void CutPass::place_given() {
  to_.set_phase(Phase::forward);
  for (auto& [v, how] : asked_)
    if (from_.value(v).producer == kNone) {
      to_.set_site(from_.value(v).site);
      place_asked(v);
    }
}

// Moves a value to the layout that a strategy has asked for.
void CutPass::place_asked(ValueId v) {
  const auto how = asked_.find(v);
  if (how == asked_.end()) return;
  const Value& value = from_.value(v);
  const int64_t extent = value.type.dims[static_cast<size_t>(how->second.dim)];
  const std::string name =
      value.producer == kNone ? value.name : from_.ops()[static_cast<size_t>(value.producer)].kind;
  if (extent % parts_)
    fail(ORR_INVALID,
         "{}: dim {} of '{}' {} does not divide over the {} {} of axis '{}': choose an extent "
         "that they divide, or another number of them",
         how->second.by, how->second.dim + 1, name, to_string(value.type.dims), parts_,
         chunks_ > 1 ? "chunks" : "ranks", me_.axis);
  const Cut parts = Cut::of(how->second.dim, {extent});
  become(v, read(v, parts), parts);
}

ValueId CutPass::known(ValueId v) const {
  ValueId x = here_[static_cast<size_t>(v)];
  if (x == kNone) fail(ORR_FAILED, "a value is read before it is made");
  return x;
}

void CutPass::become(ValueId v, ValueId x, Cut cut) {
  here_[static_cast<size_t>(v)] = x, at_[static_cast<size_t>(v)] = std::move(cut);
}

CutPass::Moved CutPass::move_of(ValueId v, const Cut& to) const {
  bool again = (ask_.scatter != kNone || !asked_.empty()) && to.kind == Cut::whole &&
               from_.value(v).batch == Batch::sharded;
  return {v, to.kind, to.dim, to.segments, again ? static_cast<int>(to_.phase()) : 0};
}

ValueId CutPass::read(ValueId v, const Cut& to) {
  if (cut(v) == to) return known(v);
  auto [at, fresh] = moved_.emplace(move_of(v, to), kNone);
  if (!fresh) return at->second;
  if (usual(v).kind == Cut::dealt && cut(v).kind != Cut::parts && to.kind != Cut::parts)
    fail(ORR_UNIMPLEMENTED,
         "{}a value is one index of a dim that is cut over axis '{}', which deals the batch, or "
         "meets one, and cannot travel alone: read all of the dim, or place the other one too",
         from_.value(v).site.prefix(), me_.axis);
  if (cut(v).kind == Cut::owned)
    return at->second = move(to_, from_owner(v), from_.type(v).dims, Cut{}, to, me_);
  if (const ValueId before = moved_before(v, to); before != kNone)
    return at->second = build::reshape(to_, before, held(from_.type(v), to, me_).dims);
  const ValueId x = cut(v).kind == Cut::sum ? build::tree(to_, summands(v)) : known(v);
  return at->second = move(to_, x, from_.type(v).dims, cut(v), to, me_);
}

// Attributes that say extents follow the shares.
void CutPass::fit_attributes(const Op& op, const Way& way, const Member& part, Op& copy) {
  auto out = [&](size_t j) { return to_.type(copy.out[j]).dims; };
  if (copy.attrs.count("dims")) copy.attrs["dims"] = out(0);
  if (copy.attrs.count("rows")) copy.attrs["rows"] = out(0)[0];
  if (copy.attrs.count("sizes")) {
    Dims sizes;
    for (size_t j = 0; j < copy.out.size(); ++j)
      sizes.push_back(out(j)[static_cast<size_t>(attr_int(op.attrs, "dim", 0))]);
    copy.attrs["sizes"] = sizes;
  }
  if (!copy.attrs.count("heads") || way.in[0].kind != Cut::parts) return;
  if (way.in[0].dim == 1) tell_queries(op, part, copy);
  if (way.in[0].dim == 2) {
    const int64_t all = attr_int(op.attrs, "heads", 1), share = all / me_.ranks;
    copy.attrs["heads"] = share;
    if (copy.attrs.count("rng_id")) {
      copy.attrs["head_total"] = attr_int(op.attrs, "head_total", all);
      copy.attrs["head_lo"] = attr_int(op.attrs, "head_lo", 0) + me_.rank * share;
    }
  }
}

// Carries out an op in one way; what becomes a sum, on each chunk.
void CutPass::emit(const Op& op, const Way& way) {
  const bool sums =
      std::any_of(way.out.begin(), way.out.end(), [](const Cut& c) { return c.kind == Cut::sum; });
  std::vector<std::vector<ValueId>> out(op.out.size());
  for (int i = 0; i < (sums ? chunks_ : 1); ++i) {
    Op copy = op;
    const Member part = sums ? chunk(i) : me_;
    for (size_t k = 0; k < op.in.size(); ++k)
      copy.in[k] = way.in[k].kind == Cut::sum ? summands(op.in[k])[static_cast<size_t>(i)]
                                              : read_part(op.in[k], way.in[k], part);
    for (size_t j = 0; j < op.out.size(); ++j) {
      const Value& whole = from_.value(op.out[j]);
      if (sums && chunks_ > 1)
        copy.out[j] = to_.new_value(whole.type, Role::activation, whole.name);
      Value& v = to_.mutable_value(copy.out[j]);
      v.type = held(whole.type, way.out[j], part);
      v.batch = whole.batch, v.batch_dim = whole.batch_dim;
      out[j].push_back(copy.out[j]);
    }
    append_fitted(op, way, part, std::move(copy));
  }
  for (size_t j = 0; j < op.out.size(); ++j) {
    const Cut& to = way.out[j];
    if (to.kind == Cut::sum)
      become_sum(op.out[j], std::move(out[j]));
    else
      become(op.out[j], out[j].size() == 1 ? out[j][0] : build::concat(to_, out[j], to.dim), to);
  }
}

void CutPass::append_fitted(const Op& op, const Way& way, const Member& part, Op copy) {
  fit_attributes(op, way, part, copy);
  const std::vector<Type> types = op_def(op.kind).infer(args_of(to_, copy));
  if (types != out_types(to_, copy))
    fail(ORR_FAILED,
         "{}{}: the share of rank {} of axis '{}' does not have the shape that the op gives",
         op.site.prefix(), op.kind, me_.rank, me_.axis);
  to_.append(std::move(copy));
}

void CutPass::remark(const Op& op, const Way& way) {
  if (deals_) return;  // samples go back to their ranks
  for (const Cut& in : way.in)
    if (in.kind == Cut::parts) return;
  for (ValueId v : op.in)
    if (cut(v).kind == Cut::parts && from_.value(v).batch == Batch::sharded &&
        !moved_.count(move_of(v, Cut{})))
      out_.remarks.push_back(
          fmt::format("{}{} cannot work on parts of {}: they are gathered on every rank",
                      op.site.prefix(), op.kind, to_string(from_.type(v).dims)));
}

void CutPass::translate(const Op& op) {
  to_.set_site(op.site), to_.set_phase(op.phase), to_.set_twin(op.twin), to_.set_stage(op.stage);
  if (op.kind == "user_gradient") {
    if (cut(op.in[0]).kind == Cut::sum)
      become_sum(op.out[0], summands(op.in[0]));
    else
      become(op.out[0], known(op.in[0]), cut(op.in[0]));
  } else if (!varying(op) && !owned(op) && !by_blocks(op) && (deals_ || !vocabulary(op))) {
    const Way way = choose(op);
    remark(op, way);
    emit(op, way);
  }
  for (ValueId v : op.out) place_asked(v);
}

void CutPass::finish() {
  to_.set_twin(kNone), to_.set_phase(Phase::update), to_.set_stage(0);
  for (auto& [state, next] : from_.updates()) {
    to_.set_site(from_.value(next).site);
    to_.update(state, read(next, cut(state)));
  }
  to_.set_phase(Phase::forward);
  for (auto& [name, id] : from_.outputs()) {
    to_.set_site(from_.value(id).site);
    to_.output(name, read(id, usual(id)));
  }
  for (Op& op : to_.mutable_ops()) {
    if (op.twin != kNone) op.twin = ops_[static_cast<size_t>(op.twin)];
    // What one rank needs for a value of its own alone, the others send, needed there or not.
    if (alone_ && is_exchange(op.kind)) op.attrs["always"] = int64_t{1};
  }
}

// Ops that nothing reads, such as those that a strategy has replaced, must not ask for layouts of
// their own.
CutProgram CutPass::run() {
  declare_values();
  const std::vector<bool> needed = live_ops(from_);
  for (size_t i = 0; i < from_.ops().size(); ++i) {
    if (needed[i]) translate(from_.ops()[i]);
    ops_[i] = static_cast<OpId>(to_.ops().size()) - 1;
  }
  finish();
  to_.set_site(from_.site());
  out_.here = std::move(here_);
  for (auto& [v, summands] : summands_)
    if (summands.size() == 1) out_.here[static_cast<size_t>(v)] = summands[0];
  return std::move(out_);
}

namespace {

// What is asked of values on one axis, by their ids in what the axes before have made.
std::map<ValueId, PartsAsked> asked_here(const Program& logical, const std::vector<bool>& needed,
                                         const Placing& placing, const CutProgram& before) {
  std::map<ValueId, PartsAsked> asked;
  for (auto& [v, how] : placing.values) {
    const OpId maker = logical.value(v).producer;
    if (maker != kNone && !needed[static_cast<size_t>(maker)]) continue;
    const ValueId x = before.here[static_cast<size_t>(v)];
    if (x == kNone)
      fail(ORR_UNIMPLEMENTED,
           "{}: '{}' is summed in chunks over another axis than '{}' and cannot be cut over this "
           "one as well: leave the chunks out of one of them",
           how.by, before.program.value(v).name, placing.axis);
    asked.emplace(x, how);
  }
  return asked;
}

}  // namespace

CutProgram cut_program(const Program& logical, const Mesh& mesh, int rank) {
  CutProgram done;
  done.here.resize(logical.values().size());
  std::iota(done.here.begin(), done.here.end(), 0);
  const Program* from = &logical;
  const std::vector<bool> needed = live_ops(logical);
  for (const Placing& placing : mesh.placed) {
    if (mesh.size_of(placing.axis) == 1 && placing.chunks <= 1) continue;
    auto asked = asked_here(logical, needed, placing, done);
    CutProgram next = CutPass(*from, mesh, placing, std::move(asked), rank).run();
    for (ValueId& v : done.here)
      if (v != kNone) v = next.here[static_cast<size_t>(v)];
    done.program = std::move(next.program), from = &done.program;
    done.segments.merge(next.segments);
    for (const std::string& remark : next.remarks)
      done.remarks.push_back(placing.origin + ": " + remark);
  }
  if (from == &logical) done.program = logical;
  leave_out_keys(done.program);
  return done;
}

namespace {

std::vector<std::string> exchanges_of(const Program& p) {
  std::vector<std::string> found;
  for (const Op& op : p.ops())
    if (is_exchange(op.kind))
      found.push_back(fmt::format("{}{} over axis '{}'", op.site.prefix(), op.kind,
                                  attr_text(op.attrs, "axis", "")));
  return found;
}

}  // namespace

void check_exchanges(const Program& logical, const Mesh& mesh) {
  const std::string axis = mesh.placed_axis();
  const auto each =
      in_parallel<std::vector<std::string>>(static_cast<size_t>(mesh.size_of(axis)), [&](size_t c) {
        const int rank = mesh.peer(axis, static_cast<int>(c), 0);
        return exchanges_of(cut_program(logical, mesh, rank).program);
      });
  for (size_t c = 1; c < each.size(); ++c) {
    const auto [a, b] =
        std::mismatch(each[0].begin(), each[0].end(), each[c].begin(), each[c].end());
    if (a == each[0].end() && b == each[c].end()) continue;
    fail(ORR_UNIMPLEMENTED,
         "the ranks of axes '{}' would exchange other values: {} and {}; leave one of the axes out",
         axis, a == each[0].end() ? "nothing" : *a, b == each[c].end() ? "nothing" : *b);
  }
}

}  // namespace orrery
