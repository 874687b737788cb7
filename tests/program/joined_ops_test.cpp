// SPDX-License-Identifier: Apache-2.0
//
// Ops of a step that lowering makes one, and casts that it moves: which are, and that no bit
// changes.
#include <gtest/gtest.h>

#include "launched_kinds.h"
#include "program/build.h"
#include "program/op_group.h"
#include "program/state.h"

namespace program_test {
namespace {

using namespace orrery;
using Ids = std::vector<ValueId>;

// The gradients of a norm: of samples, or of rows that are no samples.
struct Norm {
  // `unread`: how many of the parameters' gradients nothing reads, as where parameters are frozen.
  explicit Norm(const std::string& norm = "layernorm", bool samples = false, size_t unread = 0)
      : rms(norm == "rmsnorm"), samples(samples) {
    const ValueId dy = rows("dy", {24, 20}), x = rows("x", {24, 20});
    const ValueId w = p.input("w", {ORR_F32, {20}}), rstd = rows("rstd", {24});
    const ValueId mean = rms ? kNone : rows("mean", {24});
    dx = p.add1(norm + "_grad", rms ? Ids{dy, x, w, rstd} : Ids{dy, x, w, mean, rstd});
    const Ids params = rms ? p.add("norm_param_grad", {dy, x, rstd}, {{"rms", int64_t{1}}})
                           : p.add("norm_param_grad", {dy, x, mean, rstd});
    for (size_t i = unread; i < params.size(); ++i)
      tell(p, "d" + std::to_string(i), params[i], samples);
  }

  ValueId rows(const std::string& name, const Dims& dims) {
    return samples ? p.batch_input(name, {ORR_F32, dims}) : p.input(name, {ORR_F32, dims});
  }
  static void tell(Program& p, const std::string& name, ValueId sum, bool samples) {
    give(p, name, samples ? p.add1("total", {sum}) : sum);
  }
  // Adds another gradient, as a residual does, and sums the result over its rows, as a bias does.
  void add_and_sum() {
    dx = p.pointwise(ORR_FN_ADD, {rows("r", {24, 20}), dx});
    tell(p, "sum", build::reduce(p, "sum", dx, {0}, false), samples);
  }
  // What follows, so that dx is needed.
  void read() { tell(p, "all", build::reduce(p, "sum", dx, {0, 1}, false), samples); }

  Program p;
  bool rms, samples;
  ValueId dx = kNone;
};

const std::string two = "layernorm_grad + norm_param_grad", all = two + " + add + sum";

TEST(JoinedNorms, TakeWhatIsAddedAndTheSum) {
  for (const char* name : {"layernorm", "rmsnorm"}) {
    Norm norm(name);
    norm.add_and_sum(), norm.read();
    const Kinds found = kinds(norm.p);
    EXPECT_EQ(found[0], std::string(name) + "_grad + norm_param_grad + add + sum");
    EXPECT_EQ(count(found, "norm_param_grad") + count(found, "reduce"), 1);  // that of all
    expect_equal_bits(norm.p);
  }
}

TEST(JoinedNorms, OfSamplesKeepTheirLeaves) {
  Norm norm("layernorm", true);
  norm.add_and_sum(), norm.read();
  Microbatches three;
  three.total = three.last = 3, three.rows = 8;
  EXPECT_EQ(count(kinds(norm.p, {"reference"}, three), all), 1);
  expect_equal_bits(norm.p, three);
}

TEST(JoinedNorms, NeedNotBeRead) {
  Microbatches three;
  three.total = three.last = 3, three.rows = 8;
  for (bool samples : {false, true}) {
    Norm norm("layernorm", samples, 1);
    norm.add_and_sum(), norm.read();
    EXPECT_EQ(count(kinds(norm.p, {"reference"}, samples ? three : Microbatches{}), all), 1);
    expect_equal_bits(norm.p, samples ? three : Microbatches{});
  }
}

TEST(JoinedNorms, LeaveAnInputGradientThatOthersRead) {
  Norm norm;
  const ValueId before = norm.dx;
  norm.add_and_sum();
  norm.dx = before, norm.read();
  const Kinds found = kinds(norm.p);
  EXPECT_EQ(count(found, two), 1);
  EXPECT_EQ(count(found, "reduce"), 1);
  EXPECT_EQ(count(found, "add + sum"), 1);
  expect_equal_bits(norm.p);
}

TEST(JoinedNorms, StayApartWhereTheKernelsTakeThemBetterSo) {
  Norm norm;
  norm.read();
  EXPECT_EQ(count(kinds(norm.p, {"reference", "cpu"}), two), 0);  // cpu has no such kernel
}

// Two samples' tensors added, with a bias, and what reads the sum: a norm, as in a block of a
// transformer, or the sum over all rows, as the gradient of a bias.
struct Residual {
  explicit Residual(const std::string& next, bool samples = false) : samples(samples) {
    const auto rows = [&](const std::string& name) {
      return samples ? p.batch_input(name, {ORR_F32, {24, 20}})
                     : p.input(name, {ORR_F32, {24, 20}});
    };
    const ValueId w = p.input("w", {ORR_F32, {20}}), b = p.input("b", {ORR_F32, {20}});
    sum = p.pointwise(ORR_FN_ADD, {rows("x"), p.pointwise(ORR_FN_ADD, {rows("y"), b})});
    if (next == "reduce")
      found = build::reduce(p, "sum", sum, {0}, false);
    else
      found = p.add(next, next == "rmsnorm" ? Ids{sum, w} : Ids{sum, w, b}, {{"eps", 1e-5}})[0];
    if (next != "reduce") found = p.add1("softmax", {found});
    tell("found", next == "reduce" ? found : build::reduce(p, "sum", found, {0}, false));
    tell("more", build::reduce(p, "sum", p.add1("softmax", {sum}), {0}, false));
  }
  void tell(const std::string& name, ValueId v) {
    give(p, name, samples ? p.add1("total", {v}) : v);
  }

