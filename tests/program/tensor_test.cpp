// SPDX-License-Identifier: Apache-2.0
//
// Tensor parallelism against one rank alone: the same losses, norms and parameters to rounding,
// with parameters, moments and their gradients in parts and the exchanges that the papers count.
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
  bool sequence = false, vocabulary = false;
  GptShape shape;
  int chunks = 0;
};

Mesh mesh_over(const Gpt& gpt, const Split& split) {
  Mesh mesh;
  mesh.world = split.ranks;
  mesh.axes = {{"tensor", split.ranks, "tensor"}};
  Placing& placing = mesh.placed.emplace_back();
  placing.axis = placing.origin = "tensor";
  if (split.sequence) placing.scatter = 1;
  placing.chunks = split.chunks;
  auto ends = [](const std::string& name, const std::string& tail) {
    return name.size() >= tail.size() &&
           name.compare(name.size() - tail.size(), tail.size(), tail) == 0;
  };
  for (size_t i = 0; i < gpt.program.values().size(); ++i) {
    const Value& v = gpt.program.values()[i];
    if (v.role != Role::param) continue;
    for (const char* tail : {"qkv.weight", "qkv.bias", "mlp.1.weight", "mlp.1.bias"})
      if (ends(v.name, tail)) placing.cuts[v.name] = {0};
    for (const char* tail : {"proj.weight", "mlp.3.weight"})
      if (ends(v.name, tail)) placing.cuts[v.name] = {1};
    if (split.vocabulary && (v.name == "tok.weight" || v.name == "head.weight"))
      placing.cuts[v.name] = {0};
  }
  return mesh;
}

