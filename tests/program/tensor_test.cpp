// SPDX-License-Identifier: Apache-2.0
//
// Tensor parallelism against one rank alone: the same losses, norms and parameters to rounding, with
// parameters, moments and their gradients in parts and the exchanges that the papers count.
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "gpt.h"
#include "lower/tensor.h"
#include "program/op.h"
#include "together.h"

namespace program_test {
namespace {

using namespace orrery;

struct Split {
  int ranks = 2;
  bool sequence = false, vocabulary = false;
  GptShape shape;
};

Spread spread_of(const Gpt& gpt, const Split& split) {
  Spread spread;
  spread.world = split.ranks;
  spread.axes = {{"tensor", split.ranks, "tensor"}};
  spread.tensor.axis = "tensor", spread.tensor.cause = "tensor";
  if (split.sequence) spread.tensor.scatter = 1;
  auto ends = [](const std::string& name, const std::string& tail) {
    return name.size() >= tail.size() && name.compare(name.size() - tail.size(), tail.size(), tail) == 0;
  };
  for (size_t i = 0; i < gpt.program.values().size(); ++i) {
    const Value& v = gpt.program.values()[i];
    if (v.role != Role::param) continue;
    for (const char* tail : {"qkv.weight", "qkv.bias", "mlp.1.weight", "mlp.1.bias"})
      if (ends(v.name, tail)) spread.tensor.cuts[static_cast<ValueId>(i)] = 0;
    for (const char* tail : {"proj.weight", "mlp.3.weight"})
      if (ends(v.name, tail)) spread.tensor.cuts[static_cast<ValueId>(i)] = 1;
    if (split.vocabulary && (v.name == "tok.weight" || v.name == "head.weight"))
      spread.tensor.cuts[static_cast<ValueId>(i)] = 0;
  }
  return spread;
}

Together ranks_of(const Split& split, std::vector<std::string>* remarks = nullptr) {
  Gpt gpt = make_gpt(split.shape);
  Spread spread = spread_of(gpt, split);
  std::vector<Program> programs;
  for (int r = 0; r < split.ranks; ++r) {
    TensorProgram cut = cut_program(gpt.program, spread, r);
    programs.push_back(std::move(cut.program));
    if (remarks) *remarks = cut.remarks;
  }
  return Together(std::move(programs));
}

void expect_close(const Values& got, const Values& want, double tolerance, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  double largest = 0;
  for (double x : want) largest = std::max(largest, std::abs(x));
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], tolerance * largest) << what << "[" << i << "]";
}

void expect_equal_training(const Split& split) {
  Gpt gpt = make_gpt(split.shape);
  Together alone({gpt.program}), ranks = ranks_of(split);
  for (int step = 1; step <= 3; ++step) {
    Named want = alone.step(gpt_batch(split.shape, step)), got = ranks.step(gpt_batch(split.shape, step));
    expect_close(got.at("loss"), want.at("loss"), 1e-5, "loss of step " + std::to_string(step));
    expect_close(got.at("grad_norm"), want.at("grad_norm"), 1e-5, "grad_norm of step " + std::to_string(step));
  }
  for (auto& s : gpt.states()) expect_close(ranks.state(s->name), alone.state(s->name), 2e-4, s->name);
}

TEST(Tensor, TrainsAsOneRank) {
  for (int ranks : {1, 2, 4}) expect_equal_training({ranks, false, false, {}});
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

}  // namespace
}  // namespace program_test
