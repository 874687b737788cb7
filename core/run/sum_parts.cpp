// SPDX-License-Identifier: Apache-2.0
#include "run/sum_parts.h"

#include <algorithm>
#include <utility>

namespace orrery {
namespace {

class Cutter {
 public:
  Cutter(const orr::FoldOrder& order, int rank, int most)
      : order_(order), rank_(rank), most_(static_cast<size_t>(most)) {
    for (int i = 0; i < order.operands(); ++i) nodes_.push_back({i, {{i}, {}}});
  }

  std::vector<SumPart> run() {
    for (const orr::FoldOrder::Sum& s : order_.sums()) {
      Node a = std::move(nodes_[static_cast<size_t>(s.a)]),
           b = std::move(nodes_[static_cast<size_t>(s.b)]);
      for (Node* wide : {size(a) < size(b) ? &b : &a, size(a) < size(b) ? &a : &b})
        if (size(a) + size(b) > most_) close(*wide);
      nodes_.push_back(joined(std::move(a), std::move(b)));
    }
    done_.push_back(std::move(nodes_.back().open));
    return std::move(done_);
  }

 private:
  // A node of the tree: the number of its value, and the part that will compute it.
  struct Node {
    int value;
    SumPart open;
  };
  static size_t size(const Node& n) { return n.open.in.size(); }

  // Makes a part of its own of what computes the node.
  void close(Node& n) {
    if (size(n) == 1) return;
    // A rank's own operands are no siblings: each sum has one of another rank.
    n.open.onto = *std::ranges::find_if(
        n.open.in, [&](int i) { return i < order_.first(rank_) || i >= order_.first(rank_ + 1); });
    const int at = n.open.onto;
    done_.push_back(std::move(n.open));
    n = {at, {{at}, {}}};
  }

  Node joined(Node a, const Node& b) const {
    const int result = static_cast<int>(nodes_.size());
    a.open.in.insert(a.open.in.end(), b.open.in.begin(), b.open.in.end());
    a.open.sums.insert(a.open.sums.end(), b.open.sums.begin(), b.open.sums.end());
    a.open.sums.push_back({a.value, b.value, result});
    a.value = result;
    return a;
  }

  const orr::FoldOrder& order_;
  const int rank_;
  const size_t most_;
  std::vector<Node> nodes_;  // numbered as FoldOrder does
  std::vector<SumPart> done_;
};

}  // namespace

std::vector<SumPart> parts_of(const orr::FoldOrder& order, int rank, int most) {
  return Cutter(order, rank, most).run();
}

}  // namespace orrery
