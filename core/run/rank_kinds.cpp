// SPDX-License-Identifier: Apache-2.0
#include "run/rank_kinds.h"

#include <map>
#include <string>

#include "base/in_parallel.h"
#include "lower/tensor.h"
#include "program/op.h"

namespace orrery {
namespace {

std::string shapes(const Program& p) {
  std::string text;
  for (const Op& op : p.ops()) {
    text += op.kind + to_string(attr_ints(op.attrs, "counts"));
    for (ValueId v : op.in) text += to_string(p.type(v));
    for (ValueId v : op.out) text += to_string(p.type(v));
  }
  return text;
}

}  // namespace

RankKinds::RankKinds(const Blueprint& b) : b_(b), first_(deal_leaves(b.microbatches, b.spread)) {
  const std::string& axis = b.spread.tensor.axis;
  const size_t shares = axis.empty() ? 0 : static_cast<size_t>(b.spread.size_of(axis));
  cuts_ = in_parallel<Program>(shares, [&](size_t t) {
    return cut_program(b.program, b.spread, b.spread.peer(axis, static_cast<int>(t), 0)).program;
  });
  std::map<std::string, int> known;
  for (const Program& cut : cuts_)
    alike_.push_back(known.emplace(shapes(cut), static_cast<int>(alike_.size())).first->second);
  for (size_t r = 0; b.spread.make_timetable && r + 1 < first_.size();
       ++r)  // plans may be made by other threads
    b.spread.make_timetable(static_cast<int>(first_[r + 1] - first_[r]));
  std::map<Kind, std::vector<int>> by_kind;
  for (int r = 0; r < b.spread.world; ++r) by_kind[describe(r)].push_back(r);
  kind_of_.resize(static_cast<size_t>(b.spread.world));
  for (auto& [kind, who] : by_kind) {
    for (int rank : who) kind_of_[static_cast<size_t>(rank)] = members_.size();
    members_.push_back(std::move(who));
  }
  for (size_t k = 0; !b.spread.pipe_axis.empty() && k < members_.size(); ++k) {
    const Program* cut = cut_for(members_[k].front());
    const Program& from = cut ? *cut : b.program;
    homes_.try_emplace(&from, from, b.spread);
  }
}

Kind RankKinds::describe(int rank) const {
  Kind kind;
  for (const Axis& axis : b_.spread.axes) {
    int at = b_.spread.coordinate(axis.name, rank);
    if (axis.name == b_.spread.tensor.axis) at = alike_[static_cast<size_t>(at)];
    if (axis.name != b_.spread.batch_axis || !b_.spread.sharded.empty()) kind.push_back(at);
  }
  size_t me = static_cast<size_t>(b_.spread.coordinate(b_.spread.batch_axis, rank));
  kind.push_back(first_[me + 1] - first_[me]);
  kind.push_back(orr_tree_nodes(first_[me], first_[me + 1], b_.microbatches));
  return kind;
}

const Program* RankKinds::cut_for(int rank) const {
  const std::string& axis = b_.spread.tensor.axis;
  return axis.empty() ? nullptr : &cuts_[static_cast<size_t>(b_.spread.coordinate(axis, rank))];
}

LowerRequest RankKinds::request(size_t kind, const std::vector<std::string>& kernels) const {
  const int rank = members_[kind].front();
  const Program* cut = cut_for(rank);
  auto homes = homes_.find(cut ? cut : &b_.program);
  return {&b_.program,
          &b_.spread,
          b_.microbatches,
          rank,
          kernels,
          cut,
          homes == homes_.end() ? nullptr : &homes->second};
}

}  // namespace orrery
