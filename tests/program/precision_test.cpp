// SPDX-License-Identifier: Apache-2.0
//
// Compute precision against the same model with its casts written by hand.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "edit/edit.h"
#include "machine.h"
#include "program/autodiff.h"
#include "program/build.h"
#include "program/state.h"
#include "run/run.h"

namespace program_test {
namespace {

using namespace orrery;

struct Model {
  Program p;
  std::shared_ptr<State> w, scale;
  ValueId product = kNone, hidden = kNone, loss = kNone;
};

std::shared_ptr<State> param(const std::string& name, const Dims& dims) {
  auto s = std::make_shared<State>();
  s->name = name, s->type = {ORR_F32, dims};
  HostTensor t = HostTensor::make(s->type);
  for (int64_t i = 0; i < t.type.elements(); ++i)
    t.data<float>()[i] = 0.37f * static_cast<float>(i % 7) - 0.9f;
  s->initial = Initial::of_data(t);
  return s;
}

// tanh(x w) * scale, squared and averaged; with `low` the casts around the module are written by
// hand.
Model make(int32_t low = 0) {
  Model m;
  Program& p = m.p;
  m.w = param("net.w", {5, 4}), m.scale = param("net.scale", {4});
  ValueId x = p.batch_input("x", {ORR_F32, {6, 5}}), w = p.state_value(m.w),
          s = p.state_value(m.scale);
  p.set_site({"Model.net", "model.lua:4"});
  auto at = [&](ValueId v) { return low ? p.cast(v, low) : v; };
  m.product = build::matmul(p, at(x), at(w));
  m.hidden = p.pointwise(ORR_FN_TANH, {m.product});
  m.hidden = p.pointwise(ORR_FN_MUL, {m.hidden, at(s)});
  p.set_site({"", "model.lua:9"});
  ValueId y = p.cast(m.hidden, ORR_F32);
  m.loss = build::mean(p, p.pointwise(ORR_FN_MUL, {y, y}), {}, false);
  return m;
}

void compute_short(Program& p, const std::map<std::string, Attr>& options) {
  StrategyStates states;
  Asked asked;
  apply_forward(p, {{"precision", options, "model.lua:1"}}, states, asked, true);
}

Named trained(Model& m) {
  Program& p = m.p;
  ValueId w = p.state_value(m.w), s = p.state_value(m.scale);
  Differentiated d = differentiate(p, m.loss, {w, s});
  p.output("loss", m.loss);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(p.type(d.parts[i].partial.at(0)).dtype, ORR_F32);
    p.output(i ? "scale" : "w", p.add1("total", {d.parts[i].partial[0]}));
  }
  materialize({m.w, m.scale});
  Named batch;
  for (int i = 0; i < 30; ++i) batch["x"].push_back(static_cast<float>(0.11 * (i % 13) - 0.6));
  batch["labels"] = {0, 3, 1, 2, 2, 0};  // read by classifiers
  batch["$weight"] = Values(6, 1);
  return Machine(p, {"reference"}, {1, 0, 1, 6}).run(batch);
}

TEST(Precision, IsThatOfCastsByHand) {
  Model plain = make();
  Named exact = trained(plain), last;
  for (auto [dtype, name] : {std::pair{ORR_BF16, "bf16"}, {ORR_F16, "f16"}}) {
    Model by_hand = make(dtype), chosen = make();
    compute_short(chosen.p, {{"compute", std::string(name)}});
    EXPECT_EQ(chosen.p.type(chosen.product).dtype, dtype);
    EXPECT_EQ(chosen.p.type(chosen.hidden).dtype, dtype);
    EXPECT_EQ(chosen.p.type(chosen.loss).dtype, ORR_F32);
    Named want = trained(by_hand), got = trained(chosen);
    EXPECT_EQ(got, want) << name;
    EXPECT_NE(got.at("loss"), exact.at("loss")) << name;
    EXPECT_NE(got, last) << name;
    EXPECT_NEAR(got.at("loss")[0], exact.at("loss")[0], 1e-2 * exact.at("loss")[0]) << name;
    last = got;
  }
}

TEST(Precision, LeavesWhatIsToBeKept) {
  Model kept = make();
  kept.p.set_site({"Model.head", "model.lua:5"});
  ValueId head = build::matmul(kept.p, kept.hidden, kept.p.input("h", {ORR_F32, {4, 2}}));
  compute_short(kept.p, {{"keep", std::string("net")}});
  EXPECT_EQ(kept.p.type(kept.product).dtype, ORR_F32);
  EXPECT_EQ(kept.p.type(kept.hidden).dtype, ORR_F32);
  EXPECT_EQ(kept.p.type(head).dtype, ORR_BF16);
}

// x w, and its loss over classes; with `low` the casts are written by hand, of logits back to f32.
Model classifier(int32_t low = 0) {
  Model m;
  Program& p = m.p;
  m.w = param("net.w", {5, 4}), m.scale = param("net.scale", {4});
  const ValueId x = p.batch_input("x", {ORR_F32, {6, 5}}), w = p.state_value(m.w),
                s = p.state_value(m.scale);
  p.set_site({"Model.net", "model.lua:4"});
  auto at = [&](ValueId v) { return low ? p.cast(v, low) : v; };
  m.product = build::matmul(p, at(x), at(w));
  m.hidden = p.pointwise(ORR_FN_MUL, {m.product, at(s)});
  p.set_site({"", "model.lua:9"});
  const ValueId labels = p.batch_input("labels", {ORR_I32, {6}});
  const ValueId logits = low ? p.cast(m.hidden, ORR_F32) : m.hidden;
  m.loss = build::cross_entropy(p, logits, labels, kNone, std::nullopt);
  return m;
}

const Op& loss_of(const Program& p) {
  return *std::find_if(p.ops().begin(), p.ops().end(),
                       [](const Op& op) { return op.kind == "cross_entropy"; });
}

TEST(Precision, LogitsStayShortAndTheirLossIsThatOfACopyInF32) {
  for (auto [dtype, name] : {std::pair{ORR_BF16, "bf16"}, {ORR_F16, "f16"}}) {
    Model by_hand = classifier(dtype), chosen = classifier();
    compute_short(chosen.p, {{"compute", std::string(name)}});
    EXPECT_EQ(loss_of(chosen.p).in[0], chosen.hidden) << name;
    EXPECT_EQ(chosen.p.type(chosen.hidden).dtype, dtype);
    for (int i : {0, 1}) EXPECT_EQ(chosen.p.type(loss_of(chosen.p).out[i]).dtype, ORR_F32);
    EXPECT_EQ(trained(chosen), trained(by_hand)) << name;
  }
}

TEST(Precision, LogitsOfAKeptModuleAreF32) {
  Model kept = classifier();
  kept.p.set_site({"Model.other", "model.lua:5"});
  build::matmul(kept.p, kept.hidden, kept.p.input("h", {ORR_F32, {4, 2}}));
  compute_short(kept.p, {{"keep", std::string("net")}});
  EXPECT_EQ(loss_of(kept.p).in[0], kept.hidden);
  EXPECT_EQ(kept.p.type(kept.hidden).dtype, ORR_F32);
}

// A use each, so that their gradients stay apart.
TEST(Precision, CastsAParameterOnceForEachUse) {
  Program p;
  auto w = param("net.w", {4, 4});
  ValueId x = p.batch_input("x", {ORR_F32, {3, 4}}), v = p.state_value(w);
  build::matmul(p, build::matmul(p, x, v), v);
  compute_short(p, {});
  int casts = 0;
  for (const Op& op : p.ops()) casts += op.kind == "pointwise" && op.in[0] == v;
  EXPECT_EQ(casts, 2);
}

std::string refusal(const std::map<std::string, Attr>& options) {
  Model m = make();
  try {
    compute_short(m.p, options);
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}

TEST(PrecisionOptions, AreChecked) {
  const std::string at = "model.lua:1: strategy.precision: ";
  EXPECT_EQ(refusal({{"compute", std::string("int8")}}),
            at + "there is no compute 'int8': give bf16 or f16 or f32 or fp8");
  EXPECT_EQ(refusal({{"loss_scale", std::string("auto")}}),
            at + "loss_scale 'auto': write \"dynamic\" or a power of two");
  EXPECT_EQ(refusal({{"loss_scale", int64_t{1000}}}),
            at + "loss_scale 1000 is no power of two from 2^-24 to 2^24: the nearest is 1024");
  EXPECT_EQ(refusal({{"loss_scale", 1e30}}),
            at + "loss_scale 1e+30 is no power of two from 2^-24 to 2^24: the nearest is 16777216");
  EXPECT_EQ(refusal({{"loss_scale", int64_t{0}}}),
            at + "loss_scale 0 is no power of two from 2^-24 to 2^24: the nearest is 1");
  EXPECT_EQ(refusal({{"growth_interval", int64_t{5}}}),
            at + "growth_interval is for loss_scale = \"dynamic\"");
  EXPECT_EQ(refusal({{"compute", std::string("f16")}, {"growth_interval", int64_t{0}}}),
            at + "growth_interval 0: the least is 1");
  EXPECT_EQ(refusal({{"compute", std::string("f32")}, {"keep", std::string("net")}}),
            at + "keep 'net': with compute 'f32' all modules stay in f32");
  EXPECT_EQ(refusal({{"keep", std::string("nets")}}),
            "model.lua:1: strategy.precision: keep 'nets' matches no module");
  EXPECT_EQ(refusal({{"keep", std::string("net")}}),
            "model.lua:1: strategy.precision: nothing in the model computes in f32");
}

}  // namespace
}  // namespace program_test
