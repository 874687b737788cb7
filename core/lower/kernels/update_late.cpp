// SPDX-License-Identifier: Apache-2.0
//
// Moves what is computed once a step before the update, of no sample, and read by the update alone
// into the update, such as what is left of the running statistics of a batch normalization. There
// it joins what reads it.
#include <algorithm>

#include "lower/kernels/joined_ops.h"
#include "lower/lower.h"
#include "partition/timetable.h"

namespace orrery {
namespace {

class Mover {
 public:
  explicit Mover(LocalProgram& local)
      : p_(local.program),
        fixed_(read_from_outside(local)),
        whole_(p_.values().size()),
        moved_(p_.ops().size()) {
    for (const Total& t : local.totals) whole_[at(t.whole)] = true;
  }

  void run() {
    const std::vector<bool> once = once_a_step(p_);
    for (size_t i = p_.ops().size(); i-- > 0;) {  // readers first
      Op& op = p_.mutable_ops()[i];
      moved_[i] = op.phase != Phase::update && once[i] && may_move(op);
      if (moved_[i]) op.phase = Phase::update;
      if (op.phase != Phase::update)
        for (ValueId v : op.in) fixed_[at(v)] = true;
    }
    if (std::count(moved_.begin(), moved_.end(), true) > 0) rebuild();
  }

 private:
  static size_t at(int32_t id) { return static_cast<size_t>(id); }

  // An op without inputs is a constant, which every group repeats. One that reads the result of an
  // exchange stays behind that.
  bool may_move(const Op& op) const {
    return op.kind == "pointwise" && !op.in.empty() &&
           std::none_of(op.out.begin(), op.out.end(), [&](ValueId v) { return fixed_[at(v)]; }) &&
           std::none_of(op.in.begin(), op.in.end(), [&](ValueId v) { return whole_[at(v)]; });
  }

  // Puts the moved ops, in their order, before the update's first op.
  void rebuild() {
    std::vector<Op> from;
    std::swap(from, p_.mutable_ops());
    size_t first = 0;
    while (first < from.size() && (moved_[first] || from[first].phase != Phase::update)) ++first;
    for (const bool moved : {false, true})
      for (size_t i = 0; i < first; ++i)
        if (moved == (moved_[i] != 0)) p_.append(std::move(from[i]));
    for (size_t i = first; i < from.size(); ++i) p_.append(std::move(from[i]));
  }

  Program& p_;
  std::vector<char> fixed_;  // by value: others than the update read it
  std::vector<char> whole_;  // by value: an exchange completes it
  std::vector<char> moved_;  // by op
};

}  // namespace

void update_late(LocalProgram& local) { Mover(local).run(); }

}  // namespace orrery
