// SPDX-License-Identifier: Apache-2.0
//
// Has programs read and update compute copies of sharded parameters (partition/passes.h):
//
//   y = matmul(x, cast(w, bf16))    ->    y = matmul(x, w:bf16), and in the update
//   new w = w - 0.1 g                     new w = w - 0.1 g; new w:bf16 = cast(new w, bf16)
#include "partition/passes.h"

#include <orrery/strategy.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <vector>

#include "base/error.h"
#include "program/state.h"

namespace orrery {
namespace {

size_t at(int32_t i) { return static_cast<size_t>(i); }

bool is_cast(const Op& op) {
  return op.kind == "pointwise" && op.in.size() == 1 && op.expr.instrs.size() == 2 &&
         op.expr.instrs.back().fn == ORR_FN_CAST;
}

// How forward and backward read a parameter.
struct Reads {
  std::vector<ValueId> casts;     // the results of its casts, all to one narrower dtype
  std::vector<OpId> unshards;     // ops that gather it for casts
  std::set<int> coordinates;      // the stages that read it
  std::optional<Site> otherwise;  // where an op reads it other than through such a cast
};

class Reader {
 public:
  Reader(Program& p, const Mesh& mesh) : p_(p), mesh_(mesh), now_(p.values().size()) {
    std::iota(now_.begin(), now_.end(), 0);
    for (size_t v = 0; v < p.values().size(); ++v)
      if (is_sharded(p.values()[v])) reads_[static_cast<ValueId>(v)] = {};
    for (size_t i = 0; i < p.ops().size(); ++i) find_reads(static_cast<OpId>(i));
    for (auto& [name, v] : p.outputs())
      if (auto found = reads_of(v); found != reads_.end()) found->second.otherwise = Site{};
  }

  void run() {
    const Site site = p_.site();
    for (auto& [param, reads] : reads_) {
      State& s = *p_.value(param).state;
      // A parameter that several stages read gets no copy: it is whole on all of them.
      const bool can = !reads.casts.empty() && !reads.otherwise && reads.coordinates.size() <= 1;
      if (!s.copy && (s.bound || !can)) continue;
      if (reads.otherwise) refuse(s, *reads.otherwise);
      const ValueId copy = copy_of(param, reads);
      for (ValueId cast : reads.casts) {
        const ValueId read = p_.ops()[at(p_.value(cast).producer)].in[0];
        now_[at(cast)] = read == param ? copy : read;
      }
      for (OpId unshard : reads.unshards) gather_instead(copy, p_.mutable_ops()[at(unshard)]);
    }
    p_.set_site(site);
    redirect();
  }

 private:
  bool is_sharded(const Value& v) const {
    const auto how = mesh_.sharded.find(v.name);
    return v.role == Role::param && how != mesh_.sharded.end() && !v.type.dims.empty() &&
           mesh_.size_of(how->second.axis) > 1;
  }

  // The parameter that v is, or that `unshard` makes v of.
  std::map<ValueId, Reads>::iterator reads_of(ValueId v) {
    const auto param = gathered_.find(v);
    return reads_.find(param == gathered_.end() ? v : param->second);
  }

  void find_reads(OpId id) {
    const Op& op = p_.ops()[at(id)];
    if (op.phase == Phase::update) return;
    for (ValueId v : op.in) {
      const auto found = reads_of(v);
      if (found == reads_.end()) continue;
      if (op.kind == "unshard") {
        gathered_[op.out[0]] = found->first;
        found->second.unshards.push_back(id);
      } else {
        read(op, found->first, found->second);
      }
    }
  }

  void read(const Op& op, ValueId param, Reads& reads) const {
    if (!mesh_.schedule.axis.empty())
      reads.coordinates.insert(mesh_.schedule.chunk_at[at(op.stage)]);
    if (is_cast(op) && fits(*p_.value(param).state, reads, p_.type(op.out[0]).dtype))
      reads.casts.push_back(op.out[0]);
    else
      reads.otherwise = op.site;
  }