  Program p;
  bool samples;
  ValueId sum = kNone, found = kNone;
};

std::string pair_of(const std::string& next) {
  return "add + " + (next == "reduce" ? "sum" : next);
}

TEST(JoinedNext, AreWhatIsAddedAndItsNormOrSum) {
  for (const char* next : {"layernorm", "rmsnorm", "reduce"}) {
    const Residual residual(next);
    const Kinds found = kinds(residual.p);
    EXPECT_EQ(count(found, pair_of(next)), 1) << next;
    EXPECT_EQ(count(found, next), next == std::string("reduce")) << next;  // that of the softmax
    expect_equal_bits(residual.p);
  }
}

TEST(JoinedNext, OfSamplesKeepTheirLeaves) {
  const Residual residual("reduce", true);
  Microbatches three;
  three.total = three.last = 3, three.rows = 8;
  EXPECT_EQ(count(kinds(residual.p, {"reference"}, three), pair_of("reduce")), 1);
  expect_equal_bits(residual.p, three);
}

// A sum within rows, over a dim between others, of all elements, or of rows of one element, is
// another kernel form.
TEST(JoinedNext, AreSumsOverRowsAlone) {
  const std::vector<std::pair<Dims, Dims>> sums = {
      {{4, 6, 5}, {2}}, {{4, 6, 5, 2}, {1}}, {{4, 6, 5}, {0, 1, 2}}, {{24, 1}, {0}}};
  for (const auto& [dims, over] : sums) {
    Program p;
    const ValueId x = p.input("x", {ORR_F32, dims});
    give(p, "y", build::reduce(p, "sum", p.pointwise(ORR_FN_MUL, {x, x}), over, false));
    EXPECT_EQ(kinds(p), (Kinds{"pointwise", "reduce", "pointwise"}))
        << to_string(dims) << to_string(over);
    expect_equal_bits(p);
  }
}

// The norm's weight is known only after the sum: it would be read before it is made.
// As the statistics of a batch normalization.
TEST(JoinedNext, AreSumsOverTheRowsOfEachSample) {
  Program p;
  const ValueId x = p.input("x", {ORR_F32, {4, 67, 5}});
  give(p, "y", build::reduce(p, "sum", p.pointwise(ORR_FN_MUL, {x, x}), {1}, false));
  EXPECT_EQ(kinds(p), (Kinds{"mul + sum", "pointwise"}));
  expect_equal_bits(p);
}

TEST(JoinedNext, StayApartWhereTheNormReadsWhatIsMadeLater) {
  Program p;
  const ValueId x = p.input("x", {ORR_F32, {24, 20}}), b = p.input("b", {ORR_F32, {20}});
  const ValueId sum = p.pointwise(ORR_FN_ADD, {x, x});
  const ValueId w = p.add1("softmax", {p.add1("softmax", {b})});
  give(p, "y", p.add("layernorm", {sum, w, b}, {{"eps", 1e-5}})[0]);
  EXPECT_EQ(count(kinds(p), "layernorm"), 1);
  expect_equal_bits(p);
}

TEST(JoinedNext, StayApartWhereNoKernelTakesBoth) {
  const Kinds found = kinds(Residual("layernorm").p, {"reference", "cpu"});
  EXPECT_EQ(count(found, pair_of("layernorm")), 0);
}

// The mean loss of rows over 11 classes, and the gradient of the logits, which are a product.
struct Loss {
  explicit Loss(bool kept = false) {
    const ValueId x = p.input("x", {ORR_F32, {1, 9, 5}}), w = p.input("w", {ORR_F32, {1, 5, 11}});
    logits = p.add1("reshape", {p.add1("matmul", {x, w})}, {{"dims", Dims{9, 11}}});
    const ValueId labels = build::iota(p, 9, ORR_I32);
    const ValueId each = p.cast(p.pointwise(ORR_FN_NE, {labels, Operand::number(4)}), ORR_F32);
    const Ids found = p.add("cross_entropy", {logits, labels, each});
    give(p, "loss", build::reduce(p, "sum", found[0], {0}, false));
    p.set_phase(Phase::backward);
    const ValueId dloss = p.pointwise(ORR_FN_MUL, {each, Operand::number(0.125)});
    slope = p.add1("cross_entropy_grad", {dloss, logits, labels, each, found[1]});
    give(p, "dw",
         p.add1("matmul", {p.add1("transpose", {x}, {{"perm", Dims{0, 2, 1}}}),
                           p.add1("reshape", {slope}, {{"dims", Dims{1, 9, 11}}})}));
    if (kept) give(p, "logits", logits);
  }
  // Whether the gradient lies where the logits do.
  bool in_place(const Kinds& kernels) const {
    Machine machine(p, kernels, {});
    const std::vector<Place>& places = machine.plan().places;
    return places[static_cast<size_t>(slope)].storage ==
           places[static_cast<size_t>(logits)].storage;
  }

