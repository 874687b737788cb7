// SPDX-License-Identifier: Apache-2.0
//
// Sums as messages and folds, carried out in one process on plain arrays: what all ranks have
// written down fits together, and gives the bits of a fold of all operands in their order.
#include "comm/composition.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <numeric>

namespace orrery {
namespace {

using Floats = std::vector<float>;

// A sum of `count` elements on ranks that own `leaves` each (a tree), or one operand each (empty).
struct Case {
  int64_t count;
  int ranks;
  std::vector<int64_t> microbatches;
  int32_t op = ORR_COLL_TREE_ALL_REDUCE;
  bool in_place = false;
};

class World {
 public:
  explicit World(const Case& c) : case_(c) {
    first_leaf_ = {0};
    for (int64_t n : c.microbatches) first_leaf_.push_back(first_leaf_.back() + n);
    for (int r = 0; r < c.ranks; ++r) {
      const int64_t from = orr::traffic::share_begin(c.count, r, c.ranks);
      begins_.push_back(from),
          counts_.push_back(orr::traffic::share_begin(c.count, r + 1, c.ranks) - from);
    }
    for (int r = 0; r < c.ranks; ++r) {
      const orr_coll coll = descriptor();
      composed_.push_back(compose(coll, r, c.ranks));
      send_.emplace_back(static_cast<size_t>(c.count * orr::traffic::nodes(coll, r, c.ranks)));
      for (size_t i = 0; i < send_.back().size(); ++i) send_.back()[i] = value(r, i);
      recv_.emplace_back(static_cast<size_t>(c.count), -1.0f);
      scratch_.emplace_back(static_cast<size_t>(composed_.back().scratch / 4), -2.0f);
    }
    if (c.in_place) recv_.clear();
  }

  orr_coll descriptor() const {
    orr_coll c{};
    c.size = sizeof c, c.op = case_.op, c.dtype = ORR_F32, c.redop = ORR_RED_SUM;
    c.count = case_.count, c.counts = counts_.data(), c.recv_counts = begins_.data();
    c.leaf_first = first_leaf_.data();
    return c;
  }

  // Every operand in order, folded whole.
  Floats expected() const {
    const orr_coll c = descriptor();
    orr::Folding folding(c, case_.ranks);
    std::vector<const char*> in;
    for (int r = 0; r < case_.ranks; ++r)
      for (int i = 0; i < folding.owned(r); ++i)
        in.push_back(
            reinterpret_cast<const char*>(send_[static_cast<size_t>(r)].data() + i * case_.count));
    Floats out(static_cast<size_t>(case_.count));
    folding.run(in, {reinterpret_cast<char*>(out.data())}, case_.count);
    return out;
  }

  void run() {
    for (size_t round = 0; round < composed_[0].rounds.size(); ++round) {
      deliver(round);
      for (size_t r = 0; r < composed_.size(); ++r)
        if (auto& fold = composed_[r].rounds[round].fold) carry_out(r, *fold);
    }
  }

  // What rank r has of the result; begins where its share does if it has no more.
  const float* result(int r) const {
    return case_.in_place ? send_[static_cast<size_t>(r)].data()
                          : recv_[static_cast<size_t>(r)].data();
  }
  const std::vector<int64_t>& begins() const { return begins_; }
  const std::vector<int64_t>& counts() const { return counts_; }
  const std::vector<Composition>& composed() const { return composed_; }

 private:
  static float value(int r, size_t i) {
    return 1.0f / static_cast<float>(3 * r + 7 * static_cast<int>(i % 1000) + 1);
  }

  float* place(size_t r, const Spot& spot) {
    Floats& of = spot.in == Spot::scratch                  ? scratch_[r]
                 : spot.in == Spot::send || case_.in_place ? send_[r]
                                                           : recv_[r];
    return of.data() + spot.offset / 4;
  }

