// SPDX-License-Identifier: Apache-2.0
#include "cut.h"

#include <algorithm>
#include <set>

#include "say.h"
#include "view.h"

namespace server {
namespace {

// A program that is written.
class Draft {
 public:
  Draft(orr_program* program, const orr_edit* edit) : program_(program), edit_(edit) {}

  // A state of the strategy's own, which nobody saves.
  int32_t state(const std::string& name, const orr_tensor& type) const {
    orr_state_desc how{};
    how.size = sizeof how, how.name = name.c_str(), how.like = -1, how.varying = "";
    how.rank = type.rank, how.dims = type.dims, how.dtype = type.dtype, how.passing = 1;
    int32_t made = -1;
    orr::check(edit_->state(program_, &how, &made));
    return made;
  }

  // The sum of two values of one dtype.
  int32_t add(int32_t a, int32_t b, int32_t dtype) const {
    const orr_instr instrs[] = {{ORR_FN_INPUT, dtype, 0, -1, -1, 0, 0},
                                {ORR_FN_INPUT, dtype, 1, -1, -1, 0, 0},
                                {ORR_FN_ADD, dtype, 0, 1, -1, 0, 0}};
    const int32_t in[] = {a, b}, last = 2;
    const orr_expr expr = {sizeof expr, 3, 1, 0, instrs, &last};
    const orr_op_desc op = {sizeof op, 2, 0, "pointwise", in, nullptr, &expr};
    int32_t out = -1, n = 0;
    orr::check(edit_->op(program_, &op, &out, 1, &n));
    return out;
  }

  void update(int32_t state, int32_t value) const {
    orr::check(edit_->update(program_, state, value));
  }

  std::vector<int32_t> copy(orr_program* from, const std::vector<int32_t>& given,
                            const std::vector<int32_t>& as,
                            const std::vector<int32_t>& wanted) const {
    const orr_copy how = {sizeof how,
                          static_cast<int32_t>(given.size()),
                          static_cast<int32_t>(wanted.size()),
                          from,
                          given.data(),
                          as.data(),
                          wanted.data()};
    std::vector<int32_t> out(wanted.size());
    orr::check(edit_->copy(program_, &how, out.data()));
    return out;
  }

 private:
  orr_program* program_;
  const orr_edit* edit_;
};

class Cutter {
 public:
  Cutter(orr_program* step, const orr_edit* edit, const Pace& pace,
         const std::vector<int64_t>& leaf_first)
      : step_(step), edit_(edit), pace_(pace), view_(step, edit), leaves_(leaf_first.back()) {
    for (int32_t v = 0; v < view_.size(); ++v)
      if (view_[v].role == ORR_ROLE_PARAM) gradients_.insert(view_.gradient(v));
    for (size_t r = 0; r + 1 < leaf_first.size(); ++r)
      for (const LeafRange& range : pushed_leaves(pace, leaf_first, static_cast<int>(r)))
        if (nodes_.empty() || pace.bounded()) nodes_.push_back(range);
  }

  std::vector<Share> run() {
    std::vector<std::set<int32_t>> wanted;
    for (int32_t s = 0; s < pace_.servers; ++s) {
      wanted.push_back(wanted_of(s));
      pushed_.insert(wanted.back().begin(), wanted.back().end());
    }
    std::vector<Share> shares;
    for (int32_t s = 0; s < pace_.servers; ++s)
      shares.push_back(write_server(s, wanted[static_cast<size_t>(s)]));
    edit_step();
    return shares;
  }

 private:
  // Whether the server holds the state: a parameter, or what its update keeps.
  bool is_own(int32_t v, int32_t server) const {
    const Value& value = view_[v];
    auto owner = pace_.owner.find(value.beside.empty() ? value.name : value.beside);
    return owner != pace_.owner.end() && owner->second == server && view_.changes(v);
  }

  // Whether workers push the value.
  bool is_pushed(int32_t v) const {
    if (!pace_.bounded()) return gradients_.count(v) > 0;
    if (view_[v].batch != ORR_BATCH_SUM) return false;
    // Linear ops on sums over the batch come after the sum, as in one process.
    const std::vector<int32_t> in = view_.inputs(v);
    return std::any_of(in.begin(), in.end(),
                       [&](int32_t x) { return view_[x].batch == ORR_BATCH_SAMPLES; });
  }

  std::vector<int32_t> owned_by(int32_t server) const {
    std::vector<int32_t> states;
    for (int32_t v = 0; v < view_.size(); ++v)
      if (view_.changes(v) && is_own(v, server)) states.push_back(v);
    return states;
  }

