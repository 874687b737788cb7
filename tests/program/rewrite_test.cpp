// SPDX-License-Identifier: Apache-2.0
//
// Edits of ops that are there, as strategies make them: what they change, the order that they
// leave, and what they refuse.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <orrery/sdk/program.hpp>
#include <orrery/sdk/strategy.hpp>

#include "base/error.h"
#include "edit/edit.h"
#include "plugin/host.h"
#include "program/build.h"
#include "program/rewrite.h"
#include "program/state.h"
#include "program/train.h"

namespace program_test {
namespace {

using namespace orrery;

// What the strategy of a test does with the program before and after it is differentiated.
std::function<void(const orr::Program&)> edit_forward, edit_step;

StrategyUse own() {
  static const orr_strategy_api table = [] {
    orr::host = &host_table();
    orr_strategy_api made = orr::strategy_table(
        [](void*, orr_strategy_info* out) -> orr_status* {
          out->provides = out->requires_ = out->conflicts = "";
          return nullptr;
        },
        [](void*, orr_program* p, const orr_edit* e, const orr_options*) {
          return orr::guard([&] { edit_step(orr::Program(p, e)); });
        },
        orr::predict_nothing);
    made.transform_forward = [](void*, orr_program* p, const orr_edit* e, const orr_options*) {
      return orr::guard([&] { edit_forward(orr::Program(p, e)); });
    };
    return made;
  }();
  return {"own", {}, "own.lua:3", nullptr, {std::shared_ptr<void>(), &table}};
}

void apply(Program& p, std::function<void(const orr::Program&)> edit) {
  edit_forward = std::move(edit);
  StrategyStates states;
  Asked asked;
  apply_forward(p, {own()}, states, asked, true);
}

std::string refusal(Program& p, std::function<void(const orr::Program&)> edit) {
  try {
    apply(p, std::move(edit));
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}

// y = tanh(x w), z = y * y, its mean as the result.
struct Model {
  Model() {
    auto state = std::make_shared<State>();
    state->name = "w", state->type = {ORR_F32, {5, 4}};
    x = p.batch_input("x", {ORR_F32, {6, 5}}), w = p.state_value(state);
    p.set_site({"Model.net", "model.lua:4"});
    product = build::matmul(p, x, w);
    y = p.pointwise(ORR_FN_TANH, {product});
    z = p.pointwise(ORR_FN_MUL, {y, y});
    mean = build::mean(p, z, {}, false);
    p.output("loss", mean);
  }
  Program p;
  ValueId x, w, product, y, z, mean;
};

void expect_in_order(const Program& p) {
  for (size_t i = 0; i < p.ops().size(); ++i) {
    for (ValueId v : p.ops()[i].in) EXPECT_LT(p.value(v).producer, static_cast<OpId>(i));
    for (size_t j = 0; j < p.ops()[i].out.size(); ++j) {
      EXPECT_EQ(p.value(p.ops()[i].out[j]).producer, static_cast<OpId>(i));
      EXPECT_EQ(p.value(p.ops()[i].out[j]).out_index, static_cast<int32_t>(j));
    }
  }
}

const Op& maker(const Program& p, ValueId v) {
  return p.ops()[static_cast<size_t>(p.value(v).producer)];
}

TEST(Replace, WrapsAValue) {
  Model m;
  ValueId half = kNone;
  apply(m.p, [&](const orr::Program& p) {
    p.beside(m.y, ORR_PHASE_FORWARD);
    half = p.mul(m.y, 0.5);
    p.replace(m.y, half);
  });
  expect_in_order(m.p);
  EXPECT_EQ(maker(m.p, half).in, std::vector<ValueId>{m.y});
  EXPECT_EQ(maker(m.p, m.z).in, std::vector<ValueId>{half});
  EXPECT_EQ(maker(m.p, half).site.region, "Model.net");
  EXPECT_EQ(m.p.value(half).producer + 1, m.p.value(m.z).producer);  // right before its reader
  EXPECT_EQ(m.p.now(m.y), half);
}

TEST(Replace, RedirectsResults) {
  for (uint32_t uses : {uint32_t{ORR_USES_ALL}, 1u << ORR_PHASE_FORWARD}) {
    Model m;
    ValueId twice = kNone;
    apply(m.p, [&](const orr::Program& p) {
      twice = p.mul(m.mean, 2.0);
      p.replace(m.mean, twice, uses);
    });
    EXPECT_EQ(m.p.outputs()[0].second, uses == ORR_USES_ALL ? twice : m.mean);
    EXPECT_EQ(m.p.now(m.mean), uses == ORR_USES_ALL ? twice : m.mean);
  }
}

// Back again: what stood for the first value no longer does.
TEST(Replace, CanBeUndone) {
  Model m;
  apply(m.p, [&](const orr::Program& p) {
    const orr::Value half = p.mul(m.y, 0.5);
    p.replace(m.y, half);
    p.replace(half, m.y);
  });
  EXPECT_EQ(maker(m.p, m.z).in[0], m.y);
  EXPECT_EQ(m.p.now(m.y), m.y);
}

TEST(Replace, LeavesUsesOfOtherPhases) {
  Model m;
  const ValueId later = [&] {
    m.p.set_phase(Phase::backward);
    const ValueId v = m.p.pointwise(ORR_FN_NEG, {m.y});
    m.p.set_phase(Phase::forward);
    return v;
  }();
  ValueId copy = kNone;
  apply(m.p, [&](const orr::Program& p) {
    copy = p.copy(m.y, ORR_PHASE_BACKWARD, {m.product})[0];
    p.replace(m.y, copy, 1u << ORR_PHASE_BACKWARD);
  });
  expect_in_order(m.p);
  EXPECT_EQ(maker(m.p, later).in[0], copy);
  EXPECT_EQ(maker(m.p, m.z).in[0], m.y);
  EXPECT_EQ(m.p.value(copy).batch(), Batch::sharded);
  EXPECT_EQ(maker(m.p, copy).twin, m.p.value(m.y).producer);
  EXPECT_EQ(maker(m.p, copy).phase, Phase::backward);
}

TEST(Replace, NamesBothValues) {
  const std::string who = "own.lua:3: strategy.own: ";
  Model a, b, c, d;
  EXPECT_EQ(refusal(a.p, [&](const orr::Program& p) { p.replace(a.y, a.x); }),
            who +
                "'x' cannot stand for the pointwise [6,4] of model.lua:4 (Model.net): "
                "one is f32[6,5], the other f32[6,4]: reshape it");
  EXPECT_EQ(refusal(b.p, [&](const orr::Program& p) { p.replace(b.y, p.cast(b.y, ORR_BF16)); }),
            who +
                "the pointwise [6,4] of model.lua:4 (Model.net) cannot stand for "
                "the pointwise [6,4] of model.lua:4 (Model.net): one is bf16, the "
                "other f32: cast it");
  EXPECT_NE(refusal(c.p,
                    [&](const orr::Program& p) {
                      p.replace(c.y, p.constant(0, ORR_F32, {6, 4}));
                    })
                .find("one is one for all samples, the other one for each sample, by dim 1"),
            std::string::npos);
  EXPECT_EQ(refusal(d.p, [&](const orr::Program& p) { p.replace(d.y, 1000); }),
            who + "there is no value 1000");
}

// What is added stands where the strategy says, in its order, though only later ops read it.
TEST(Before, StandsThereInOrder) {
  Model m;
  ValueId first = kNone, second = kNone, usual = kNone;
  apply(m.p, [&](const orr::Program& p) {
    p.before(m.product);
    first = p.op("unshard", {m.w});
    second = p.cast(p.cast(first, ORR_BF16), ORR_F32);
    p.before(-1);
    usual = p.mul(m.y, 0.5);
    p.reread(m.z, m.y, usual);
    EXPECT_THROW(p.before(m.x), orr::Error);  // nothing makes it
  });
  expect_in_order(m.p);
  EXPECT_EQ(m.p.value(first).producer, 0);
  EXPECT_EQ(m.p.value(second).producer, 2);
  EXPECT_EQ(m.p.value(m.product).producer, 3);
  EXPECT_EQ(m.p.value(usual).producer + 1, m.p.value(m.z).producer);
}

TEST(Reread, RefusesACircle) {
  Model m;
  EXPECT_NE(refusal(m.p, [&](const orr::Program& p) { p.reread(m.y, m.product, m.z); })
                .find("model.lua:4: Model.net: pointwise would be computed from its own result"),
            std::string::npos);
}

TEST(Reread, IsOfOneOpAlone) {
  Model m;
  apply(m.p, [&](const orr::Program& p) {
    const orr::Value again = p.pointwise(ORR_FN_TANH, {m.product});
    p.reread(m.z, m.y, again);
  });
  expect_in_order(m.p);
  EXPECT_NE(maker(m.p, m.z).in[0], m.y);
  Model other;
  EXPECT_NE(refusal(other.p, [&](const orr::Program& p) { p.reread(other.z, other.x, other.y); })
                .find("cannot stand for 'x'"),
            std::string::npos);
}

TEST(Retype, HasReadersFit) {
  Model m;
  apply(m.p, [&](const orr::Program& p) {
    const orr::Value x = p.cast(m.x, ORR_BF16), w = p.cast(m.w, ORR_BF16);
    p.reread(m.product, m.x, x), p.reread(m.product, m.w, w);
    p.retype(m.product, ORR_BF16);
    p.reread(m.y, m.product, p.cast(m.product, ORR_F32));
  });
  expect_in_order(m.p);
  EXPECT_EQ(m.p.type(m.product).dtype, ORR_BF16);
  EXPECT_EQ(m.p.type(m.y).dtype, ORR_F32);
  Model bad;
  EXPECT_NE(
      refusal(bad.p,
              [&](const orr::Program& p) {
                p.reread(bad.product, bad.x, p.cast(bad.x, ORR_BF16));
                p.reread(bad.product, bad.w, p.cast(bad.w, ORR_BF16));
                p.retype(bad.product, ORR_BF16);
              })
          .find("model.lua:4: Model.net: pointwise reads the matmul [6,4] of model.lua:4 "
                "(Model.net) as f32, and it is bf16 now: cast it, or re-type this op as well"),
      std::string::npos);
}

// A mean of gradients with what was left of them before, and a program every third step.
TEST(OrrProgram, WritesHooks) {
  Model m;
  m.p.mutable_outputs().clear();
  const std::shared_ptr<State> w = m.p.value(m.w).state;
  TrainParts parts;
  parts.update = [](Program& q, const std::shared_ptr<State>&, ValueId value, ValueId gradient) {
    return q.pointwise(ORR_FN_SUB, {value, gradient});
  };
  const Training step(m.p, m.mean, {w}, parts);
  int decided = 0;
  edit_step = [&](const orr::Program& p) {
    EXPECT_EQ(p.axis("line", 0), 2);
    p.each(1u << ORR_ROLE_BATCH,
           [&](orr::Value v, const orr_value_info&) { p.place(v, "line", 0); });
    p.exchange("line", [](const orr::Program& q, orr::Value parameter, orr::Value g) {
      const orr::Value kept = q.state({.name = "kept", .like = parameter, .varying = "line"});
      const orr::Value sum = g + kept;
      q.update(kept, sum * 0.5);
      return q.op("all_reduce", {sum * 0.5}, {orr::text_attr("axis", "line")});
    });
    p.every(3, 1, [](const orr::Program& q, int32_t round) {
      EXPECT_EQ(round, 0);
      q.each(1u << ORR_ROLE_PARAM,
             [&](orr::Value v, const orr_value_info&) { q.update(v, q.updated(v) * 0.5); });
    });
    p.complete("test", [&](const orr::Program& q, orr::Value loss, orr::Value norm) {
      EXPECT_EQ(q.type(norm).rank, 0);
      q.output("weighted", q.op("total", {loss}) * norm);
      ++decided;
    });
  };
  StrategyStates states;
  Mesh mesh;
  Asked asked;
  apply_strategies(m.p, {own()}, 2, states, mesh, asked);
  ASSERT_TRUE(decides_over_step(asked));
  const Measured measured =
      step.update(m.p, mesh.gradient_axis(), asked.exchanges, decides_over_step(asked));
  complete_step(m.p, mesh, asked, 1, true, measured);
  EXPECT_EQ(decided, 1);
  ASSERT_EQ(states.by_name.count("own.w.kept"), 1u);
  EXPECT_EQ(states.by_name.at("own.w.kept")->varying, "line");
  EXPECT_EQ(m.p.updates().size(), 2u);
  EXPECT_EQ(std::count_if(m.p.ops().begin(), m.p.ops().end(),
                          [](const Op& op) { return op.kind == "all_reduce"; }),
            1);
  ASSERT_EQ(asked.periodic.size(), 1u);
  EXPECT_EQ(asked.periodic[0].every, 3);
  EXPECT_EQ(asked.periodic[0].rounds.at(0)->updates().size(), 1u);
  EXPECT_EQ(m.p.outputs().back().first, "weighted");
}

// What a strategy built against revision 1 may still call.
TEST(Revision1, CallsThatHaveLeftAreRefusedByName) {
  const auto calls = std::vector<std::function<orr_status*(const orr::Program&, ValueId)>>{
      [](const orr::Program& p, ValueId v) { return p.edit()->compute(p.raw(), v, ORR_BF16); },
      [](const orr::Program& p, ValueId) { return p.edit()->loss_scale(p.raw(), 1024, 0); },
      [](const orr::Program& p, ValueId) { return p.edit()->wire(p.raw(), ORR_BF16); },
      [](const orr::Program& p, ValueId v) {
        return p.edit()->life(p.raw(), v, "net", ORR_LIFE_RECOMPUTE);
      }};
  for (const auto& call : calls) {
    Model m;
    const std::string why =
        refusal(m.p, [&](const orr::Program& p) { orr::check(call(p, m.product)); });
    EXPECT_EQ(why.find("own.lua:3: strategy.own: strategy.own was built for "), 0u) << why;
    EXPECT_NE(why.find("have left the editing table"), std::string::npos) << why;
  }
}

}  // namespace
}  // namespace program_test
