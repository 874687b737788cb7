// SPDX-License-Identifier: Apache-2.0
//
// Layouts: what they say, and that equal ones are one.
#include "program/layout.h"

#include <gtest/gtest.h>

namespace {

using namespace orrery;

TEST(Layout, SaysWhatIsNotWhole) {
  EXPECT_EQ(to_string(Layout()), "whole");
  const Layout rows = Layout().with_batch(Batch::sharded, 0);
  const Layout both = rows.with("tensor", Placement::along(1, {4}));
  EXPECT_EQ(to_string(both), "batch split dim 1, tensor split dim 2");
  EXPECT_EQ(to_string(both.with("tensor", Placement::along(1, {4, 2, 2}))),
            "batch split dim 1, tensor split dim 2 of 4 2 2");
  EXPECT_EQ(to_string(Layout().with("tensor", Placement::summand()).with_varying("replica")),
            "tensor partial, varies over replica");
  EXPECT_EQ(to_string(Layout().with("pipe", Placement::of_one(3))), "pipe at 3");
}

TEST(Layout, EqualOnesAreOne) {
  const Layout a = Layout().with("x", Placement::along(0, {6})).with_batch(Batch::partial);
  const Layout b = Layout().with_batch(Batch::partial).with("x", Placement::along(0, {6}));
  EXPECT_TRUE(a == b);
  EXPECT_FALSE(a == a.with("x", Placement::along(0, {2, 4})));
  EXPECT_TRUE(a.without("x").with_batch(Batch::none) == Layout());
  EXPECT_EQ(a.batch_dim(), kNone);
}

// The axes cut one after another: the second one cuts what the first has left.
TEST(Layout, TheWholeIsKnownFromAPart) {
  const Layout layout =
      Layout().with("a", Placement::along(0, {8, 4})).with("b", Placement::along(0, {4, 2}));
  EXPECT_EQ(whole_type({ORR_F32, {3, 5}}, layout).dims, (Dims{12, 5}));
}

}  // namespace
