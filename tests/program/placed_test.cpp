// SPDX-License-Identifier: Apache-2.0
//
// Values that are placed on an axis whose ranks share every sample: batch fields cut along their
// time, attention by queries or by heads. One rank alone is the oracle; what is sent is counted.
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "gpt.h"
#include "partition/cut_program.h"
#include "program/build.h"
#include "together.h"

namespace program_test {
namespace {

using namespace orrery;

struct Split {
  int ranks = 2;
  bool by_heads = false;  // attention
  int chunks = 0;
};

Mesh mesh_over(const Program& p, const Split& split) {
  Mesh mesh;
  mesh.world = split.ranks;
  mesh.axes = {{"line", split.ranks, "mine"}};
  Placing& placing = mesh.placed.emplace_back();
  placing.axis = "line", placing.origin = "mine", placing.chunks = split.chunks;
  for (size_t i = 0; i < p.values().size(); ++i)
    if (p.values()[i].role == Role::batch && p.values()[i].type.dims.size() == 2)
      placing.values[static_cast<ValueId>(i)] = {1, "mine (a.lua:1)"};
  for (const Op& op : p.ops()) {
    const int64_t kv_heads = attr_int(op.attrs, "kv_heads", attr_int(op.attrs, "heads", 1));
    const bool few = kv_heads % std::max(split.ranks, split.chunks) != 0;  // they are gathered
    for (size_t i = 0; i < (few ? 1 : 3) && split.by_heads && op.kind == "attention"; ++i)
      placing.values[op.in[i]] = {2, "mine (a.lua:1)"};
  }
  return mesh;
}

Together ranks_of(const Program& p, const Split& split) {
  const Mesh mesh = mesh_over(p, split);
  std::vector<Program> programs;
  for (int r = 0; r < split.ranks; ++r) {
    CutProgram cut = cut_program(p, mesh, r);
    EXPECT_EQ(cut.remarks, std::vector<std::string>());
    programs.push_back(std::move(cut.program));
  }
  return Together(std::move(programs));
}

void expect_close(const Values& got, const Values& want, double tolerance,
                  const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  double largest = 0;
  for (double x : want) largest = std::max(largest, std::abs(x));
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], want[i], tolerance * largest) << what << "[" << i << "]";
}

GptShape shape_of(bool tied) {
  GptShape shape;
  shape.ctx = 8, shape.tied = tied;
  return shape;
}

void expect_equal_training(const Split& split, const GptShape& shape) {
  Gpt gpt = make_gpt(shape);
  Together alone({gpt.program}), ranks = ranks_of(gpt.program, split);
  for (int step = 1; step <= 3; ++step) {
    Named want = alone.step(gpt_batch(shape, step)), got = ranks.step(gpt_batch(shape, step));
    for (const char* name : {"loss", "grad_norm"})
      expect_close(got.at(name), want.at(name), 1e-5, name + std::to_string(step));
  }
  for (auto& s : gpt.states())
    expect_close(ranks.state(s->name), alone.state(s->name), 2e-4, s->name);
}

TEST(Placed, ATimeThatIsCutTrainsAsOneRank) {
  for (bool by_heads : {false, true})
    for (int ranks : {1, 2, 4}) expect_equal_training({ranks, by_heads, 0}, shape_of(ranks == 4));
}

TEST(Placed, ABiasOfScoresIsCutWithThem) {
  GptShape shape = shape_of(true);
  shape.biased = true;
  for (bool by_heads : {false, true})
    for (int ranks : {2, 4}) expect_equal_training({ranks, by_heads, 0}, shape);
}

GptShape grouped(int64_t kv_heads, int64_t window = 0, bool causal = true) {
  GptShape shape = shape_of(true);
  shape.kv_heads = kv_heads, shape.window = window, shape.causal = causal;
  return shape;
}

// Heads of keys and values that divide over the ranks, and such as do not.
TEST(Placed, GroupedHeadsTrainAsOneRank) {
  for (bool by_heads : {false, true})
    for (int ranks : {2, 4})
      for (int64_t kv_heads : {1, 2})
        expect_equal_training({ranks, by_heads, 0}, grouped(kv_heads));
}

// A group of four heads is divided: one part reads the first for four of its six, and half the
// next.
TEST(Placed, AGroupOfHeadsIsCutAnywhere) {
  GptShape shape = grouped(3);
  shape.heads = 12, shape.dim = 24;
  expect_equal_training({2, true, 0}, shape);
}

TEST(Placed, WindowsTrainAsOneRank) {
  for (bool causal : {true, false})
    for (bool by_heads : {false, true})
      for (int ranks : {2, 4}) expect_equal_training({ranks, by_heads, 0}, grouped(2, 3, causal));
  GptShape biased = grouped(2, 3, false);
  biased.biased = true;
  expect_equal_training({4, false, 0}, biased);
}

TEST(Placed, ChunksOfTimeTrainAsOneRank) {
  for (int ranks : {1, 2}) expect_equal_training({ranks, false, 4}, shape_of(true));
}

