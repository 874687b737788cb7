// SPDX-License-Identifier: Apache-2.0
#include "lower/serve.h"

#include <orrery/ops.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "program/op.h"

namespace orrery {
namespace {

std::shared_ptr<State> state_like(const std::string& name, const Type& type, Role role,
                                  const Site& site) {
  auto made = std::make_shared<State>();
  made->name = name, made->type = type, made->role = role, made->site = site;
  return made;
}

// The update of one server's parameters, taken out of the trained program.
class Taker {
 public:
  Taker(const Program& trained, const Updating& updating, const Spread& spread, int64_t leaves,
        int server)
      : from_(trained),
        updating_(updating),
        spread_(spread),
        leaves_(leaves),
        server_(server),
        map_(trained.values().size(), kNone) {
    for (int w = 0; w < spread.batch_ranks(); ++w)
      for (const LeafRange& r : pushed_leaves(spread, leaves, w))
        if (nodes_.empty() || spread.serving.bound >= 0) nodes_.push_back(r);
  }

  ServerShare run() {
    share_.arrived.resize(nodes_.size());
    share_.program.set_phase(Phase::update);
    mark();
    for (size_t i = 0; i < from_.ops().size(); ++i)
      if (needed_.count(static_cast<OpId>(i))) copy(from_.ops()[i]);
    for (auto& [state, next] : from_.updates())
      if (is_own(state)) share_.program.update(value(state), value(next));
    return std::move(share_);
  }

 private:
  Program& to() { return share_.program; }

  // Whether the server holds the state: a parameter, or what its update keeps.
  bool is_own(ValueId v) const {
    const State& s = *from_.value(v).state;
    auto of = updating_.of.find(s.name);
    auto owner = spread_.serving.owner.find(of == updating_.of.end() ? s.name : of->second);
    return owner != spread_.serving.owner.end() && owner->second == server_ && changes(v);
  }

  bool changes(ValueId v) const {
    return std::any_of(from_.updates().begin(), from_.updates().end(),
                       [&](auto& u) { return u.first == v; });
  }

  // Whether workers push the value.
  bool is_pushed(ValueId v) const {
    if (spread_.serving.bound < 0)
      return std::any_of(updating_.gradients.begin(), updating_.gradients.end(),
                         [&](auto& g) { return g.second == v; });
    const Value& value = from_.value(v);
    if (value.batch != Batch::partial) return false;
    // Linear ops on sums over the batch come after the sum, as in one process.
    const std::vector<ValueId>& in = from_.ops()[static_cast<size_t>(value.producer)].in;
    return std::any_of(in.begin(), in.end(),
                       [&](ValueId x) { return from_.value(x).batch == Batch::sharded; });
  }

  void mark() {
    std::set<ValueId> wanted;
    std::vector<ValueId> todo;
    for (auto& [state, next] : from_.updates())
      if (is_own(state)) todo.push_back(next);
    while (!todo.empty()) {
      ValueId v = todo.back();
      OpId maker = from_.value(v).producer;
      todo.pop_back();
      if (is_pushed(v))
        wanted.insert(v);
      else if (maker != kNone && needed_.insert(maker).second)
        for (ValueId in : from_.ops()[static_cast<size_t>(maker)].in) todo.push_back(in);
    }
    for (ValueId v : wanted) arrive(v);
  }

  // A pushed value: the canonical sum of what has arrived for each range of leaves.
  void arrive(ValueId v) {
    share_.wants.push_back(v);
    std::vector<ValueId> each;
    for (size_t n = 0; n < nodes_.size(); ++n) {
      auto state = state_like(fmt::format("pushed.{}.{}", n, v), from_.type(v), Role::state,
                              from_.value(v).site);
      share_.arrived[n].push_back(state);
      each.push_back(to().state_value(state));
    }
    int64_t width = 1;
    while (width < leaves_) width *= 2;
    map_[static_cast<size_t>(v)] = nodes_.size() == 1 ? each[0] : sum(each, 0, width);
  }

