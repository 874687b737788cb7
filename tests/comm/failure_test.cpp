// SPDX-License-Identifier: Apache-2.0
//
// What survivors say when a peer dies, freezes, comes late, posts something else or gives up.
#include <gtest/gtest.h>
#include <orrery/types.h>
#include <signal.h>

#include <filesystem>

#include "settings.h"

namespace comm_suite {
namespace {

using ranks::count;

// Shared memory with a name of ours.
int leftovers() {
  int n = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    n += entry.path().filename().string().find("orrery") != std::string::npos;
  return n;
}

// Whether MPICH's mpiexec has lost a process before it knew how that had ended: it says so, and its
// code is 1 in place of the process's own.
bool lost_the_end(const Setting& setting, const ranks::Outcome& outcome) {
  return setting.launcher == "mpiexec.mpich" && outcome.code == 1 &&
         count(outcome.output, "Hangup (signal 1)");
}

// MPICH's mpiexec kills the others in the same moment: it may be the last to speak, and names no
// rank.
TEST_P(Failing, DeadPeerIsNamedBySurvivors) {
  const int before = leftovers();
  for (int n : {2, 3, 4}) {
    const auto outcome = run(GetParam(), n, "falls", "9 100000", {"ORRERY_DEADLINE=20"});
    const std::string culprit = "rank " + std::to_string(n - 1);
    const std::string words =
        culprit + " died" + (all_speak() ? " in all_reduce 'bucket 3' (train.lua:12)" : "");
    const bool silenced =
        GetParam().launcher == "mpiexec.mpich" && count(outcome.output, "Killed (signal 9)");
    EXPECT_GE(count(outcome.output, words), silenced ? 0 : speakers(n - 1)) << outcome.output;
    EXPECT_NE(outcome.code, 0);
    EXPECT_LT(outcome.seconds, patience());
    if (!all_speak()) continue;
    EXPECT_EQ(outcome.code, 128 + 9) << outcome.output;
    EXPECT_NE(outcome.output.find("orrery: " + culprit + " was killed by signal 9"),
              std::string::npos);
  }
  EXPECT_EQ(leftovers(), before);
}

TEST_P(Failing, FrozenPeerIsNamedBySurvivors) {
  const auto outcome = run(GetParam(), 3, "falls", std::to_string(SIGSTOP) + " 100", deadline("1"));
  // MPICH's mpiexec has to kill the frozen one, and may take that for the job's end.
  const bool killed = GetParam().launcher == "mpiexec.mpich" && outcome.code == SIGKILL;
  EXPECT_TRUE(outcome.code == ORR_DEADLINE || killed || lost_the_end(GetParam(), outcome))
      << outcome.code << ": " << outcome.output;
  EXPECT_GE(count(outcome.output, "rank 2 has not answered for 1 s in all_reduce 'bucket 3'"),
            speakers(2))
      << outcome.output;
  EXPECT_LT(outcome.seconds, 6 + patience());
}

// Some wait for it, others for those who do, each in its own way.
TEST_P(Failing, PeerThatFreezesInALargeTreeIsNamedBySurvivors) {
  const auto outcome =
      run(GetParam(), 4, "falls in a tree", std::to_string(SIGSTOP) + " 100000", deadline("1"));
  // The launcher, which has the same deadline, may have ended it before they look.
  const int silent = count(outcome.output,
                           "rank 3 has not answered for 1 s in tree_all_reduce 'bucket 3'"),
            ended = count(outcome.output, "rank 3 died in tree_all_reduce 'bucket 3'");
  EXPECT_GE(silent + ended, speakers(3)) << outcome.output;
  EXPECT_LT(outcome.seconds, 6 + patience());
}

TEST_P(Failing, PeerThatDiesInALargeTreeIsNamedBySurvivors) {
  const auto outcome = run(GetParam(), 4, "falls in a tree", "9 100000", {"ORRERY_DEADLINE=20"});
  const bool silenced =
      GetParam().launcher == "mpiexec.mpich" && count(outcome.output, "Killed (signal 9)");
  EXPECT_GE(count(outcome.output, "rank 3 died"), silenced ? 0 : speakers(3)) << outcome.output;
  EXPECT_LT(outcome.seconds, patience());
}

TEST_P(Failing, BlamePassesThroughThoseWhoWait) {
  const auto outcome = run(GetParam(), 3, "chain", "", deadline("1"));
  EXPECT_GE(count(outcome.output, "rank 2 has not answered for 1 s in recv 'activation'"),
            speakers(2))
      << outcome.output;
}

TEST_P(Failing, DeadlockEndsAtTheDeadline) {
  const auto outcome = run(GetParam(), 2, "embrace", "", deadline("1"));
  EXPECT_TRUE(outcome.code == ORR_DEADLINE || lost_the_end(GetParam(), outcome)) << outcome.output;
  EXPECT_GE(count(outcome.output, "wait for each other since 1 s in recv 'activation'"),
            speakers(2))
      << outcome.output;
  EXPECT_LT(outcome.seconds, 2 + patience());
}

TEST_P(Failing, LatePeerBelowTheDeadlineIsNoFailure) {
  const auto outcome = run(GetParam(), 3, "late", "600", {"ORRERY_DEADLINE=5"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  const auto strict = run(GetParam(), 3, "late", "3000", operation_deadline("0.2"));
  EXPECT_GE(count(strict.output, "rank 1 has not answered for 0.2 s in all_reduce 'late'"),
            speakers(2))
      << strict.output;
}

TEST_P(Failing, DisagreementNamesBothSides) {
  const std::string one = "rank 0 all_reduce 'gradients' (train.lua:12) of 100000 f32";
  const std::pair<const char*, const char*> cases[] = {
      {"count", "rank 1 all_reduce 'gradients' (train.lua:12) of 50000 f32"},
      {"name", "rank 1 all_reduce 'weights' (train.lua:12) of 100000 f32"},
      {"redop", "counts, leaves or the reduction differ"},
      {"operation", "rank 1 broadcast 'gradients' (train.lua:99) of 100000 f32, root 1"}};
  for (const auto& [how, other] : cases) {
    const auto outcome = run(GetParam(), 3, "otherwise", how, {"ORRERY_DEADLINE=10"});
    EXPECT_EQ(all_speak() ? outcome.code : outcome.code != 0, 1) << outcome.output;
    EXPECT_GE(count(outcome.output, one), speakers(3)) << outcome.output;
    EXPECT_GE(count(outcome.output, other), speakers(3)) << outcome.output;
    EXPECT_LT(outcome.seconds, patience());
  }
}

TEST_P(Failing, UnequalEndsOfAMessageAreNamed) {
  const auto outcome = run(GetParam(), 2, "unequal", "", {"ORRERY_DEADLINE=10"});
  EXPECT_GE(count(outcome.output,
                  "rank 0 sends 5 f32 'logits' to rank 1, which receives 4 f32 'activation'"),
            speakers(2))
      << outcome.output;
}

TEST_P(Failing, AbortReachesPeersInFlight) {
  const auto outcome = run(GetParam(), 3, "gives up", "", {"ORRERY_DEADLINE=10"});
  EXPECT_GE(count(outcome.output, "rank 0 aborted: loss is not finite"), speakers(3))
      << outcome.output;
  // MPICH's mpiexec kills the others when the first has ended, and may take that for the job's end.
  const bool killed = GetParam().launcher == "mpiexec.mpich" && outcome.code == SIGKILL;
  EXPECT_TRUE(outcome.code == ORR_RETRY || killed) << outcome.code << ": " << outcome.output;
  EXPECT_LT(outcome.seconds, patience());
}

TEST_P(BesidesTheJudge, InvalidDescriptorsAreRefusedAndHarmless) {
  const auto outcome = run(GetParam(), 2, "refused", "", {"ORRERY_DEADLINE=10"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
}

}  // namespace
}  // namespace comm_suite