  // Messages of a pair match in their order; all are sent before any arrives.
  void deliver(size_t round) {
    std::map<std::pair<int, int>, std::vector<Floats>> sent;
    const int ranks = static_cast<int>(composed_.size());
    for (int r = 0; r < ranks; ++r)
      for (auto& m : composed_[static_cast<size_t>(r)].rounds[round].sends) {
        const float* from = place(static_cast<size_t>(r), m.data);
        sent[{r, m.peer}].emplace_back(from, from + m.bytes / 4);
      }
    for (int r = 0; r < ranks; ++r)
      for (auto& m : composed_[static_cast<size_t>(r)].rounds[round].recvs) {
        auto& queue = sent[{m.peer, r}];
        ASSERT_FALSE(queue.empty())
            << "rank " << r << " waits for rank " << m.peer << " in round " << round;
        ASSERT_EQ(static_cast<int64_t>(queue.front().size()) * 4, m.bytes);
        std::memcpy(place(static_cast<size_t>(r), m.data), queue.front().data(),
                    static_cast<size_t>(m.bytes));
        queue.erase(queue.begin());
      }
    for (auto& [pair, queue] : sent)
      ASSERT_TRUE(queue.empty()) << pair.first << " to " << pair.second;
  }

  void carry_out(size_t r, const SpotFold& fold) {
    const auto n = static_cast<size_t>(fold.elements);
    std::vector<Floats> values;
    for (const Spot& s : fold.in) values.emplace_back(place(r, s), place(r, s) + n);
    const auto add = [&](const Floats& a, const Floats& b) {
      Floats sum(n);
      for (size_t i = 0; i < n; ++i) sum[i] = a[i] + b[i];
      return sum;
    };
    const orr::FoldOrder& order = composed_[r].order;
    for (const auto& s : order.sums())
      values.push_back(add(values[static_cast<size_t>(s.a)], values[static_cast<size_t>(s.b)]));
    Floats left = values[0];
    for (int i = 1; i < order.operands() && !order.is_tree(); ++i)
      left = add(left, values[static_cast<size_t>(i)]);
    std::memcpy(place(r, fold.out), (order.is_tree() ? values.back() : left).data(), n * 4);
  }

  const Case case_;
  std::vector<int64_t> first_leaf_, begins_, counts_;
  std::vector<Composition> composed_;
  std::vector<Floats> send_, recv_, scratch_;
};

void expect_sums(const Case& c) {
  World world(c);
  const Floats wanted = world.expected();
  world.run();
  const bool scattered = c.op == ORR_COLL_TREE_REDUCE_SCATTER;
  for (int r = 0; r < c.ranks; ++r) {
    const int64_t n = scattered ? world.counts()[static_cast<size_t>(r)] : c.count;
    const float* want = wanted.data() + (scattered ? world.begins()[static_cast<size_t>(r)] : 0);
    EXPECT_EQ(std::memcmp(world.result(r), want, static_cast<size_t>(n) * 4), 0)
        << c.count << " elements, rank " << r << " of " << c.ranks;
  }
}

TEST(Composition, TreesAreThoseOfAllLeaves) {
  for (int64_t n : {1, 100, 4099, 100003}) {
    expect_sums({n, 2, {1, 1}});
    expect_sums({n, 3, {5, 0, 3}});
    expect_sums({n, 4, {2, 3, 1, 7}});
    expect_sums({n, 5, {1, 1, 1, 1, 1}, ORR_COLL_TREE_REDUCE_SCATTER});
    expect_sums({n, 3, {4, 4, 4}, ORR_COLL_TREE_ALL_REDUCE, true});
  }
}

TEST(Composition, OthersAreFoldedFromLeftToRight) {
  for (int64_t n : {1, 5000}) expect_sums({n, 3, {}, ORR_COLL_ALL_REDUCE});
}

TEST(Composition, LongSumsPassInChunksThroughScratchOfFixedSize) {
  const int64_t n = int64_t{9} << 20;
  const Case c{n, 2, {1, 1}};
  World world(c);
  EXPECT_EQ(world.composed()[0].rounds.size(), 3u);
  for (const Composition& each : world.composed()) EXPECT_LE(each.scratch, (32 << 20) / 2 * 3);
  expect_sums(c);
}

}  // namespace
}  // namespace orrery
