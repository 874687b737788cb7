// SPDX-License-Identifier: Apache-2.0
//
// Moves sums over the samples of short rows that only the update reads and ranks do not exchange,
// such as those for the running statistics of a batch normalization, to the end of forward. Side by
// side they are one launch where the kernels can merge them; before, they stood between large ones.
#include <algorithm>

#include "lower/kernels/joined_ops.h"
#include "lower/kernels/uses.h"
#include "lower/lower.h"

namespace orrery {
namespace {

constexpr int64_t kShort = 4096;  // elements of a sample, which are kept for longer

class Mover {
 public:
  Mover(LocalProgram& local, const Mesh& mesh)
      : p_(local.program), partial_(p_.values().size(), kNone), early_(p_.values().size()) {
    for (const Total& t : local.totals) {
      partial_[at(t.whole)] = t.partial;
      // Ranks exchange sums in the order in which these are made, which must be one on all ranks;
      // who reads them on this rank must not change it.
      if (mesh.size_of(t.axis) > 1) early_[at(t.partial)] = true;
    }
  }

  void run() {
    const std::vector<Op>& ops = p_.ops();
    std::vector<char> late(ops.size());
    for (size_t i = ops.size(); i-- > 0;) {  // readers first
      late[i] = ops[i].phase == Phase::forward && may_move(ops[i]);
      if (!late[i] && ops[i].phase != Phase::update)
        for (ValueId v : ops[i].in) read_early(v);
    }
    if (std::count(late.begin(), late.end(), true) > 0) rebuild(late);
  }

 private:
  static size_t at(ValueId v) { return static_cast<size_t>(v); }

  void read_early(ValueId v) {
    early_[at(v)] = true;
    if (partial_[at(v)] != kNone) early_[at(partial_[at(v)])] = true;
  }

  bool may_move(const Op& op) const {
    return (is_view(op.kind) || sums_short_rows(op)) &&
           std::none_of(op.out.begin(), op.out.end(), [&](ValueId v) { return early_[at(v)]; });
  }

  // What a rank has of the batch says nothing here: all ranks must move the same.
  bool sums_short_rows(const Op& op) const {
    if (op.kind != "reduce" || attr_int(op.attrs, "begin", 0) != 0) return false;
    const Dims& dims = p_.type(op.in[0]).dims;
    int64_t elements = 1;
    for (size_t d = 1; d < dims.size(); ++d) elements *= dims[d];
    return attr_int(op.attrs, "end", 0) == 1 && elements <= kShort;
  }

  // Late sums, and views of them, wait for the next op of another phase or stage.
  void rebuild(const std::vector<char>& late) {
    std::vector<Op> from, waiting;
    std::swap(from, p_.mutable_ops());
    const auto flush = [&] {
      for (Op& op : waiting) p_.append(std::move(op));
      waiting.clear();
    };
    for (size_t i = 0; i < from.size(); ++i) {
      if (!waiting.empty() &&
          (from[i].phase != Phase::forward || from[i].stage != waiting[0].stage))
        flush();
      const auto makes = [&](const Op& op) { return op.out[0] == from[i].in[0]; };
      if (late[i] && (!is_view(from[i].kind) || std::any_of(waiting.begin(), waiting.end(), makes)))
        waiting.push_back(std::move(from[i]));
      else
        p_.append(std::move(from[i]));
    }
    flush();
  }

  Program& p_;
  std::vector<ValueId> partial_;  // by value: the summand of what an exchange completes
  std::vector<char> early_;       // by value: others than the update and what moves read it
};

}  // namespace

void sum_late(LocalProgram& local, const Mesh& mesh) { Mover(local, mesh).run(); }

}  // namespace orrery
