// SPDX-License-Identifier: Apache-2.0
//
// Cuts of parameters: every element has one owner, cuts inside a tensor lie on its blocks, pieces
// are about equal, a rank's pieces of a unit are neighbours, and groups hold what their replicas
// own.
#include "partition/shard/units.h"

#include <gtest/gtest.h>
#include <orrery/ops.h>
#include <orrery/strategy.h>

#include <map>
#include <numeric>
#include <random>

#include "program/state.h"

namespace program_test {
namespace {

using namespace orrery;

TEST(Units, AreCutEvenlyAtBlocks) {
  std::mt19937 random(5);
  auto pick = [&](int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(random); };
  for (int round = 0; round < 300; ++round) {
    Dims sizes(static_cast<size_t>(1 + pick(8)));
    for (int64_t& n : sizes) n = 1 + pick(pick(2) ? 300 : 20000);
    const int pieces = static_cast<int>(1 + pick(9));
    const int64_t total = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
    const std::vector<Dims> cuts = cut_evenly(sizes, pieces);
    for (int p = 0; p < pieces; ++p) {
      int64_t have = 0;
      bool begun = false, ended = false;
      for (size_t i = 0; i < sizes.size(); ++i) {
        const int64_t a = cuts[i][static_cast<size_t>(p)], b = cuts[i][static_cast<size_t>(p) + 1];
        ASSERT_LE(a, b);
        EXPECT_TRUE(a % ORR_SUM_BLOCK == 0 || a == sizes[i]) << a << " of " << sizes[i];
        have += b - a;
        if (b == a) continue;
        EXPECT_FALSE(ended) << "piece " << p << " has a gap";
        EXPECT_TRUE(!begun || a == 0);
        begun = true, ended = b < sizes[i];
      }
      EXPECT_LE(std::abs(have - total / pieces), ORR_SUM_BLOCK + 1)
          << "piece " << p << " of " << pieces;
    }
    for (size_t i = 0; i < sizes.size(); ++i) {
      EXPECT_EQ(cuts[i].front(), 0);
      EXPECT_EQ(cuts[i].back(), sizes[i]);
    }
  }
}

TEST(Units, CutByRowsHaveWholeRows) {
  Program p;
  Mesh mesh;
  mesh.world = 3, mesh.axes = {{"data", 3, "data"}}, mesh.batch_axis = "data";
  const std::map<std::string, Dims> sizes = {
      {"a", {100, 96}}, {"b", {64, 4096}}, {"c", {5000}}, {"d", {30, 7, 16}}, {"e", {2, 100}}};
  for (auto& [name, dims] : sizes) {
    auto s = std::make_shared<State>();
    s->name = name, s->type = {ORR_F32, dims};
    p.state_value(s);
    mesh.sharded[name] = {"data", "rows", 0, kNone, ORR_SHARD_PARAM, false, true};
  }
  for (const Unit& unit : find_units(p, mesh))
    for (size_t i = 0; i < unit.params.size(); ++i) {
      const Type& type = p.type(unit.params[i]);
      for (int64_t cut : unit.shards[i])
        if (cut < type.elements()) {
          EXPECT_EQ(cut % (type.elements() / type.dims[0]), 0) << cut << " of " << to_string(type);
          EXPECT_EQ(cut % ORR_SUM_BLOCK, 0) << cut << " of " << to_string(type);
        }
    }
}

// Three parameters, named so that their natural order is not that of their making.
struct Model {
  Program p;
  Mesh mesh;
  Model(int ranks, const std::string& axis, int owner) {
    mesh.world = ranks, mesh.axes = {{"data", ranks, "data"}}, mesh.batch_axis = "data";
    for (auto& [name, n] : {std::pair{"b.10", 5000}, {"b.9", 3000}, {"a", 7000}}) {
      auto s = std::make_shared<State>();
      s->name = name, s->type = {ORR_F32, {n}};
      p.state_value(s);
      mesh.sharded[name] = {axis, "zero", 0, owner, ORR_SHARD_STATE, false};
    }
  }
};

TEST(Units, FollowTheNaturalOrderOfNames) {
  Model m(4, "data", kNone);
  const std::vector<Unit> units = find_units(m.p, m.mesh);
  ASSERT_EQ(units.size(), 1u);
  std::vector<std::string> names;
  for (ValueId v : units[0].params) names.push_back(m.p.value(v).name);
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b.9", "b.10"}));
}

TEST(Units, OfAnOwnerLieWholeThere) {
  Model m(4, "data", 2);
  const std::vector<Unit> units = find_units(m.p, m.mesh);
  for (const Dims& cuts : units[0].shards) {
    EXPECT_EQ(cuts[2], 0);
    EXPECT_EQ(cuts[3], cuts[4]);
    EXPECT_FALSE(cut_inside(cuts));
  }
}

TEST(Units, OfAGroupAreThePiecesOfItsReplicas) {
  Model m(6, "shard", kNone);
  m.mesh.split_axes = {{"data", "replica", "shard", 3}};
  const Unit unit = find_units(m.p, m.mesh)[0];
  for (size_t i = 0; i < unit.params.size(); ++i) {
    ASSERT_EQ(unit.pieces[i].size(), 7u);
    ASSERT_EQ(unit.shards[i].size(), 4u);
    for (int rank = 0; rank < 6; ++rank) {
      const size_t piece = static_cast<size_t>(unit.piece_of[static_cast<size_t>(rank)]);
      const size_t shard = static_cast<size_t>(m.mesh.coordinate("shard", rank));
      EXPECT_LE(unit.shards[i][shard], unit.pieces[i][piece]);
      EXPECT_GE(unit.shards[i][shard + 1], unit.pieces[i][piece + 1]);
    }
  }
}

}  // namespace
}  // namespace program_test
