// SPDX-License-Identifier: Apache-2.0
#include "partition/shard/on_shards.h"

#include <orrery/ops.h>

#include <algorithm>

#include "program/op.h"

namespace orrery {
namespace {

size_t at(int32_t i) { return static_cast<size_t>(i); }

// ShardValue::width of a value of these dims. Cuts inside a tensor lie on multiples of
// ORR_SUM_BLOCK elements of the parameter.
int64_t width_of(const Dims& dims, int64_t per) {
  const bool rows = dims.size() == 2 && dims[1] > 0 && ORR_SUM_BLOCK % (dims[1] * per) == 0;
  return rows ? dims[1] : 0;
}

bool draws_numbers(const Op& op) {
  return std::any_of(op.expr.instrs.begin(), op.expr.instrs.end(),
                     [](const orr_instr& i) { return i.fn == ORR_FN_RAND; });
}

}  // namespace

OnShards::OnShards(const Program& p, const std::vector<Unit>& units)
    : p_(p),
      units_(units),
      value_(p.values().size()),
      computes_(p.ops().size()),
      readers_(p.values().size()),
      needed_(p.values().size()) {
  for (size_t u = 0; u < units.size(); ++u)
    for (size_t m = 0; m < units[u].read.size(); ++m)
      if (units[u].in_pieces())
        value_[at(units[u].read[m])] = {u, m, 1, width_of(p.type(units[u].read[m]).dims, 1)};
  find();
  while (drop_some()) {
  }
}

const ShardValue* OnShards::of(ValueId v) const {
  const std::optional<ShardValue>& found = value_[at(v)];
  return found ? &*found : nullptr;
}

Dims OnShards::cuts(const ShardValue& v) const {
  Dims found = units_[v.unit].shards[v.member];
  for (int64_t& cut : found) cut /= v.per;
  return found;
}

Dims OnShards::dims(const ShardValue& v, Range piece) const {
  return v.width ? Dims{piece.size() / v.width, v.width} : Dims{piece.size()};
}

// Finds the ops whose inputs allow that they are computed on shards.
void OnShards::find() {
  for (size_t i = 0; i < p_.ops().size(); ++i) {
    const Op& op = p_.ops()[i];
    const bool early = op.phase != Phase::update;
    for (ValueId v : op.in)
      if (early)
        readers_[at(v)].push_back(static_cast<OpId>(i));
      else
        needed_[at(v)] = true;
    if (!early || op.out.size() != 1) continue;
    value_[at(op.out[0])] = result_of(op);
    computes_[i] = value_[at(op.out[0])].has_value();
  }
  for (auto& [name, v] : p_.outputs()) needed_[at(v)] = true;
  for (auto& [state, next] : p_.updates()) needed_[at(next)] = true;
}

std::optional<ShardValue> OnShards::result_of(const Op& op) const {
  if (op.kind == "pointwise") return pointwise(op);
  if (op.kind == "reshape") return reshape(op);
  if (op.kind == "reduce") return reduce(op);
  return std::nullopt;
}

// How the result of a pointwise op, of these dims, is sharded because its input x is: as x, or,
// where x has one number for each row, by rows.
std::optional<ShardValue> OnShards::beside(ValueId x, const Dims& dims) const {
  std::optional<ShardValue> found = value_[at(x)];
  if (!found || p_.type(x).dims == dims) return found;
  if (found->width != 1 || dims.size() != 2 || found->per % dims[1] != 0) return std::nullopt;
  found->per /= dims[1], found->width = dims[1];  // one number for each row
  return found;
}

// On shards if all tensors that it reads are sharded alike. Numbers that are given do not matter.
std::optional<ShardValue> OnShards::pointwise(const Op& op) const {
  std::optional<ShardValue> out;
  for (ValueId v : op.in) {
    if (p_.type(v).dims.empty() && p_.value(v).producer == kNone) continue;
    const std::optional<ShardValue> x = beside(v, p_.type(op.out[0]).dims);
    if (!x || (out && *out != *x)) return std::nullopt;
    out = x;
  }
  return draws_numbers(op) ? std::nullopt : out;
}

std::optional<ShardValue> OnShards::reshape(const Op& op) const {
  std::optional<ShardValue> out = value_[at(op.in[0])];
  if (!out) return out;
  out->width = width_of(p_.type(op.out[0]).dims, out->per);
  return out;
}

// On shards if it makes one number of each row.
std::optional<ShardValue> OnShards::reduce(const Op& op) const {
  std::optional<ShardValue> out = value_[at(op.in[0])];
  const bool of_rows =
      out && out->width && attr_int(op.attrs, "begin", 0) == 1 && attr_int(op.attrs, "end", 0) == 2;
  if (!of_rows) return std::nullopt;
  out->per *= out->width, out->width = 0;
  return out;
}

// Whether all readers of the op's result gather it, or are computed on shards, too.
bool OnShards::is_read_whole(const Op& op) const {
  const ValueId out = op.out[0];
  const std::vector<OpId>& readers = readers_[at(out)];
  return !needed_[at(out)] && !readers.empty() &&
         std::all_of(readers.begin(), readers.end(), [&](OpId reader) {
           return computes(reader) || p_.ops()[at(reader)].kind == "unshard";
         });
}

// Drops ops that cannot be computed on shards after all, because of a reader or an input that was
// dropped; returns whether there was one.
bool OnShards::drop_some() {
  bool dropped = false;
  for (size_t i = p_.ops().size(); i-- > 0;) {
    const Op& op = p_.ops()[i];
    if (!computes_[i]) continue;
    const bool given = std::all_of(op.in.begin(), op.in.end(), [&](ValueId v) {
      return p_.type(v).dims.empty() || value_[at(v)].has_value();
    });
    if (given && is_read_whole(op)) continue;
    computes_[i] = false, value_[at(op.out[0])].reset(), dropped = true;
  }
  return dropped;
}

}  // namespace orrery
