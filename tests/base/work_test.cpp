// SPDX-License-Identifier: Apache-2.0
//
// What a rank answers that it is doing.
#include "base/work.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

// The answer follows "rank 1 is": a call's name alone would read "it is time for 0 s".
TEST(Work, CallsOfTheScriptAreSaidToBeCalls) {
  const Work call("time", Work::of_script);
  EXPECT_EQ(current_work().text, "in a call of time for 0 s");
  EXPECT_EQ(current_work().deadlines, Work::of_script);
  {
    const Work inner("saving a checkpoint", Work::of_engine);
    EXPECT_EQ(current_work().text, "saving a checkpoint for 0 s");
  }
  EXPECT_EQ(current_work().text, "in a call of time for 0 s");
  note_plugin("in 'launch' of kernel 'x' for 30 s");
  EXPECT_EQ(current_work().text, "in 'launch' of kernel 'x' for 30 s, in a call of time for 0 s");
  EXPECT_EQ(current_work().deadlines, Work::of_script);
  EXPECT_EQ(main_work().text, "in a call of time for 0 s");
  note_plugin("");
  EXPECT_EQ(current_work().text, "in a call of time for 0 s");
}

}  // namespace
}  // namespace orrery
