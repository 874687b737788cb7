// SPDX-License-Identifier: Apache-2.0
//
// What a plan moves: rows of embeddings travel instead of tables where they are few, and nothing is
// packed for, or copied out of, what travels.
#include <gtest/gtest.h>

#include <algorithm>

#include "edit/edit.h"
#include "gpt.h"
#include "lower/lower.h"
#include "stack.h"

namespace program_test {
namespace {

using namespace orrery;

struct Planned {
  Gpt gpt;
  Mesh mesh;
  RankPlan plan;

  Planned(int64_t vocab, bool tied, int ranks, const std::vector<StrategyUse>& stack)
      : gpt(make_gpt({4, 6, 8, 4, 2, vocab, 0.1, 0.5, tied})),
        mesh(applied(gpt.program, stack, ranks)),
        plan(lower({&gpt.program, &mesh, ranks, ranks - 1, {"reference"}})) {}

  int64_t exchanges(const std::string& name, int32_t op) const {
    return std::count_if(plan.exchanges.begin(), plan.exchanges.end(),
                         [&](const Exchange& e) { return e.name == name && e.op == op; });
  }
  // Launches that only move elements, in the update or for it.
  int64_t copies() const {
    return std::count_if(plan.launches.begin(), plan.launches.end(), [](const Launch& l) {
      return l.op.kind == "pointwise" && l.in.size() == 1 && l.op.expr.instrs.size() == 1 &&
             l.out[0].rank > 0;
    });
  }
  const Launch* launch(const std::string& kind) const {
    auto at = std::find_if(plan.launches.begin(), plan.launches.end(), [&](const Launch& l) {
      return l.op.kind == kind && attr_int(l.op.attrs, "rows", 0) > 6;
    });
    return at == plan.launches.end() ? nullptr : &*at;
  }
};

const std::vector<StrategyUse> kData = {shared_batch("gpt.lua:1")};

std::vector<StrategyUse> zero(int64_t stage) {
  return {shared_batch("gpt.lua:1"), {"zero", {{"stage", stage}}, "gpt.lua:2"}};
}

TEST(Traffic, FewRowsTravelInsteadOfATable) {
  for (bool tied : {true, false}) {
    const Planned few(100, tied, 2, kData), many(40, tied, 2, kData);
    EXPECT_EQ(few.exchanges("GPT.tok", ORR_COLL_ALL_GATHER), 2) << "indices and rows";
    EXPECT_EQ(many.exchanges("GPT.tok", ORR_COLL_ALL_GATHER), 0);
    EXPECT_LT(few.plan.bytes_sent(), many.plan.bytes_sent() + 60 * 8 * 4);
  }
}

TEST(Traffic, RowsAreAddedWhereTheOtherGradientLies) {
  for (int ranks : {1, 2}) {
    const Planned tied(100, true, ranks, ranks > 1 ? kData : std::vector<StrategyUse>{});
    const Launch* add = tied.launch("scatter_add");
    ASSERT_TRUE(add);
    ASSERT_EQ(add->in.size(), 3u) << ranks << " ranks";
    EXPECT_EQ(add->in_at[2].storage, add->out_at[0].storage);
    EXPECT_EQ(add->in_at[2].offset, add->out_at[0].offset);
  }
}

TEST(Traffic, PiecesOfWeightsAreNeitherPackedNorCopied) {
  for (int64_t stage : {1, 2, 3})
    for (int ranks : {2, 3}) {
      const Planned cut(10, true, ranks, zero(stage)), whole(10, true, ranks, kData);
      EXPECT_FALSE(cut.plan.local.flat_buffers.empty());
      EXPECT_LE(cut.copies(), whole.copies()) << "stage " << stage << " on " << ranks << " ranks";
    }
}

}  // namespace
}  // namespace program_test