  Program p;
  ValueId logits = kNone, slope = kNone;
};

TEST(JoinedLosses, WriteTheGradientOverTheLogits) {
  for (const Kinds& kernels : {Kinds{"reference"}, Kinds{"reference", "cpu"}}) {
    const Loss loss;
    const Kinds found = kinds(loss.p, kernels);
    EXPECT_EQ(count(found, "cross_entropy"), 1);
    EXPECT_EQ(count(found, "cross_entropy_grad"), 0);
    EXPECT_TRUE(loss.in_place(kernels));
  }
  expect_equal_bits(Loss().p);
}

TEST(JoinedLosses, LeaveLogitsThatAreRead) {
  const Loss loss(true);
  EXPECT_EQ(count(kinds(loss.p), "cross_entropy_grad"), 0);
  EXPECT_FALSE(loss.in_place({"reference"}));
  expect_equal_bits(loss.p);
}

// The gradient of loss * loss: its slope is known only when the loss is.
TEST(JoinedLosses, StayApartWhereTheSlopeDependsOnTheLoss) {
  Program p;
  const ValueId x = p.input("x", {ORR_F32, {9, 11}}), each = p.input("each", {ORR_F32, {9}});
  const ValueId labels = build::iota(p, 9, ORR_I32);
  const Ids found = p.add("cross_entropy", {x, labels, each});
  give(p, "dx", p.add1("cross_entropy_grad", {found[0], x, labels, each, found[1]}));
  EXPECT_EQ(count(kinds(p), "cross_entropy_grad"), 1);
  expect_equal_bits(p);
}

// How many tensors pointwise launches write.
int64_t written(const Program& p) {
  int64_t n = 0;
  Machine machine(p, {"reference"}, {});
  for (const Launch& l : machine.plan().launches)
    if (l.op.kind == "pointwise") n += static_cast<int64_t>(l.out.size());
  return n;
}

// An activation behind a layer with a bias, and its slope times a gradient.
struct Activation {
  explicit Activation(bool kept = false) {
    const ValueId x = p.input("x", {ORR_F32, {1, 40, 5}}), w = p.input("w", {ORR_F32, {1, 5, 6}});
    const ValueId bias = p.input("bias", {ORR_F32, {6}}), dy = p.input("dy", {ORR_F32, {1, 40, 6}});
    product = p.add1("matmul", {x, w}), sum = p.pointwise(ORR_FN_ADD, {product, bias});
    give(p, "y", p.pointwise(ORR_FN_GELU, {sum}));
    p.set_phase(Phase::backward);
    const ValueId slope = p.pointwise(ORR_FN_GELU_GRAD, {sum});
    // A product, so that both expressions are not one.
    give(p, "dx",
         p.add1("matmul", {p.pointwise(ORR_FN_MUL, {dy, slope}),
                           p.add1("transpose", {w}, {{"perm", Dims{0, 2, 1}}})}));
    if (kept) give(p, "softmax", p.add1("softmax", {sum}));
  }

