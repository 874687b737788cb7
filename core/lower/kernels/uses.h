// SPDX-License-Identifier: Apache-2.0
//
// Who reads the values of a rank's program, and until when.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "lower/rank_plan.h"
#include "program/strided.h"

namespace orrery {

// Whether an op's results are its input, seen in other dims.
bool is_view(const std::string& kind);

class Uses {
 public:
  // Borrows the plan's program.
  explicit Uses(const RankPlan& plan);

  // By value: the last op that reads it or a view of it, kNone if none does.
  std::vector<int> last_read;
  // By value: the ops that read it, once for each time that the op does.
  std::vector<std::vector<size_t>> readers;
  std::set<ValueId> results;              // what the program gives to its caller
  std::map<ValueId, ValueId> next_state;  // new value to the state that it replaces

  bool is_result(ValueId v) const { return results.count(v) > 0; }
  bool is_update(ValueId v) const { return next_state.count(v) > 0; }
  // Whether an op may write the new value of a state over the old one: nothing reads that
  // afterwards, and the op does not read it either, works elementwise, or writes a part of it.
  bool may_replace(ValueId state, int op) const;
  // Whether an update_slice may write its part into its first input: the part does not lie there.
  bool may_write_into(const Op& op) const { return !sees(op.in[1], op.in[0]); }
  // Whether the result of a concat may be the memory of its parts, if these are states that lie one
  // after another: they are not replaced before it is read.
  bool may_be_row(const Op& op) const;
  // Whether only products read v, in whose kernel forms its dims may be nested, or reshapes for
  // which the same holds.
  bool only_in_products(ValueId v) const;
  // How v best lies: if only a reshape reads it, behind a transpose, then so that the reshape is a
  // view, too; else contiguous.
  Strided as_read(ValueId v) const;
  // Whether only reshapes read v, which cannot show it if it lies so.
  bool only_copied(ValueId v, const Strided& layout) const;

 private:
  // Whether this input of a product may be nested dims. Of groups only windows are: they overlap,
  // so that a copy of them is larger.
  bool nests(const Op& product, ValueId v) const;
  bool is_of_windows(ValueId v) const;
  bool sees(ValueId v, ValueId x) const;  // v is x or a view of it

  const Program& p_;
};

}  // namespace orrery
