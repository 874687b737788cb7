// SPDX-License-Identifier: Apache-2.0
//
// A plugin that ends the process, or throws, is named with its function, and the code is not 0.
#include <signal.h>
#include <stdlib.h>

#include "fixture.h"
#include "plugin/host.h"
#include "plugin/registry.h"
#include "run/thread_pool.h"

namespace orrery {
namespace {

class SuddenEnds : public PluginDirectory {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "fast");
    PluginDirectory::SetUp();
    ThreadPool::get();  // as a run has it before it loads observers
    copy("orrery-test-faulty.so", "a.so");
    registry_.add(dir_);
  }
  void TearDown() override {
    unsetenv("ORRERY_TEST_FAULT");
    PluginDirectory::TearDown();
  }

  // Lets it begin a run and do what it should not.
  void start(const char* fault) {
    setenv("ORRERY_TEST_FAULT", fault, 1);
    const orr_observer_api& observer = registry_.observer("faulty");
    const orr_observer_config config{sizeof config, 0, 1, "", 0, "", 0};
    check(observer.start(observer.self, &config));
  }

  Registry registry_;
};

TEST_F(SuddenEnds, AnExitIsNoSuccess) {
  EXPECT_EXIT(start("exit"), testing::ExitedWithCode(ORR_FAILED),
              "observer 'faulty' \\(/.*a.so\\) has called exit\\(\\) in its 'start': a plugin");
}

TEST_F(SuddenEnds, AThreadOfThePoolIsWhereItsCallerIs) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process of its own, with its threads
  EXPECT_EXIT(
      {
        ThreadPool::get().configure(2);
        start("exit in a thread");
      },
      testing::ExitedWithCode(ORR_FAILED), "observer 'faulty' .* has called exit");
}

TEST_F(SuddenEnds, ACrashKeepsItsSignal) {
  EXPECT_EXIT(start("abort"), testing::KilledBySignal(SIGABRT),
              "observer 'faulty' \\(/.*a.so\\) crashed in its 'start': SIGABRT");
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // theirs is the report of this
  EXPECT_EXIT(start("segv"), testing::KilledBySignal(SIGSEGV),
              "observer 'faulty' \\(/.*a.so\\) crashed in its 'start': SIGSEGV");
#endif
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(SuddenEnds, AFullStackIsACrashLikeOthers) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(start("recursion"), testing::KilledBySignal(SIGSEGV),
              "observer 'faulty' \\(/.*a.so\\) crashed in its 'start': SIGSEGV");
  EXPECT_EXIT(
      {
        ThreadPool::get().configure(2);
        start("recursion in a thread");
      },
      testing::KilledBySignal(SIGSEGV), "observer 'faulty' .* crashed in its 'start': SIGSEGV");
}
#endif

TEST_F(SuddenEnds, WhatIsThrownBecomesAStatus) {
  for (const char* fault : {"throw", "throw 7"}) {
    const std::string text = error_of(ORR_FAILED, [&] { start(fault); });
    EXPECT_NE(text.find("observer 'faulty'"), std::string::npos) << text;
    EXPECT_NE(text.find("threw in its 'start'"), std::string::npos) << text;
  }
  const std::string text = error_of(ORR_FAILED, [&] { start("throw 7 guarded"); });
  EXPECT_NE(text.find("something that is no std::exception"), std::string::npos) << text;
}

TEST_F(SuddenEnds, OthersAreNotBlamed) {
  start("nothing");
  EXPECT_EXIT(std::exit(3), testing::ExitedWithCode(3), "^$");
}

}  // namespace
}  // namespace orrery
