// SPDX-License-Identifier: Apache-2.0
//
// Values that vary over an axis on which others are cut: they are never cut over it, a rank's own
// part of what is cut and what is put together of such parts move nothing. Formulas are the oracle;
// what is sent is counted.
#include <gtest/gtest.h>

#include "partition/cut_program.h"
#include "program/build.h"
#include "program/build_comm.h"
#include "together.h"

namespace program_test {
namespace {

using namespace orrery;

constexpr int64_t kSamples = 2, kTime = 8, kWidth = 3, kAll = kSamples * kTime * kWidth;

// A program of samples x [2,8,3], whose time is cut over the axis.
struct OnLine {
  explicit OnLine(int n) : ranks(n) {
    p.set_axes({{"line", n}});
    x = p.batch_input("x", {ORR_F32, {kSamples, kTime, kWidth}});
  }
  // This rank's part [2,8/n,3].
  ValueId own() {
    const ValueId parts = build::reshape(p, x, {kSamples, ranks, kTime / ranks, kWidth});
    const ValueId mine = build::slice_at(p, parts, 1, build::coordinate(p, "line"), 1);
    return build::reshape(p, mine, {kSamples, kTime / ranks, kWidth});
  }
  Together together() const {
    Mesh mesh;
    mesh.world = ranks, mesh.axes = {{"line", ranks, "mine"}};
    Placing& placing = mesh.placed.emplace_back();
    placing.axis = "line", placing.origin = "mine", placing.values[x] = {1, "mine (a.lua:1)"};
    std::vector<Program> programs;
    for (int r = 0; r < ranks; ++r) programs.push_back(cut_program(p, mesh, r).program);
    return Together(std::move(programs));
  }

  int ranks;
  Program p;
  ValueId x;
};

Values counted() {
  Values x;
  for (int64_t i = 0; i < kAll; ++i) x.push_back(static_cast<double>(i));
  return x;
}

// The parts move on by one rank: times move on by a part. Only that, and the result, are sent.
TEST(Varying, OwnPartsOfWhatIsCutMoveNothing) {
  for (int ranks : {1, 2, 4}) {
    OnLine line(ranks);
    const ValueId moved = build::permute(line.p, line.own(), "line", 1);
    give(line.p, "y", build::all_gather(line.p, moved, "line", 1));
    Together together = line.together();
    const Values y = together.step({{"x", counted()}}).at("y");
    for (int64_t i = 0; i < kAll; ++i) {
      const int64_t sample = i / (kTime * kWidth), at = i % (kTime * kWidth);
      const int64_t from = (at + kTime * kWidth - kTime * kWidth / ranks) % (kTime * kWidth);
      EXPECT_EQ(y[static_cast<size_t>(i)], static_cast<double>(sample * kTime * kWidth + from));
    }
    std::map<std::string, double> sent = {{"permute", kAll / ranks},
                                          {"all_gather", (ranks - 1) * kAll / ranks}};
    EXPECT_EQ(together.sent(), sent);
  }
}

// Each rank has all of what varies: x times its coordinate, of which the sum is taken.
TEST(Varying, WhatVariesIsNotCut) {
  for (int ranks : {2, 4}) {
    OnLine line(ranks);
    const ValueId me = line.p.cast(build::coordinate(line.p, "line"), ORR_F32);
    const ValueId mine = build::vary(line.p, line.x, "line");
    const ValueId scaled = line.p.pointwise(ORR_FN_MUL, {mine, me});
    give(line.p, "y", build::all_reduce(line.p, scaled, "line", "sum"));
    const Values y = line.together().step({{"x", counted()}}).at("y");
    for (int64_t i = 0; i < kAll; ++i)
      EXPECT_EQ(y[static_cast<size_t>(i)], static_cast<double>(i * ranks * (ranks - 1) / 2));
  }
}

// An op that is left over wants all of x; what is read is made of parts.
TEST(Varying, WhatNothingReadsIsNotMoved) {
  OnLine line(2);
  build::slice_at(line.p, line.x, 1, line.p.constant(3, ORR_I64), 1);
  give(line.p, "y", line.p.pointwise(ORR_FN_ADD, {line.x, Operand::number(1)}));
  Together together = line.together();
  const Values y = together.step({{"x", counted()}}).at("y");
  for (int64_t i = 0; i < kAll; ++i)
    EXPECT_EQ(y[static_cast<size_t>(i)], static_cast<double>(i + 1));
  EXPECT_EQ(together.sent(), (std::map<std::string, double>{{"all_gather", kAll / 2}}));
}

}  // namespace
}  // namespace program_test
