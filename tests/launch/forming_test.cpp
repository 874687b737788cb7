// SPDX-License-Identifier: Apache-2.0
//
// A world that does not form: the library that forms it never comes back, and the rank still ends
// within its deadlines, with a line that says what is known.
#include "launch/forming.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <cstdlib>

namespace orrery {
namespace {

// What the ranks of several hosts have that were told no place to meet (Store::open).
class NoStore : public Store {
 public:
  void put(const std::string&, const std::string&) override {
    throw Error(ORR_UNAVAILABLE, "there is no place to meet");
  }
  std::string get(const std::string&, int64_t) override {
    throw Error(ORR_UNAVAILABLE, "there is no place to meet");
  }
  bool is_shared() const override { return false; }
  int dead(int) const override { return 0; }
  std::optional<WorkAnswer> ask(int) override { return std::nullopt; }
  void report(const std::string&) override {}
  const std::string& job() const override { return job_; }

 private:
  std::string job_ = "a test";
};

// A store in which rank 1 has put nothing and does not answer.
class Silent : public NoStore {
 public:
  bool is_shared() const override { return true; }
  std::optional<WorkAnswer> ask(int rank) override {
    return rank == 1 ? std::nullopt : std::optional<WorkAnswer>(WorkAnswer{});
  }
};

World two() {
  World world;
  world.rank = 0, world.size = 2;
  return world;
}

template <class S>
void form_for_ever() {
  setenv("ORRERY_DEADLINE", "0.3", 1);
  S store;
  const World world = two();
  form(store, world, [] {
    for (;;) poll(nullptr, 0, -1);
  });
}

TEST(FormingDeathTest, WithoutACommonStoreARankEndsAfterItsDeadlines) {
  EXPECT_EXIT(form_for_ever<NoStore>(), testing::ExitedWithCode(ORR_DEADLINE),
              "error: rank 0 is not through forming the world for 0.9 s: a rank is stopped, or did "
              "not come");
}

TEST(FormingDeathTest, ARankThatDoesNotAnswerIsNamedAfterOneDeadline) {
  EXPECT_EXIT(form_for_ever<Silent>(), testing::ExitedWithCode(ORR_DEADLINE),
              "error: rank 1 has not answered for 0.3 s while the world was forming");
}

}  // namespace
}  // namespace orrery
