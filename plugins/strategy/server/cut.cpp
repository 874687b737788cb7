// SPDX-License-Identifier: Apache-2.0
#include "cut.h"

#include <algorithm>
#include <map>
#include <set>

#include "error.h"

namespace server {
namespace {

// Makes a state that belongs to this strategy and is not saved in checkpoints.
int32_t own_state(const orr::Program& program, const std::string& name, const orr_tensor& type) {
  orr::StateOf how{name.c_str()};
  how.dtype = type.dtype, how.dims = std::vector<int64_t>(type.dims, type.dims + type.rank);
  how.passing = true;
  return program.state(how);
}

class Cutter {
 public:
  Cutter(const orr::Program& step, const Pace& pace, const std::vector<int64_t>& leaf_first)
      : step_(step), pace_(pace), leaves_(leaf_first.back()) {
    step.each(1u << ORR_ROLE_PARAM | 1u << ORR_ROLE_STATE, [&](int32_t v, const auto& info) {
      if (info.role == ORR_ROLE_PARAM) gradients_.insert(step.gradient(v));
      if (const int32_t next = step.updated(v); next != v)
        changed_[v] = {next, info.name, info.beside, info.role == ORR_ROLE_PARAM};
    });
    for (size_t r = 0; r + 1 < leaf_first.size(); ++r) {
      workers_ += leaf_first[r + 1] > leaf_first[r];
      for (const LeafRange& range : pushed_leaves(pace, leaf_first, static_cast<int>(r)))
        if (nodes_.empty() || pace.bounded()) nodes_.push_back(range);
    }
  }