  bool fits(const State& param, const Reads& reads, int32_t dtype) const {
    if (param.copy) return dtype == param.copy->type.dtype;
    return orr_dtype_bytes(dtype) < orr_dtype_bytes(param.type.dtype) &&
           (reads.casts.empty() || p_.type(reads.casts[0]).dtype == dtype);
  }

  [[noreturn]] static void refuse(const State& param, const Site& reader) {
    fail(ORR_INVALID,
         "{}'{}' is read in {} here, but a program that was compiled before reads it in {} alone "
         "and keeps it in pieces: compile the training step first",
         reader.prefix(), param.name, dtype_name(param.type.dtype),
         dtype_name(param.copy->type.dtype));
  }

  ValueId copy_of(ValueId param, const Reads& reads) {
    State& s = *p_.value(param).state;
    if (!s.copy) {
      const int32_t dtype = p_.type(reads.casts[0]).dtype;
      s.copy = std::make_shared<State>();
      s.copy->name = s.name + ":" + dtype_name(dtype), s.copy->type = {dtype, s.type.dims};
      s.copy->role = Role::state, s.copy->site = s.site, s.copy->beside = s.name;
      s.copy->passing = true, s.copy->copy_of = &s;
      s.copy->version = UINT64_MAX;  // differs from the parameter's: the copy must still be made
    }
    p_.set_site(s.site);
    const ValueId copy = p_.state_value(s.copy);
    p_.mutable_value(copy).set_varying(p_.value(param).varying());
    if (mesh_.sharded.at(s.name).what >= ORR_SHARD_PARAM)
      p_.mutable_value(copy).tier = p_.value(param).tier;
    return copy;
  }

  void gather_instead(ValueId copy, Op& unshard) {
    unshard.in[0] = copy;
    p_.mutable_value(unshard.out[0]).type = p_.type(copy);
  }

  // Lets readers of the casts read the copies. Nothing reads the casts any more, so no rank
  // computes them.
  void redirect() {
    const auto move = [&](ValueId& v) {
      if (at(v) < now_.size()) v = now_[at(v)];
    };
    for (Op& op : p_.mutable_ops()) std::for_each(op.in.begin(), op.in.end(), move);
    for (auto& [state, next] : p_.mutable_updates()) move(next);
    for (auto& [name, v] : p_.mutable_outputs()) move(v);
  }

  Program& p_;
  const Mesh& mesh_;
  std::map<ValueId, Reads> reads_;
  std::map<ValueId, ValueId> gathered_;  // what `unshard` makes of a parameter -> the parameter
  std::vector<ValueId> now_;             // by value: the value that stands for it
};

// Parameters of which forward reads the whole stay in the device's memory, whatever tier was asked.
void keep_on_device(Program& p, const Mesh& mesh) {
  for (size_t v = 0; v < p.values().size(); ++v) {
    const Value& value = p.values()[v];
    if (value.role != Role::param) continue;
    const auto how = mesh.sharded.find(value.name);
    const bool in_pieces =
        how != mesh.sharded.end() && (how->second.what >= ORR_SHARD_PARAM || value.state->copy);
    if (!in_pieces) p.mutable_value(static_cast<ValueId>(v)).tier = Tier::device;
  }
}

}  // namespace

void read_copies(Program& p, const Mesh& mesh) {
  if (mesh.sharded.empty()) return;
  Reader(p, mesh).run();
  keep_on_device(p, mesh);
  update_copies(p);
}

void update_copies(Program& p) {
  std::map<const State*, ValueId> copies;
  for (size_t v = 0; v < p.values().size(); ++v)
    if (const State* s = p.values()[v].state.get(); s && s->copy_of)
      copies[s->copy_of] = static_cast<ValueId>(v);
  const Phase phase = p.phase();
  const Site site = p.site();
  p.set_phase(Phase::update);
  const auto updates = p.updates();
  for (auto& [state, next] : updates)
    if (auto copy = copies.find(p.value(state).state.get()); copy != copies.end()) {
      p.set_site(p.value(state).site);
      p.update(copy->second, p.cast(next, p.type(copy->second).dtype));
    }
  p.set_phase(phase), p.set_site(site);
}

}  // namespace orrery
