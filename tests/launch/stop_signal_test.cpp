// SPDX-License-Identifier: Apache-2.0
//
// Which signals are one stop and which are a second one, and what a rank makes of each.
#include "launch/stop_signal.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

namespace orrery {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begun) {
  return std::chrono::duration<double>(Clock::now() - begun).count();
}

TEST(StopCounter, RepetitionsWithinASecondAreOneStop) {
  StopCounter stops;
  const Clock::time_point begun = Clock::now();
  EXPECT_EQ(stops.take(SIGTERM, false), StopCounter::first);
  EXPECT_EQ(stops.take(SIGUSR1, false), StopCounter::first);
  while (stops.take(SIGTERM, false) == StopCounter::repeated) EXPECT_LT(seconds_since(begun), 20);
  EXPECT_GE(seconds_since(begun), 1.0);
  EXPECT_EQ(stops.take(SIGTERM, true), StopCounter::repeated) << "a copy of the launcher's";
}

// Runs `body` in a child that watches the signals, and returns the signal that has ended it.
template <class F>
int ended_by(F&& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    watch_stop_signals();
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST(StopSignal, ASecondOneEndsTheProcess) {
  for (int signal : {SIGTERM, SIGUSR1}) {
    EXPECT_EQ(ended_by([&] {
                raise(signal);
                raise(signal);
                if (stop_signal() != signal) _exit(1);
              }),
              0);
    const Clock::time_point begun = Clock::now();
    EXPECT_EQ(ended_by([&] {
                for (;;) raise(signal);
              }),
              signal);
    EXPECT_GE(seconds_since(begun), 1.0);
  }
}

// What a library may do when it forms the world, as MPICH does.
TEST(StopSignal, AreKeptWhileALibraryTakesThem) {
  EXPECT_EQ(ended_by([] {
              {
                const StopSignalsKept kept;
                signal(SIGTERM, SIG_IGN);
                raise(SIGUSR1);
                signal(SIGUSR1, [](int) {});
              }
              if (stop_signal() != SIGUSR1) _exit(1);
              raise(SIGTERM);
              if (stop_signal() != SIGTERM) _exit(1);
            }),
            0);
}

TEST(StopSignal, AreTakenBackAtTheNextStep) {
  EXPECT_EQ(ended_by([] {
              signal(SIGTERM, SIG_IGN);
              watch_stop_signals();
              raise(SIGTERM);
              if (stop_signal() != SIGTERM) _exit(1);
            }),
            0);
}

}  // namespace
}  // namespace orrery