  // The tree over the leaves [first, first + width), of which the arrived nodes are the leaves
  // here.
  ValueId sum(const std::vector<ValueId>& each, int64_t first, int64_t width) {
    if (first >= leaves_) return kNone;
    LeafRange range{first, std::min(first + width, leaves_)};
    auto node = std::find(nodes_.begin(), nodes_.end(), range);
    if (node != nodes_.end()) return each[static_cast<size_t>(node - nodes_.begin())];
    ValueId left = sum(each, first, width / 2), right = sum(each, first + width / 2, width / 2);
    return right == kNone ? left : to().pointwise(ORR_FN_ADD, {left, right});
  }

  ValueId value(ValueId v) {
    ValueId& known = map_[static_cast<size_t>(v)];
    if (known != kNone) return known;
    const Value& original = from_.value(v);
    to().set_site(original.site);
    if (original.state) return known = to().state_value(held(v));
    if (original.role == Role::scalar)
      return known = to().scalar_input(original.name, original.type.dtype);
    if (original.producer == kNone)
      fail(ORR_INVALID, "{}a server has no batch, and the update needs '{}'",
           original.site.prefix(), original.name);
    known = to().new_value(original.type, original.role, original.name);
    to().mutable_value(known).site = original.site;
    return known;
  }

  // Parameters are read and changed in copies of the server's own: workers have theirs.
  std::shared_ptr<State> held(ValueId v) {
    const std::shared_ptr<State>& state = from_.value(v).state;
    if (!is_own(v)) {
      if (changes(v))
        fail(ORR_INVALID,
             "{}the update of a parameter of server {} reads '{}' of another: give servers = 1",
             state->site.prefix(), server_, state->name);
      return state;
    }
    if (state->role != Role::param) {
      share_.optimizer.push_back(state);
      return state;
    }
    share_.params.push_back(state);
    share_.masters.push_back(
        state_like("server." + state->name, state->type, Role::param, state->site));
    return share_.masters.back();
  }

  void copy(const Op& op) {
    Op made = op;
    made.twin = kNone, made.phase = Phase::update, made.stage = 0;
    for (ValueId& v : made.in) v = value(v);
    if (made.kind == "total" || made.kind == "stop_gradient" || made.kind == "user_gradient") {
      map_[static_cast<size_t>(op.out[0])] = made.in[0];
      return;
    }
    for (ValueId& v : made.out) v = value(v);
    to().append(std::move(made));
  }

  const Program& from_;
  const Updating& updating_;
  const Spread& spread_;
  int64_t leaves_;
  int server_;
  std::vector<LeafRange> nodes_;
  std::vector<ValueId> map_;
  std::set<OpId> needed_;
  ServerShare share_;
};

}  // namespace

std::vector<LeafRange> pushed_leaves(const Spread& spread, int64_t leaves, int coordinate) {
  std::vector<int64_t> first = deal_leaves(leaves, spread);
  int64_t at = first[static_cast<size_t>(coordinate)],
          last = first[static_cast<size_t>(coordinate) + 1];
  std::vector<LeafRange> ranges;
  if (spread.serving.bound < 0 && at < last) return {{at, last}};
  for (int64_t begin = at; orr_tree_node(&at, last, leaves) > 0; begin = at)
    ranges.push_back({begin, at});
  return ranges;
}

ServerShare server_share(const Program& trained, const Updating& updating, const Spread& spread,
                         int64_t leaves, int server) {
  return Taker(trained, updating, spread, leaves, server).run();
}

Program worker_program(const Program& trained, const Updating& updating,
                       const std::vector<ValueId>& values, const StateList& into, bool adds) {
  Program p = trained;
  std::erase_if(p.mutable_updates(), [&](const std::pair<ValueId, ValueId>& update) {
    std::shared_ptr<State>& state = p.mutable_value(update.first).state;
    if (updating.gradients.count(state->name)) return true;
    if (!updating.of.count(state->name)) return false;
    state.reset();  // a server's; the rest of the update goes with it
    return true;
  });
  p.set_phase(Phase::update);
  for (size_t i = 0; i < values.size(); ++i) {
    p.set_site(into[i]->site);
    ValueId to = p.state_value(into[i]), v = values[i];
    if (p.value(v).batch == Batch::partial) v = p.add1("total", {v});
    p.update(to, adds ? p.pointwise(ORR_FN_ADD, {to, v}) : v);
  }
  return p;
}

}  // namespace orrery
