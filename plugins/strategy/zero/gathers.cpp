// SPDX-License-Identifier: Apache-2.0
#include "strategy/zero/gathers.h"

#include <algorithm>
#include <map>
#include <utility>

namespace zero {
namespace {

// One gathering of a unit, for one phase; with Gathering::each for one chunk of the model.
struct Use {
  int32_t unit, phase, chunk;
  int32_t first;  // a value of the first op that reads the unit
  std::vector<std::pair<int32_t, int32_t>> reads = {};  // a value of the reading op, the parameter
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
        Use& use = list[i];
        const auto ahead =
            static_cast<size_t>(std::min<int64_t>(how_.ahead, static_cast<int64_t>(i)));
        auto& whole = whole_[{use.unit, use.chunk}];
        if (how_.reshard || whole.empty()) whole = gather(use, list[i - ahead].first);
        for (auto& [reader, parameter] : use.reads)
          p_.reread(reader, parameter, whole.at(parameter));
      }
  }

 private:
  using Values = std::map<int32_t, int32_t>;  // by parameter

  // Lists the uses of each phase, and with `each` of each chunk, in the order of the program.
  void find_uses() {
    std::map<int64_t, std::pair<int32_t, orr_value_info>> ops;  // by number: one of its values
    p_.each(~0u, [&](orr::Value v, const orr_value_info& info) {
      if (info.op >= 0 && info.runs != ORR_PHASE_UPDATE) ops.insert({info.op, {v, info}});
    });
    for (auto& [number, op] : ops)
      for (int32_t in : p_.inputs(op.first))
        if (unit_of_.count(in)) note(op.first, op.second, in);
  }

  void note(int32_t reader, const orr_value_info& op, int32_t parameter) {
    const int32_t unit = unit_of_.at(parameter), chunk = how_.each ? op.chunk : 0;
    std::vector<Use>& list = lists_[{op.runs, chunk}];
    auto use = std::find_if(list.begin(), list.end(), [&](const Use& u) { return u.unit == unit; });
    if (use == list.end()) use = list.insert(use, {unit, op.runs, chunk, reader});
    use->reads.push_back({reader, parameter});
    readers_[{op.runs, chunk}].try_emplace(parameter, reader);
    read_[chunk].try_emplace(parameter, reader);
  }

  // Gathers what the chunk reads of a unit, before the op that makes the value `before`. Each
  // parameter belongs to where it is read, in this phase if it is.
  Values gather(const Use& use, int32_t before) {
    Values whole;
    ++group_;
    const Values &now = readers_[{use.phase, use.chunk}], &ever = read_[use.chunk];
    for (const Sharded& s : sharded_) {
      if (s.unit != use.unit || !ever.count(s.parameter)) continue;
      const auto reader = now.find(s.parameter);
      p_.beside(reader == now.end() ? ever.at(s.parameter) : reader->second, use.phase);
      p_.before(before);
      whole[s.parameter] =
          p_.op("unshard", {s.parameter}, {number("group", group_), number("each", how_.each)});
    }
    return whole;
  }

  static orr_attr number(const char* name, int64_t value) {
    orr_attr attr{};
    attr.name = name, attr.type = ORR_ATTR_INT, attr.i = value;
    return attr;
  }

  const orr::Program& p_;
  const std::vector<Sharded>& sharded_;
  const Gathering how_;
  std::map<int32_t, int32_t> unit_of_;                             // by parameter
  std::map<std::pair<int32_t, int32_t>, std::vector<Use>> lists_;  // by phase and chunk
  std::map<std::pair<int32_t, int32_t>, Values> readers_;          // the first, by phase and chunk
  std::map<int32_t, Values> read_;                       // the first in any phase, by chunk
  std::map<std::pair<int32_t, int32_t>, Values> whole_;  // by unit and chunk: what was gathered
  int64_t group_ = 0;
};

}  // namespace

void write_gathers(const orr::Program& step, const std::vector<Sharded>& sharded,
                   const Gathering& how) {
  Writer(step, sharded, how).run();
}

}  // namespace zero