Together ranks_of(const Split& split, std::vector<std::string>* remarks = nullptr) {
  Gpt gpt = make_gpt(split.shape);
  Mesh mesh = mesh_over(gpt, split);
  std::vector<Program> programs;
  for (int r = 0; r < split.ranks; ++r) {
    CutProgram cut = cut_program(gpt.program, mesh, r);
    programs.push_back(std::move(cut.program));
    if (remarks) *remarks = cut.remarks;
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

void expect_equal_training(const Split& split) {
  Gpt gpt = make_gpt(split.shape);
  Together alone({gpt.program}), ranks = ranks_of(split);
  for (int step = 1; step <= 3; ++step) {
    Named want = alone.step(gpt_batch(split.shape, step)),
          got = ranks.step(gpt_batch(split.shape, step));
    expect_close(got.at("loss"), want.at("loss"), 1e-5, "loss of step " + std::to_string(step));
    expect_close(got.at("grad_norm"), want.at("grad_norm"), 1e-5,
                 "grad_norm of step " + std::to_string(step));
  }
  for (auto& s : gpt.states())
    expect_close(ranks.state(s->name), alone.state(s->name), 2e-4, s->name);
}

TEST(Tensor, TrainsAsOneRank) {
  for (int ranks : {1, 2, 4}) expect_equal_training({ranks, false, false, {}});
}

TEST(Tensor, TrainsAsOneRankWithGroupedHeads) {
  for (int ranks : {2, 4})
    for (int64_t kv_heads : {1, 2})
      for (int64_t window : {0, 3}) {
        Split split{ranks, false, false, {}};
        split.shape.kv_heads = kv_heads, split.shape.window = window, split.shape.dim = 16;
        expect_equal_training(split);
      }
}

TEST(Tensor, TrainsAsOneRankWithTheSequenceCut) {
  for (int ranks : {2, 4}) {
    Split split{ranks, true, false, {}};
    split.shape.ctx = 8;
    expect_equal_training(split);
  }
}

TEST(Tensor, TrainsAsOneRankWithTheVocabularyCut) {
  for (int64_t vocab : {8, 10, 11}) {
    Split split{4, false, true, {}};
    split.shape.vocab = vocab;
    expect_equal_training(split);
  }
}

TEST(Tensor, TrainsAsOneRankWithEverythingCut) {
  for (bool tied : {true, false}) {
    Split split{2, true, true, {}};
    split.shape.vocab = 11, split.shape.tied = tied;
    expect_equal_training(split);
  }
}

// Losses, norms and states of `ranks` against those of one, bit for bit.
void expect_same_bits(Split split, int ranks) {
  split.ranks = 1;
  Together alone = ranks_of(split);
  split.ranks = ranks;
  Together several = ranks_of(split);
  for (int step = 1; step <= 3; ++step)
    EXPECT_EQ(several.step(gpt_batch(split.shape, step)), alone.step(gpt_batch(split.shape, step)))
        << ranks << " ranks";
  for (auto& s : make_gpt(split.shape).states())
    EXPECT_EQ(several.state(s->name), alone.state(s->name)) << s->name;
}

// Two heads of keys and values divide over two ranks, but not over the four chunks.
TEST(TensorChunks, OfGroupedHeadsGiveTheBitsOfOneRank) {
  for (int64_t kv_heads : {2, 4}) {
    Split split{1, false, false, {}};
    split.shape.kv_heads = kv_heads, split.shape.dim = 16, split.shape.heads = 8;
    split.chunks = 4;
    for (int ranks : {2, 4}) expect_same_bits(split, ranks);
  }
}

TEST(TensorChunks, GiveTheBitsOfOneRank) {
  for (bool sequence : {false, true})
    for (int64_t vocab : {8, 11})
      for (int ranks : {2, 4}) {
        Split split{1, sequence, true, {}, 4};
        split.shape.ctx = 8, split.shape.vocab = vocab, split.shape.tied = vocab == 8;
        expect_same_bits(split, ranks);
      }
}

TEST(TensorChunks, AreWhatOneRankRounds) {
  Gpt gpt = make_gpt();
  Together plain({gpt.program}), chunked = ranks_of({1, false, true, {}, 4});
  Named want = plain.step(gpt_batch({}, 1)), got = chunked.step(gpt_batch({}, 1));
  expect_close(got.at("grad_norm"), want.at("grad_norm"), 1e-5, "grad_norm");
  EXPECT_TRUE(chunked.sent().empty());
}

// The papers' counts: four all_reduces of bsh a layer, and one number for the norm.
TEST(TensorTraffic, IsFourAllReducesALayer) {
  for (int ranks : {2, 4}) {
    Split split{ranks, false, false, {}};
    const GptShape& g = split.shape;
    const double bsh = static_cast<double>(g.batch * g.ctx * g.dim), share = (ranks - 1.0) / ranks;
    Together together = ranks_of(split);
    together.step(gpt_batch(g, 1));
    EXPECT_EQ(together.sent().size(), 1u);
    EXPECT_DOUBLE_EQ(together.sent().at("all_reduce"),
                     2 * share * (4 * static_cast<double>(g.layers) * bsh + 1));
    split.vocabulary = true;
    Together classes = ranks_of(split);
    classes.step(gpt_batch(g, 1));
    EXPECT_DOUBLE_EQ(classes.sent().at("all_reduce"),
                     2 * share *
                         ((4 * static_cast<double>(g.layers) + 2) * bsh +
                          3 * bsh / static_cast<double>(g.dim) + 1));
  }
}

// The same bytes in halves, and two inputs a layer gathered again in backward.
TEST(TensorTraffic, OfACutSequenceIsTheSameInHalves) {
  Split split{2, true, true, {}};
  const GptShape& g = split.shape;
  const double bsh = static_cast<double>(g.batch * g.ctx * g.dim),
               layers = static_cast<double>(g.layers);
  Together together = ranks_of(split);
  together.step(gpt_batch(g, 1));
  EXPECT_DOUBLE_EQ(together.sent().at("reduce_scatter"), 0.5 * (4 * layers + 2) * bsh);
  const double positions = static_cast<double>(g.ctx * g.dim);  // the gradient of their table
  EXPECT_DOUBLE_EQ(together.sent().at("all_gather"),
                   0.5 * ((4 * layers + 2) * bsh + (2 * layers + 1) * bsh + positions));
}

TEST(TensorParts, AreSharesOfEverySegment) {
  Gpt gpt = make_gpt();
  CutProgram second = cut_program(gpt.program, mesh_over(gpt, {4, false, true, {}}), 1);
  std::map<std::string, const Value*> states;
  for (const Value& v : second.program.values())
    if (v.state) states[v.name] = &v;
  using Ranges = std::vector<std::pair<int64_t, int64_t>>;
  auto expect = [&](const char* name, int dim, const Ranges& ranges, const Dims& dims) {
    EXPECT_EQ(states.at(name)->part, (Part{{{dim, ranges}}, 0, -1})) << name;
    EXPECT_EQ(states.at(name)->type.dims, dims) << name;
  };
  expect("blocks.1.qkv.weight", 0, {{2, 4}, {10, 12}, {18, 20}}, {6, 8});
  expect("blocks.1.qkv.bias", 0, {{2, 4}, {10, 12}, {18, 20}}, {6});
  expect("optim.blocks.1.qkv.weight.m", 0, {{2, 4}, {10, 12}, {18, 20}}, {6, 8});
  expect("optim.blocks.2.mlp.3.weight.v", 1, {{8, 16}}, {8, 8});
  expect("tok.weight", 0, {{2, 5}}, {3, 8});
  EXPECT_TRUE(states.at("blocks.1.proj.bias")->part.is_whole());
  EXPECT_TRUE(states.at("optim.norm.weight.m")->part.is_whole());
}

// With many samples it would send less to move activations and to add whole gradients at the end of
// the step, but every rank would keep whole gradients until then.
TEST(TensorParts, GradientsAreThoseOfTheShareHoweverManySamples) {
  Split split{4, true, false, {}};
  split.shape.ctx = 8, split.shape.batch = 1024;
  const Gpt gpt = make_gpt(split.shape);
  const Program cut = cut_program(gpt.program, mesh_over(gpt, split), 1).program;
  std::map<std::string, int64_t> shares, gradients;  // elements, by parameter
  for (const Value& v : cut.values())
    if (v.role == Role::param && v.type.dims.size() == 2) shares[v.name] = v.type.elements();
  for (const Value& v : cut.values())
    if (v.role == Role::grad && shares.count(v.name))
      gradients[v.name] = std::max(gradients[v.name], v.type.elements());
  for (const char* name : {"qkv", "proj", "mlp.1", "mlp.3"}) {
    const std::string weight = std::string("blocks.1.") + name + ".weight";
    EXPECT_EQ(gradients.at(weight), shares.at(weight)) << weight;
  }
}

std::string refusal(const Split& split) {
  try {
    ranks_of(split);
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}

TEST(TensorErrors, NameThePlaceAndWhatIsLegal) {
  EXPECT_EQ(refusal({8, false, false, {}}),
            "gpt.lua:1: GPT.blocks.1: attention: 4 heads do not divide over the 8 ranks of axis "
            "'tensor': choose a "
            "size of 1, 2, 4");
  Split odd{2, true, false, {}};
  odd.shape.ctx = 7;
  EXPECT_NE(refusal(odd).find("a sequence of 7 does not divide over the 2 ranks of axis 'tensor'"),
            std::string::npos);
}

TEST(TensorRemarks, SayWhatIsGatheredForWantOfARule) {
  std::vector<std::string> remarks;
  ranks_of({2, true, true, {}}, &remarks);
  EXPECT_TRUE(remarks.empty()) << remarks[0];
  Program p;
  p.set_site({"net.fc", "model.lua:3"});
  auto w = std::make_shared<State>();
  w->name = "fc.weight", w->type = {ORR_F32, {6, 4}};
  ValueId weight = p.state_value(w);
  p.output("y",
           build::reduce(p, "sum",
                         build::softmax(p, build::matmul(p, p.batch_input("x", {ORR_F32, {3, 4}}),
                                                         weight, false, true)),
                         {}, false));
  Mesh mesh;
  mesh.world = 2, mesh.axes = {{"tensor", 2, "tensor"}};
  mesh.placed.emplace_back().axis = "tensor";
  mesh.placed[0].origin = "tensor", mesh.placed[0].cuts["fc.weight"] = {0};
  EXPECT_EQ(cut_program(p, mesh, 0).remarks,
            (std::vector<std::string>{"tensor: model.lua:3: net.fc: softmax cannot work on parts "
                                      "of [3,6]: they are gathered on "
                                      "every rank"}));
}

}  // namespace
}  // namespace program_test
