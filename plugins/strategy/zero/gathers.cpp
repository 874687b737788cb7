// SPDX-License-Identifier: Apache-2.0
#include "gathers.h"

#include <algorithm>
#include <map>
#include <utility>

namespace zero {
namespace {

// A value of the op that reads a parameter, or a cast of one; and the chunk that the op is in.
struct Read {
  int32_t reader, value, parameter, chunk;
};

// One gathering of a unit, for one phase; with Gathering::each for one chunk of the model.
struct Use {
  int32_t unit, phase, chunk;
  int32_t first;  // a value of the first op that reads the unit
  std::vector<Read> reads = {};
};

class Writer {
 public:
  Writer(const orr::Program& p, const std::vector<Sharded>& sharded, const Gathering& how)
      : p_(p), sharded_(sharded), how_(how) {
    for (const Sharded& s : sharded) unit_of_[s.parameter] = s.unit;
  }

  void run() {
    find_uses();
    for (auto& [place, list] : lists_)
      for (size_t i = 0; i < list.size(); ++i) {
        const auto ahead =
            static_cast<size_t>(std::min<int64_t>(how_.ahead, static_cast<int64_t>(i)));
        Wholes& whole = wholes_[{list[i].unit, list[i].chunk}];
        if (how_.reshard || whole.empty()) whole = gather(list[i], list[i - ahead].first);
        std::map<int32_t, int32_t> again;  // by value: what stands for it in this phase
        for (const Read& read : list[i].reads) {
          auto [now, fresh] = again.try_emplace(read.value, -1);
          if (fresh || read.value == read.parameter)
            now->second = instead(read, whole, list[i].phase);
          p_.reread(read.reader, read.value, now->second);
        }
      }
  }

 private:
  using Wholes = std::map<std::pair<int32_t, int32_t>, int32_t>;  // by parameter and chunk

  // Lists the uses of each phase, and with `each` of each chunk, in the order of the program.
  void find_uses() {
    std::map<int64_t, std::pair<int32_t, orr_value_info>> ops;  // by number: one of its values
    p_.each(~0u, [&](orr::Value v, const orr_value_info& info) {
      if (info.op >= 0 && info.runs != ORR_PHASE_UPDATE) ops.insert({info.op, {v, info}});
    });
    for (auto& [number, op] : ops) {
      const auto& [value, info] = op;
      const std::vector<int32_t> in = p_.inputs(value);
      for (auto at = in.begin(); at != in.end(); ++at) {
        const int32_t v = *at;
        if (std::count(in.begin(), at, v)) continue;  // read several times, replaced once
        if (unit_of_.count(v)) note(info, {value, v, v, info.chunk});
        const auto cast = casts_.find(v);
        if (cast != casts_.end() && how_.reshard && info.runs == ORR_PHASE_BACKWARD)
          note(info, {value, v, cast->second, info.chunk});
      }
      if (info.runs == ORR_PHASE_FORWARD && in.size() == 1 && unit_of_.count(in[0]) &&
          is_cast(value))
        casts_[value] = in[0];
    }
  }

  bool is_cast(int32_t v) const {
    bool found = false;
    p_.maker(v, [&](const orr_op_desc& op) {
      found = op.expr && op.expr->n_instrs == 2 && op.expr->instrs[1].fn == ORR_FN_CAST;
    });
    return found;
  }

  void note(const orr_value_info& op, const Read& read) {
    const int32_t unit = unit_of_.at(read.parameter), chunk = how_.each ? op.chunk : 0;
    std::vector<Use>& list = lists_[{op.runs, chunk}];
    auto use = std::find_if(list.begin(), list.end(), [&](const Use& u) { return u.unit == unit; });
    if (use == list.end()) use = list.insert(use, {unit, op.runs, chunk, read.reader});
    use->reads.push_back(read);
    readers_[{op.runs, chunk}].try_emplace({read.parameter, read.chunk}, read.reader);
    read_[chunk].try_emplace({read.parameter, read.chunk}, read.reader);
  }

  // Gathers what the chunk reads of a unit, before the op that makes the value `before`. A
  // parameter belongs to where it is read, in this phase if it is.
  Wholes gather(const Use& use, int32_t before) {
    Wholes whole;
    ++group_;
    for (const Sharded& s : sharded_) {
      if (s.unit != use.unit) continue;
      const Wholes &now = readers_[{use.phase, use.chunk}], &ever = read_[use.chunk];
      const Wholes& from = is_in(now, s.parameter) ? now : ever;
      for (auto at = from.lower_bound({s.parameter, 0}); at != from.end(); ++at) {
        if (at->first.first != s.parameter) break;
        p_.beside(at->second, use.phase), p_.before(before);
        whole[at->first] =
            p_.op("unshard", {s.parameter}, {number("group", group_), number("each", how_.each)});
      }
    }
    p_.before(-1);
    return whole;
  }

  static bool is_in(const Wholes& wholes, int32_t parameter) {
    const auto at = wholes.lower_bound({parameter, 0});
    return at != wholes.end() && at->first.first == parameter;
  }

  // What stands for read.value: the parameter that was gathered for the reader's chunk, or its
  // cast.
  int32_t instead(const Read& read, const Wholes& whole, int32_t phase) const {
    const auto exact = whole.find({read.parameter, read.chunk});
    const int32_t gathered =
        (exact != whole.end() ? exact : whole.lower_bound({read.parameter, 0}))->second;
    if (read.value == read.parameter) return gathered;
    p_.beside(read.reader, phase);
    return p_.copy(read.value, phase, {gathered})[0];
  }

  static orr_attr number(const char* name, int64_t value) {
    orr_attr attr{};
    attr.name = name, attr.type = ORR_ATTR_INT, attr.i = value;
    return attr;
  }

  const orr::Program& p_;
  const std::vector<Sharded>& sharded_;
  const Gathering how_;
  std::map<int32_t, int32_t> unit_of_;  // by parameter
  std::map<int32_t, int32_t> casts_;    // by value: the parameter of which it is a cast
  std::map<std::pair<int32_t, int32_t>, std::vector<Use>> lists_;  // by phase and chunk
  std::map<std::pair<int32_t, int32_t>, Wholes> readers_;  // the first readers, by phase and chunk
  std::map<int32_t, Wholes> read_;                         // those in any phase, by chunk
  std::map<std::pair<int32_t, int32_t>, Wholes> wholes_;   // what was gathered, by unit and chunk
  int64_t group_ = 0;
};

}  // namespace

void write_gathers(const orr::Program& step, const std::vector<Sharded>& sharded,
                   const Gathering& how) {
  Writer(step, sharded, how).run();
}

}  // namespace zero
