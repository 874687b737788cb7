// SPDX-License-Identifier: Apache-2.0
//
// Puts the casts of states that forward reads (16-bit copies of the parameters) before all other
// ops of a step, each cast once. Side by side they are one launch where the kernels can merge them.
// A state that is turned and seen in other dims, as a convolution's weight, is cast before its dims
// are joined: it would be copied for that, and then cast.
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include "lower/kernels/joined_ops.h"
#include "lower/kernels/uses.h"
#include "lower/lower.h"

namespace orrery {
namespace {

bool is_cast(const Op& op) {
  return op.kind == "pointwise" && op.phase != Phase::update && op.in.size() == 1 &&
         op.expr.instrs.size() == 2 && op.expr.instrs[1].fn == ORR_FN_CAST;
}

class CastFirst {
 public:
  explicit CastFirst(LocalProgram& local)
      : p_(local.program), read_(read_from_outside(local)), pinned_(read_) {}

  void run() {
    std::vector<Op> ops;
    std::swap(ops, p_.mutable_ops());
    for (Op& op : ops) note(op);
    for (Op& op : ops) {
      for (ValueId& v : op.in)
        if (const auto at = same_.find(v); at != same_.end()) v = at->second;
      if (is_cast(op) && (op.phase == Phase::forward ? is_state(op.in[0]) : is_seen(op.in[0])))
        cast(std::move(op));
      else
        rest_.push_back(std::move(op));
    }
    first_.insert(first_.end(), std::make_move_iterator(rest_.begin()),
                  std::make_move_iterator(rest_.end()));
    append_read();
  }

 private:
  void note(const Op& op) {
    if (is_view(op.kind) && op.out.size() == 1 && op.phase == Phase::forward && is_state(op.in[0]))
      views_[op.out[0]] = op;
  }

  bool is_state(ValueId v) const {
    const Value& x = p_.value(v);
    return is_seen(v) || (x.state && x.tier == Tier::device);
  }
  bool is_seen(ValueId v) const { return views_.count(v) > 0; }

  // Casts what is under the last reshapes, and shows the result in their dims.
  void cast(Op op) {
    std::vector<Op> shown;
    for (auto view = views_.find(op.in[0]); view != views_.end() && view->second.kind == "reshape";
         view = views_.find(op.in[0])) {
      Op reshape = view->second;
      reshape.in = {like(op.out[0], reshape.in[0])}, reshape.out = op.out;
      reshape.phase = op.phase;
      op.in = view->second.in, op.out = reshape.in;
      shown.push_back(std::move(reshape));
    }
    push(std::move(op), std::move(shown));
  }

  // A value of that type with other dims.
  ValueId like(ValueId v, ValueId other) {
    const ValueId made = p_.new_value({p_.type(v).dtype, p_.type(other).dims}, p_.value(v).role);
    p_.mutable_value(made).layout = p_.value(v).layout;
    p_.mutable_value(made).site = p_.value(v).site;
    return made;
  }

  // Puts the cast before all other ops, with what it views, or takes the one that is there. One
  // that only backward reads stays where it is.
  void push(Op op, std::vector<Op> shown) {
    const ValueId out = op.out[0];
    const auto [at, fresh] = casts_.try_emplace({op.in[0], op.expr.instrs[1].dtype, op.stage}, out);
    if (fresh && op.phase == Phase::backward) {
      casts_.erase(at);
      rest_.push_back(std::move(op));
    } else if (fresh || is_pinned(out)) {
      move_view(op.in[0]);
      first_.push_back(std::move(op));
    } else if (shown.empty()) {
      same_[out] = at->second;
    } else {
      shown.back().in = {at->second};
    }
    for (; !shown.empty(); shown.pop_back()) rest_.push_back(std::move(shown.back()));
  }

  void move_view(ValueId v) {
    const auto view = views_.find(v);
    if (view == views_.end() || !moved_.insert(v).second) return;
    move_view(view->second.in[0]);
    first_.push_back(view->second);
  }

  bool is_pinned(ValueId v) const {
    return static_cast<size_t>(v) < pinned_.size() && pinned_[static_cast<size_t>(v)];
  }

  // Appends the ops, each once, but the views that nothing reads any more.
  void append_read() {
    read_.resize(p_.values().size());
    std::vector<char> kept(first_.size(), true);
    for (size_t i = first_.size(); i-- > 0;) {
      const Op& op = first_[i];
      if (!op.out.empty() && views_.count(op.out[0])) kept[i] = read_[at(op.out[0])];
      if (kept[i])
        for (ValueId v : op.in) read_[at(v)] = true;
    }
    std::set<ValueId> there;
    for (size_t i = 0; i < first_.size(); ++i) {
      const ValueId made = first_[i].out.empty() ? kNone : first_[i].out[0];
      if (kept[i] && (!moved_.count(made) || there.insert(made).second))
        p_.append(std::move(first_[i]));
    }
  }
  static size_t at(ValueId v) { return static_cast<size_t>(v); }

  Program& p_;
  std::vector<char> read_;                                          // by value
  const std::vector<char> pinned_;                                  // by value: read from outside
  std::map<ValueId, Op> views_;                                     // of states, by what they make
  std::set<ValueId> moved_;                                         // of these
  std::map<std::tuple<ValueId, int32_t, int32_t>, ValueId> casts_;  // of (value, dtype, stage)
  std::map<ValueId, ValueId> same_;
  std::vector<Op> first_, rest_;
};

}  // namespace

void cast_first(LocalProgram& local) {
  // An evaluation needs no cast for longer than its reader runs.
  if (!local.program.updates().empty()) CastFirst(local).run();
}

}  // namespace orrery
