// SPDX-License-Identifier: Apache-2.0
#include "partition/shard/unshard.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "base/error.h"
#include "partition/shared/gather.h"
#include "program/build.h"
#include "program/rewrite.h"

namespace orrery {
namespace {

size_t at(int32_t i) { return static_cast<size_t>(i); }

bool gathers(const Op& op) { return op.kind == "unshard" && op.phase != Phase::update; }

}  // namespace

Unshard::Unshard(const Program& from, const Mesh& mesh, int rank, const std::vector<Unit>& units,
                 const std::vector<bool>& once)
    : from_(from), mesh_(mesh), rank_(rank), units_(units), once_(once), on_shards_(from, units) {
  for (size_t i = 0; i < from.ops().size(); ++i) {
    const Op& op = from.ops()[i];
    if (op.phase == Phase::update || op.kind == "unshard" || !once[i]) continue;
    for (ValueId v : op.in)
      if (const OpId maker = from.value(v).producer;
          maker != kNone && is_each(op_at(maker)) && on_shards_.of(op_at(maker).in[0]))
        once_value_[v] = kNone;
  }
  find_groups();
}

void Unshard::find_groups() {
  for (size_t i = 0; i < from_.ops().size(); ++i) {
    const Op& op = from_.ops()[i];
    if (!gathers(op)) continue;
    if (on_shards_.of(op.in[0]))
      groups_[group_of(static_cast<OpId>(i))].push_back(static_cast<OpId>(i));
    else
      check(op);
  }
  std::erase_if(groups_, [&](const auto& group) {
    return std::none_of(group.second.begin(), group.second.end(),
                        [&](OpId op) { return on_shards_.is_read(op_at(op).out[0]); });
  });
}

// Whether the op gathers for each microbatch.
bool Unshard::is_each(const Op& unshard) const {
  return gathers(unshard) && mesh_.schedule.one_by_one && attr_int(unshard.attrs, "each", 0) != 0;
}

ValueId Unshard::read_by(OpId op, ValueId v) const {
  const auto found = once_value_.find(v);
  return once_[at(op)] && found != once_value_.end() ? found->second : v;
}

bool Unshard::takes(OpId op) const {
  return on_shards_.computes(op) || (gathers(op_at(op)) && on_shards_.of(op_at(op).in[0]));
}

Unshard::Group Unshard::group_of(OpId id) const {
  const Op& op = op_at(id);
  const bool each = is_each(op);
  return {op.phase,
          each,
          each ? op.stage : 0,
          attr_int(op.attrs, "group", 0),
          op.attrs.has("group") ? kNone : id,
          units_[on_shards_.of(op.in[0])->unit].how.axis,
          from_.type(op.out[0]).dtype};
}

// An `unshard` of a whole value does nothing. But a value may be whole because an op that cannot
// work on shards makes it of a sharded parameter. Then the parameter is gathered for that op, and
// not, as the program says, the value: this is an error.
void Unshard::check(const Op& op) const {
  std::set<ValueId> seen;
  std::vector<ValueId> open = op.in;
  while (!open.empty()) {
    const ValueId v = open.back();
    open.pop_back();
    if (!seen.insert(v).second) continue;
    if (const ShardValue* found = on_shards_.of(v))
      fail(ORR_INVALID,
           "{}unshard: {} is made of '{}', of which ranks have shards, in a way that needs all of "
           "it: before `unshard` there may be elementwise ops, reshape to rows whose length "
           "divides {}, and reduce of such rows",
           op.site.prefix(), title(from_, op.in[0]),
           from_.value(units_[found->unit].params[found->member]).name, ORR_SUM_BLOCK);
    if (const OpId maker = from_.value(v).producer; maker != kNone && !gathers(op_at(maker)))
      open.insert(open.end(), op_at(maker).in.begin(), op_at(maker).in.end());
  }
}

void Unshard::emit(OpId op, Program& to) {
  if (!gathers(op_at(op))) return;
  const auto group = groups_.find(group_of(op));
  if (group == groups_.end()) return;  // its first op has gathered for all, or nothing reads it
  std::vector<OpId> ops = std::move(group->second), read_once;
  const bool each = group->first.each;
  groups_.erase(group);
  std::stable_sort(ops.begin(), ops.end(),
                   [&](OpId a, OpId b) { return place_of(a) < place_of(b); });
  std::copy_if(ops.begin(), ops.end(), std::back_inserter(read_once),
               [&](OpId member) { return once_value_.count(op_at(member).out[0]) > 0; });
  if (each && !read_once.empty()) gather(read_once, false, to);
  gather(ops, each, to);
}

// Emits one exchange that gathers for all of these ops, which are in the order of place_of.
void Unshard::gather(const std::vector<OpId>& ops, bool each, Program& to) {
  std::vector<ShardedTensor> pieces;
  std::map<ValueId, size_t> sent;  // what several ops gather is sent once
  for (OpId member : ops) {
    const ValueId v = op_at(member).in[0];
    if (sent.try_emplace(v, pieces.size()).second)
      pieces.push_back({{shard_of(v, to)}, on_shards_.cuts(*on_shards_.of(v))});
  }
  const Op& first = op_at(ops[0]);
  to.set_site(first.site);
  const std::vector<ValueId> wholes =
      gather_together(to, pieces, from_.type(first.out[0]).dtype,
                      gather_axis(units_[on_shards_.of(first.in[0])->unit].how, mesh_, rank_),
                      {.awaited = true, .each = each});
  for (OpId member : ops) {
    const ValueId whole = wholes[sent.at(op_at(member).in[0])], out = op_at(member).out[0];
    if (const auto once = once_value_.find(out); !each && once != once_value_.end()) {
      once->second = build::reshape(to, whole, from_.type(out).dims);
      continue;
    }
    Op shown;
    shown.kind = "reshape", shown.in = {whole}, shown.out = {out};
    shown.attrs = {{"dims", from_.type(out).dims}};
    shown.phase = to.phase(), shown.site = first.site, shown.stage = first.stage;
    to.append(std::move(shown));
  }
}

// The order of a unit's parameters, in which gathered pieces need no rearranging (is_one_list in
// shared/gather.cpp).
std::pair<size_t, size_t> Unshard::place_of(OpId unshard) const {
  const ShardValue& v = *on_shards_.of(op_at(unshard).in[0]);
  return {v.unit, v.member};
}

Range Unshard::mine(const ShardValue& v) const {
  return held_by(on_shards_.cuts(v), mesh_.coordinate(units_[v.unit].how.axis, rank_));
}

// This rank's piece of v, computed in the phase that `to` is in; kNone if it has no element.
ValueId Unshard::shard_of(ValueId v, Program& to) {
  const auto [found, fresh] = shards_.try_emplace({v, to.phase()}, kNone);
  if (!fresh) return found->second;
  const ShardValue& lies = *on_shards_.of(v);
  const Range held = mine(lies);
  if (held.size() == 0) return kNone;
  const OpId maker = from_.value(v).producer;
  const ValueId made = maker == kNone ? v : compute(op_at(maker), lies, held, to);
  return shards_[{v, to.phase()}] = made;
}

ValueId Unshard::compute(const Op& op, const ShardValue& result, Range held, Program& to) {
  const Dims dims = on_shards_.dims(result, held);
  Op cut = op;
  cut.twin = kNone, cut.out.clear();
  if (cut.attrs.has("dims")) cut.attrs.set("dims", dims);
  for (ValueId& v : cut.in) {
    const ShardValue* read = on_shards_.of(v);
    if (!read) continue;
    const Dims shown = on_shards_.dims(*read, mine(*read));
    v = shard_of(v, to);
    if (const Type& type = to.type(v); type.dims != shown)  // a state that this rank has whole
      v = append_op(to, "reshape", {{"dims", shown}}, {v}, {type.dtype, shown});
  }
  to.set_site(op.site);
  const ValueId out = append_op(to, std::move(cut), {from_.type(op.out[0]).dtype, dims});
  Value& value = to.mutable_value(out);
  value.layout = from_.value(op.out[0]).layout.with(units_[result.unit].how.axis, lies(result));
  return out;
}

}  // namespace orrery
