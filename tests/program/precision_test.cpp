// SPDX-License-Identifier: Apache-2.0
//
// Compute precision against the same model with its casts written by hand.
#include <gtest/gtest.h>

#include "base/error.h"
#include "lower/edit.h"
#include "lower/precision.h"
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
  for (int64_t i = 0; i < t.type.elements(); ++i) t.data<float>()[i] = 0.37f * static_cast<float>(i % 7) - 0.9f;
  s->initial = {Initial::data, 0, 0, t};
  return s;
}

// tanh(x w) * scale, squared and averaged; `low` writes the casts around the module by hand.
Model make(bool low) {
  Model m;
  Program& p = m.p;
  m.w = param("net.w", {5, 4}), m.scale = param("net.scale", {4});
  ValueId x = p.batch_input("x", {ORR_F32, {6, 5}}), w = p.state_value(m.w), s = p.state_value(m.scale);
  p.set_site({"Model.net", "model.lua:4"});
  auto at = [&](ValueId v) { return low ? p.cast(v, ORR_BF16) : v; };
  m.product = build::matmul(p, at(x), at(w));
  m.hidden = p.pointwise(ORR_FN_TANH, {m.product});
  m.hidden = p.pointwise(ORR_FN_MUL, {m.hidden, at(s)});
  p.set_site({"", "model.lua:9"});
  ValueId y = p.cast(m.hidden, ORR_F32);
  m.loss = build::mean(p, p.pointwise(ORR_FN_MUL, {y, y}), {}, false);
  return m;
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
  batch["$weight"] = Values(6, 1);
  return Machine(p, {"reference"}, {1, 0, 1, 6}).run(batch);
}

TEST(Precision, IsThatOfCastsByHand) {
  Model plain = make(false), by_hand = make(true), chosen = make(false);
  apply_forward(chosen.p, {{"precision", {}, "model.lua:1"}});
  EXPECT_EQ(chosen.p.type(chosen.product).dtype, ORR_BF16);
  EXPECT_EQ(chosen.p.type(chosen.hidden).dtype, ORR_BF16);
  EXPECT_EQ(chosen.p.type(chosen.loss).dtype, ORR_F32);
  Named want = trained(by_hand), got = trained(chosen), exact = trained(plain);
  EXPECT_EQ(got, want);
  EXPECT_NE(got.at("loss"), exact.at("loss"));
  EXPECT_NEAR(got.at("loss")[0], exact.at("loss")[0], 1e-2 * exact.at("loss")[0]);
}

TEST(Precision, LeavesWhatIsToBeKept) {
  Model kept = make(false);
  kept.p.set_site({"Model.head", "model.lua:5"});
  ValueId head = build::matmul(kept.p, kept.hidden, kept.p.input("h", {ORR_F32, {4, 2}}));
  apply_forward(kept.p, {{"precision", {{"keep", std::string("net")}}, "model.lua:1"}});
  EXPECT_EQ(kept.p.type(kept.product).dtype, ORR_F32);
  EXPECT_EQ(kept.p.type(kept.hidden).dtype, ORR_F32);
  EXPECT_EQ(kept.p.type(head).dtype, ORR_BF16);
}

// A use each, so that their gradients stay apart.
TEST(Precision, CastsAParameterOnceForEachUse) {
  Program p;
  auto w = param("net.w", {4, 4});
  ValueId x = p.batch_input("x", {ORR_F32, {3, 4}}), v = p.state_value(w);
  ValueId once = build::matmul(p, x, v), twice = build::matmul(p, once, v);
  set_precision(p, {{once, ORR_BF16}, {twice, ORR_BF16}});
  int casts = 0;
  for (const Op& op : p.ops()) casts += op.kind == "pointwise" && op.in[0] == v;
  EXPECT_EQ(casts, 2);
}

std::string refusal(const std::map<std::string, Attr>& options) {
  Model m = make(false);
  try {
    apply_forward(m.p, {{"precision", options, "model.lua:1"}});
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}

TEST(PrecisionOptions, AreChecked) {
  EXPECT_EQ(refusal({{"compute", std::string("f16")}}),
            "model.lua:1: strategy.precision: compute 'f16' needs a loss scale, which there is not yet: use bf16");
  EXPECT_EQ(refusal({{"compute", std::string("int8")}}), "model.lua:1: strategy.precision: compute 'int8': there is bf16");
  EXPECT_EQ(refusal({{"keep", std::string("nets")}}), "model.lua:1: strategy.precision: keep 'nets' matches no module");
  EXPECT_EQ(refusal({{"keep", std::string("net")}}),
            "model.lua:1: strategy.precision: nothing in the model computes in f32");
}

}  // namespace
}  // namespace program_test