// With the same chunks of time and attention by heads no sum depends on the number of ranks.
void expect_bits_of_one_rank(const GptShape& shape) {
  Gpt gpt = make_gpt(shape);
  for (int ranks : {2, 4}) {
    Together alone = ranks_of(gpt.program, {1, true, 4}),
             several = ranks_of(gpt.program, {ranks, true, 4});
    for (int step = 1; step <= 3; ++step)
      EXPECT_EQ(several.step(gpt_batch(shape, step)), alone.step(gpt_batch(shape, step)));
    for (auto& s : gpt.states()) EXPECT_EQ(several.state(s->name), alone.state(s->name)) << s->name;
  }
}

TEST(Placed, ChunksOfTimeGiveTheBitsOfOneRank) {
  expect_bits_of_one_rank(shape_of(true));
  for (int64_t kv_heads : {1, 2}) expect_bits_of_one_rank(grouped(kv_heads, 3));
}

// What stands for a value of the model says how it lies, so that the whole is known from the part.
TEST(Placed, LayoutsGiveTheWholeTypes) {
  for (const Split& split : {Split{2, false, 0}, Split{4, true, 0}, Split{2, true, 4}}) {
    Gpt gpt = make_gpt(shape_of(true));
    const CutProgram cut = cut_program(gpt.program, mesh_over(gpt.program, split), 1);
    int in_parts = 0;
    for (size_t v = 0; v < cut.here.size(); ++v) {
      if (cut.here[v] == kNone) continue;
      const Value &whole = gpt.program.values()[v], &here = cut.program.value(cut.here[v]);
      EXPECT_EQ(whole_type(here.type, here.layout), whole.type) << v;
      EXPECT_EQ(here.batch(), whole.batch()) << v;
      in_parts += here.type != whole.type;
    }
    EXPECT_GT(in_parts, 20);
  }
}

double parameters(const Gpt& gpt) {
  double n = 0;
  for (auto& s : gpt.params) n += static_cast<double>(s->type.elements());
  return n;
}

// Keys and values are gathered in forward and again in backward, their gradients scattered; beside
// them travel the loss and the gradients of parameters, of that of places the rows alone.
// Grouped heads travel as they are: one of four is a quarter.
TEST(PlacedTraffic, IsKeysAndValues) {
  for (int64_t kv_heads : {4, 2, 1})
    for (int ranks : {2, 4}) {
      const GptShape s = grouped(kv_heads);
      Gpt gpt = make_gpt(s);
      Together together = ranks_of(gpt.program, {ranks, false, 0});
      together.step(gpt_batch(s, 1));
      const double keys = static_cast<double>(s.batch * s.ctx * s.dim * kv_heads / s.heads),
                   places = static_cast<double>(s.ctx * s.dim),
                   layers = static_cast<double>(s.layers), share = (ranks - 1.0) / ranks;
      EXPECT_EQ(together.sent().size(), 3u);
      EXPECT_DOUBLE_EQ(together.sent().at("all_gather"), share * (4 * layers * keys + places));
      EXPECT_DOUBLE_EQ(together.sent().at("reduce_scatter"), share * 2 * layers * keys);
      EXPECT_DOUBLE_EQ(together.sent().at("all_reduce"),
                       2 * share * (parameters(gpt) - places + 1));
    }
}

// Queries, keys, values and the result, and the gradients of each: an all_to_all of a rank's part.
TEST(PlacedTraffic, IsEightTradesALayerByHeads) {
  for (int ranks : {2, 4}) {
    const GptShape s = shape_of(true);
    Gpt gpt = make_gpt(s);
    Together together = ranks_of(gpt.program, {ranks, true, 0});
    together.step(gpt_batch(s, 1));
    const double bsh = static_cast<double>(s.batch * s.ctx * s.dim),
                 layers = static_cast<double>(s.layers), share = (ranks - 1.0) / ranks;
    EXPECT_EQ(together.sent().size(), 3u);
    EXPECT_DOUBLE_EQ(together.sent().at("all_to_all"), share * bsh / ranks * 8 * layers);
  }
}

// One index of a cut dim lies on one rank whole: its halves are taken and multiplied there, and
// what the others lack of the result is all that is sent.
TEST(PlacedOwners, TakeTheirOwnApart) {
  Program p;
  const ValueId x = p.input("x", {ORR_F32, {2, 6}});
  std::vector<ValueId> products;
  for (ValueId row : build::split(p, x, 0, {1, 1})) {
    const std::vector<ValueId> halves = build::split(p, row, 1, {3, 3});
    products.push_back(p.pointwise(ORR_FN_MUL, {halves[0], halves[1]}));
  }
  give(p, "y", build::concat(p, products, 0));
  Mesh mesh = mesh_over(p, {});
  mesh.placed[0].values[x] = {0, "mine (a.lua:1)"};
  std::vector<Program> programs;
  for (int r = 0; r < 2; ++r) programs.push_back(cut_program(p, mesh, r).program);
  Together together(std::move(programs));
  const Values y = together.step({{"x", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}}}).at("y");
  EXPECT_EQ(y, (Values{4, 10, 18, 70, 88, 108}));
  EXPECT_EQ(together.sent(), (std::map<std::string, double>{{"all_gather", 3}}));
}

}  // namespace
}  // namespace program_test
