// SPDX-License-Identifier: Apache-2.0
//
// Microbatches change nothing but time: loss and gradients with padded last microbatches and with
// weighted tokens are those of the batch in one piece.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "machine.h"
#include "program/build.h"
#include "program/state.h"
#include "run/run.h"

namespace program_test {
namespace {

using namespace orrery;

constexpr int64_t kBatch = 10, kTokens = 3, kWidth = 4, kClasses = 5;

HostTensor random_tensor(const Dims& dims, uint32_t seed) {
  HostTensor t = HostTensor::make({ORR_F32, dims});
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (int64_t i = 0; i < t.type.elements(); ++i) t.data<float>()[i] = uniform(random);
  return t;
}

std::shared_ptr<State> state(const std::string& name, const HostTensor& value) {
  auto s = std::make_shared<State>();
  s->name = name, s->type = value.type;
  s->initial = Initial::of_data(value);
  return s;
}

BatchField field(const HostTensor& t) {
  return {t.type, [t](int64_t begin, int64_t end, std::byte* to) {
            size_t row = t.bytes->size() / static_cast<size_t>(t.type.dims[0]);
            std::memcpy(to, t.bytes->data() + static_cast<size_t>(begin) * row,
                        static_cast<size_t>(end - begin) * row);
          }};
}

struct Data {
  HostTensor x = random_tensor({kBatch, kTokens, kWidth}, 1);
  HostTensor labels = HostTensor::make({ORR_I64, {kBatch, kTokens}});
  HostTensor weights = HostTensor::make({ORR_F32, {kBatch, kTokens}});

  Data() {
    for (int64_t i = 0; i < kBatch * kTokens; ++i) {
      labels.data<int64_t>()[i] = i * 7 % kClasses;
      weights.data<float>()[i] = i % 4 == 1 ? 0.0f : 0.5f + static_cast<float>(i % 3);
    }
    for (int64_t i = 3 * kTokens; i < 6 * kTokens; ++i)
      weights.data<float>()[i] = 0;    // one leaf of four
    labels.data<int64_t>()[1] = -100;  // weighs 0: never looked at
  }
  BatchFields fields() const {
    return {{"x", field(x)}, {"labels", field(labels)}, {"weights", field(weights)}};
  }
};

using Loss = ValueId (*)(Program&, ValueId logits, const Fields&);

ValueId token_loss(Program& p, ValueId logits, const Fields& f) {
  return build::cross_entropy(p, logits, f.at("labels"), f.at("weights"), std::nullopt);
}
ValueId ignoring_loss(Program& p, ValueId logits, const Fields& f) {
  ValueId labels = f.at("labels");
  ValueId zero = p.pointwise(ORR_FN_EQ, {labels, Operand::number(0)});
  labels = p.pointwise(ORR_FN_SELECT, {zero, Operand::number(-100), labels});
  return build::cross_entropy(p, logits, labels, kNone, -100);
}
ValueId plain_loss(Program& p, ValueId logits, const Fields&) {
  ValueId square = p.pointwise(ORR_FN_MUL, {logits, logits});
  return build::mean(p, square, {}, false);
}
ValueId penalized_loss(Program& p, ValueId logits, const Fields& f) {
  ValueId w = kNone;
  for (size_t i = 0; i < p.values().size(); ++i)
    if (p.values()[i].role == Role::param) w = static_cast<ValueId>(i);
  ValueId penalty = build::reduce(p, "sumsq", w, {}, false);
  return p.pointwise(ORR_FN_ADD, {token_loss(p, logits, f),
                                  p.pointwise(ORR_FN_MUL, {penalty, Operand::number(0.1)})});
}

struct Outcome {
  double loss, evaluated;
  Values gradient;
};

Outcome train(Loss loss, int64_t microbatches, const Data& data = {}) {
  auto w = state("w", random_tensor({kWidth, kWidth}, 2)),
       head = state("head", random_tensor({kWidth, kClasses}, 3));
  RunSpec spec;
  spec.params = {w, head};
  for (auto& s : spec.params)
    spec.gradients.push_back(state("grad." + s->name, HostTensor::make(s->type)));
  spec.loss = [=](Program& p, const Fields& f) {
    ValueId weight = p.state_value(w), x = f.at("x");
    for (int use = 0; use < 2; ++use) x = p.pointwise(ORR_FN_TANH, {build::matmul(p, x, weight)});
    return std::pair{loss(p, build::matmul(p, x, p.state_value(head)), f), Outputs{}};
  };
  spec.microbatches = microbatches, spec.local = true, spec.line = "model.lua:9";
  auto run = Run::make(spec);
  Outcome out{run->step(data.fields())->get("loss"), run->evaluate(data.fields())->get("loss"), {}};
  for (auto& g : spec.gradients) {
    HostTensor t = read_state(*g);
    out.gradient.insert(out.gradient.end(), t.data<float>(), t.data<float>() + t.type.elements());
  }
  return out;
}

void expect_equal(const Outcome& got, const Outcome& want, int64_t microbatches) {
  EXPECT_NEAR(got.loss, want.loss, 1e-6 * std::abs(want.loss)) << microbatches;
  EXPECT_EQ(got.evaluated, got.loss) << microbatches;
  for (size_t i = 0; i < want.gradient.size(); ++i)
    EXPECT_NEAR(got.gradient[i], want.gradient[i], 1e-7 + 1e-5 * std::abs(want.gradient[i]))
        << microbatches << ", element " << i;
}

class Microbatches : public ::testing::TestWithParam<Loss> {};

TEST_P(Microbatches, ChangeNeitherLossNorGradient) {
  Outcome whole = train(GetParam(), 1);
  EXPECT_GT(whole.loss, 0.01);
  for (int64_t n : {2, 3, 4, 7, 10}) expect_equal(train(GetParam(), n), whole, n);
}

std::string loss_name(const ::testing::TestParamInfo<Loss>& info) {
  return std::vector<std::string>{"token", "ignoring", "plain", "penalized"}[info.index];
}

INSTANTIATE_TEST_SUITE_P(Losses, Microbatches,
                         ::testing::Values(token_loss, ignoring_loss, plain_loss, penalized_loss),
                         loss_name);

// The weighted mean by hand: what weighs nothing does not count, wherever it lies.
TEST(Weights, OfZeroTakeTokensOutOfTheMean) {
  Data data, other;
  for (int64_t i = 0; i < kBatch * kTokens; ++i)
    if (data.weights.data<float>()[i] == 0) other.labels.data<int64_t>()[i] = -1;
  Outcome a = train(token_loss, 4, data), b = train(token_loss, 4, other);
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_EQ(a.gradient, b.gradient);
  for (int64_t i = 0; i < kBatch * kTokens; ++i) other.weights.data<float>()[i] *= 4;
  EXPECT_NEAR(train(token_loss, 4, other).loss, a.loss, 1e-6);
}

}  // namespace
}  // namespace program_test