  // What is pushed of all that a server's updates are made of.
  std::set<int32_t> wanted_of(int32_t server) const {
    std::set<int32_t> wanted, seen;
    std::vector<int32_t> todo;
    for (int32_t state : owned_by(server)) todo.push_back(view_.updated(state));
    while (!todo.empty()) {
      const int32_t v = todo.back();
      todo.pop_back();
      if (!seen.insert(v).second) continue;
      if (view_.changes(v) && !is_own(v, server))
        fail(ORR_INVALID, view_[v].where, ": the update of a parameter of server ", server,
             " reads '", view_[v].name, "' of another: give servers = 1");
      if (is_pushed(v)) {
        wanted.insert(v);
      } else {
        for (int32_t in : view_.inputs(v)) todo.push_back(in);
      }
    }
    return wanted;
  }

  // Its number among all that are pushed, which is that of batches of any shape.
  std::string numbered(const std::string& name, int32_t v) const {
    return text(name, ".", std::distance(pushed_.begin(), pushed_.find(v)));
  }

  Share write_server(int32_t server, const std::set<int32_t>& wanted) const {
    Share share;
    share.program = text("server.", server), share.arrived.resize(nodes_.size());
    orr_program* program = nullptr;
    orr::check(edit_->beside(step_, share.program.c_str(), server, &program));
    const Draft to(program, edit_);
    const std::vector<int32_t> states = owned_by(server);
    std::vector<int32_t> given, as, both = states;
    for (int32_t v : states) {
      both.push_back(view_.updated(v));
      if (view_[v].role != ORR_ROLE_PARAM) continue;
      share.params.push_back(view_[v].name), share.masters.push_back("master." + view_[v].name);
      given.push_back(v), as.push_back(to.state(share.masters.back(), view_[v].type));
    }
    for (int32_t v : wanted) {
      given.push_back(v), as.push_back(arrive(to, share, v));
      share.pushed.push_back(numbered("gradient", v));
    }
    const std::vector<int32_t> made = to.copy(step_, given, as, both);
    for (size_t i = 0; i < states.size(); ++i) to.update(made[i], made[states.size() + i]);
    return share;
  }

  // A pushed value: the canonical sum of what has arrived for each range of leaves.
  int32_t arrive(const Draft& to, Share& share, int32_t v) const {
    std::vector<int32_t> each;
    for (size_t n = 0; n < nodes_.size(); ++n) {
      share.arrived[n].push_back(numbered(text("pushed.", n), v));
      each.push_back(to.state(share.arrived[n].back(), view_[v].type));
    }
    int64_t width = 1;
    while (width < leaves_) width *= 2;
    return nodes_.size() == 1 ? each[0] : sum(to, each, view_[v].type.dtype, 0, width);
  }

  // The tree over the leaves [first, first + width), of which the arrived nodes are the leaves
  // here; -1 if there are none.
  int32_t sum(const Draft& to, const std::vector<int32_t>& each, int32_t dtype, int64_t first,
              int64_t width) const {
    if (first >= leaves_) return -1;
    const LeafRange range{first, std::min(first + width, leaves_)};
    auto node = std::find(nodes_.begin(), nodes_.end(), range);
    if (node != nodes_.end()) return each[static_cast<size_t>(node - nodes_.begin())];
    const int32_t left = sum(to, each, dtype, first, width / 2),
                  right = sum(to, each, dtype, first + width / 2, width / 2);
    return right < 0 ? left : to.add(left, right, dtype);
  }

  // What servers update is theirs; a model's buffers stay the workers'.
  void edit_step() const {
    const Draft to(step_, edit_);
    for (int32_t v = 0; v < view_.size(); ++v)
      if (view_.changes(v) &&
          (!view_[v].beside.empty() || (view_[v].role == ORR_ROLE_PARAM && view_.gradient(v) >= 0)))
        to.update(v, v);
    for (int32_t v : pushed_) {
      const int32_t state = to.state(numbered("gradient", v), view_[v].type);
      to.update(state, pace_.push > 1 ? to.add(state, v, view_[v].type.dtype) : v);
    }
  }

  orr_program* step_;
  const orr_edit* edit_;
  const Pace& pace_;
  const View view_;
  const int64_t leaves_;
  std::vector<LeafRange> nodes_;  // whose sums arrive
  std::set<int32_t> gradients_, pushed_;
};

}  // namespace

std::vector<Share> cut(orr_program* step, const orr_edit* edit, const Pace& pace,
                       const std::vector<int64_t>& leaf_first) {
  return Cutter(step, edit, pace, leaf_first).run();
}

}  // namespace server