  Program p;
  ValueId product = kNone, sum = kNone;
};

TEST(Recomputed, IsWhatCostsNothingToReadAgain) {
  EXPECT_EQ(written(Activation().p), 2);  // the activation, and its slope times dy
  expect_equal_bits(Activation().p);
}

TEST(Recomputed, IsNotWhatAnotherOpReads) {
  EXPECT_EQ(written(Activation(true).p), 3);  // the sum as well
  expect_equal_bits(Activation(true).p);
}

// Of two tensors of its size: reading both is no less.
TEST(Recomputed, IsNotASumOfLargeTensors) {
  Program p;
  const ValueId a = p.input("a", {ORR_F32, {40, 6}}), b = p.input("b", {ORR_F32, {40, 6}});
  const ValueId sum = p.pointwise(ORR_FN_ADD, {a, b});
  const ValueId y = p.add1("softmax", {p.pointwise(ORR_FN_GELU, {sum})});
  give(p, "dx", p.pointwise(ORR_FN_MUL, {y, p.pointwise(ORR_FN_GELU_GRAD, {sum})}));
  EXPECT_EQ(written(p), 3);
  expect_equal_bits(p);
}

TEST(JoinedSums, AreThoseWhoseTensorsAreKnown) {
  Program p;
  const ValueId a = p.input("a", {ORR_F32, {6, 5}}), b = p.input("b", {ORR_F32, {2000}});
  p.set_phase(Phase::update);
  const auto squares = [&](ValueId x, const Dims& dims) {
    return build::reduce(p, "sumsq", x, dims, false);
  };
  give(p, "a", squares(a, {0, 1}));
  const ValueId of_b = squares(b, {0});
  give(p, "b", of_b);
  give(p, "late", squares(p.pointwise(ORR_FN_MUL, {b, of_b}), {0}));
  give(p, "rows", squares(a, {1}));
  const Kinds found = kinds(p);
  EXPECT_EQ(count(found, "2 sumsq"), 1);
  EXPECT_EQ(count(found, "reduce"), 2);
  expect_equal_bits(p);
}

// As squares of 16-bit gradients are.
TEST(JoinedSums, AreStoredInF32WhereTheyWouldHaveBeen) {
  Program p;
  const ValueId a = p.cast(p.input("a", {ORR_F32, {6, 5}}), ORR_BF16);
  const ValueId b = p.cast(p.input("b", {ORR_F32, {2000}}), ORR_BF16);
  p.set_phase(Phase::update);
  const auto squares = [&](ValueId x, int64_t end, int32_t dtype) {
    return p.add1("reduce", {x},
                  {{"fn", std::string("sumsq")},
                   {"begin", int64_t{0}},
                   {"end", end},
                   {"dtype", int64_t{dtype}}});
  };
  give(p, "a", squares(a, 2, ORR_F32));
  give(p, "b", squares(b, 1, ORR_F32));
  give(p, "short", p.cast(squares(b, 1, ORR_BF16), ORR_F32));
  const Kinds found = kinds(p);
  EXPECT_EQ(count(found, "2 sumsq"), 1);
  EXPECT_EQ(count(found, "reduce"), 1);
  expect_equal_bits(p);
}

TEST(FirstCasts, AreMadeOnceForAllReaders) {
  auto state = std::make_shared<State>();
  state->name = "w", state->type = {ORR_F32, {5, 4}};
  state->initial = Initial::of_data(HostTensor::make(state->type));
  Program p;
  const ValueId w = p.state_value(state), x = p.input("x", {ORR_F64, {6, 5}});
  const ValueId y = build::matmul(p, x, p.cast(w, ORR_F64));
  give(p, "z", build::matmul(p, y, p.cast(w, ORR_F64), false, true));
  EXPECT_EQ(count(kinds(p), "matmul"), 2);
  EXPECT_EQ(kinds(p)[1], "matmul");  // the second cast stands behind it: nothing is updated
  p.set_phase(Phase::update);
  p.update(w, p.pointwise(ORR_FN_MUL, {w, Operand::number(2)}));
  const Kinds found = kinds(p);
  EXPECT_EQ(Kinds(found.begin(), found.begin() + 3), (Kinds{"pointwise", "matmul", "matmul"}));
}

}  // namespace
}  // namespace program_test