  std::vector<Share> run() {
    if (pace_.bounded() && workers_ > 1) check_buffers();
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
  // A state that the step changes.
  struct Changed {
    int32_t next = -1;
    std::string name, beside;
    bool is_param = false;
  };

  // Whether the server holds this state: a parameter, or optimizer state of a parameter.
  bool is_own(const Changed& c, int32_t server) const {
    auto owner = pace_.owner.find(c.beside.empty() ? c.name : c.beside);
    return owner != pace_.owner.end() && owner->second == server;
  }

  // Whether workers push the value: without a bound a gradient, with one a sum over the batch.
  bool is_pushed(int32_t v) const {
    if (!pace_.bounded()) return gradients_.count(v) > 0;
    if (step_.info(v).batch != ORR_BATCH_SUM) return false;
    // Linear ops on sums over the batch run on the server, after the sum, as in one process.
    const std::vector<int32_t> in = step_.inputs(v);
    return std::any_of(in.begin(), in.end(),
                       [&](int32_t x) { return step_.info(x).batch == ORR_BATCH_SAMPLES; });
  }

  // Returns the pushed values that the updates of a server read.
  std::set<int32_t> wanted_of(int32_t server) const {
    std::set<int32_t> wanted, seen;
    std::vector<int32_t> todo;
    for (auto& [state, c] : changed_)
      if (is_own(c, server)) todo.push_back(c.next);
    while (!todo.empty()) {
      const int32_t v = todo.back();
      todo.pop_back();
      if (!seen.insert(v).second) continue;
      if (auto c = changed_.find(v); c != changed_.end() && !is_own(c->second, server))
        fail(ORR_INVALID, step_.info(v).where, ": the update of a parameter of server ", server,
             " reads '", c->second.name, "' of another: give servers = 1");
      if (is_pushed(v)) {
        wanted.insert(v);
      } else {
        for (int32_t in : step_.inputs(v)) todo.push_back(in);
      }
    }
    return wanted;
  }

  // Appends to the name the number of v among all pushed values. That is the same for programs of
  // any batch shape, which their values' numbers are not.
  std::string numbered(const std::string& name, int32_t v) const {
    return text(name, ".", std::distance(pushed_.begin(), pushed_.find(v)));
  }

  Share write_server(int32_t server, const std::set<int32_t>& wanted) const {
    Share share;
    share.program = text("server.", server), share.arrived.resize(nodes_.size());
    const orr::Program to(step_.program(share.program, server), step_.edit());
    std::vector<int32_t> given, as, states, next;
    for (auto& [v, c] : changed_) {
      if (!is_own(c, server)) continue;
      states.push_back(v), next.push_back(c.next);
      if (!c.is_param) continue;
      share.params.push_back(c.name), share.masters.push_back("master." + c.name);
      given.push_back(v), as.push_back(own_state(to, share.masters.back(), step_.type(v)));
    }
    for (int32_t v : wanted) {
      given.push_back(v), as.push_back(arrive(to, share, v));
      share.pushed.push_back(numbered("gradient", v));
    }
    const std::vector<orr::Value> now = to.copy_part(step_, given, as, states),
                                  then = to.copy_part(step_, given, as, next);
    for (size_t i = 0; i < states.size(); ++i) to.update(now[i], then[i]);
    return share;
  }

  // Writes the server's side of a pushed value: a state for each range of leaves, where its push is
  // put, and their canonical sum, which is returned.
  int32_t arrive(const orr::Program& to, Share& share, int32_t v) const {
    std::vector<int32_t> each;
    for (size_t n = 0; n < nodes_.size(); ++n) {
      share.arrived[n].push_back(numbered(text("pushed.", n), v));
      each.push_back(own_state(to, share.arrived[n].back(), step_.type(v)));
    }
    int64_t width = 1;
    while (width < leaves_) width *= 2;
    return nodes_.size() == 1 ? each[0] : sum(to, each, 0, width);
  }

  // Returns the sum over the leaves [first, first + width) in the canonical tree. It goes down the
  // tree to the nodes that workers push. -1 if the batch has none of these leaves.
  int32_t sum(const orr::Program& to, const std::vector<int32_t>& each, int64_t first,
              int64_t width) const {
    if (first >= leaves_) return -1;
    const LeafRange range{first, std::min(first + width, leaves_)};
    auto node = std::find(nodes_.begin(), nodes_.end(), range);
    if (node != nodes_.end()) return each[static_cast<size_t>(node - nodes_.begin())];
    const int32_t left = sum(to, each, first, width / 2),
                  right = sum(to, each, first + width / 2, width / 2);
    return right < 0 ? left : int32_t{to.add(left, right)};
  }

  // With a bound, buffers must be the same on all workers: throws if one is computed from samples.
  void check_buffers() const {
    for (auto& [v, c] : changed_)
      if (c.beside.empty() && !c.is_param && step_.info(c.next).batch != ORR_BATCH_NONE)
        fail(ORR_INVALID, step_.info(v).where, ": '", c.name, "' is updated from the samples, and ",
             "each worker would keep its own: take it out, or ", kRemedy);
  }

  // Takes the updates of parameters and optimizer state out of the workers' step, and adds states
  // for what they push. Buffers of the model are still updated by the workers.
  void edit_step() const {
    for (auto& [v, c] : changed_)
      if (!c.beside.empty() || (c.is_param && step_.gradient(v).exists())) step_.update(v, v);
    for (int32_t v : pushed_) {
      const int32_t state = own_state(step_, numbered("gradient", v), step_.type(v));
      step_.update(state, pace_.push > 1 ? int32_t{step_.add(state, v)} : v);
    }
  }

  const orr::Program& step_;
  const Pace& pace_;
  const int64_t leaves_;
  int workers_ = 0;
  std::map<int32_t, Changed> changed_;
  std::vector<LeafRange> nodes_;  // the ranges of leaves that workers push
  std::set<int32_t> gradients_, pushed_;
};

}  // namespace

std::vector<Share> cut(const orr::Program& step, const Pace& pace,
                       const std::vector<int64_t>& leaf_first) {
  return Cutter(step, pace, leaf_first).run();
}

}  // namespace server
