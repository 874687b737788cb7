// SPDX-License-Identifier: Apache-2.0
//
// A save that dies, or fails, at any of its calls leaves the old checkpoint or the new one.
#include <gmock/gmock.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <array>
#include <csignal>
#include <random>
#include <regex>
#include <thread>

#include "faults.h"
#include "fixture.h"
#include "store/writer_lock.h"

namespace orrery {
namespace {

using testing::HasSubstr;

class Crash : public StoreTest {
 protected:
  ~Crash() override { faults::clear(); }

  void save(unsigned which) {
    save_checkpoint(path("ck"), facts_of_step(which), small_tensors(which), 2);
  }

  // Loads, and says which of the two checkpoints it is.
  int which() {
    const Checkpoint loaded = load_checkpoint(path("ck"));
    auto step = static_cast<unsigned>(loaded.facts().step);
    EXPECT_TRUE(holds(loaded, small_tensors(step)));
    return static_cast<int>(step);
  }

  void forget() {
    drop_writer_lock(path("ck"));
    std::filesystem::remove_all(path("ck"));
  }

  int calls_of_a_save() {
    faults::clear();
    save(0);
    return faults::calls();
  }
};

// The wait status of a child that runs `body` and then exits with 0, or 1 if it threw.
int status_of_child(const std::function<void()>& body) {
  pid_t child = ::fork();
  if (child == 0) {
    try {
      body();
    } catch (...) {
      ::_exit(1);
    }
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

TEST_F(Crash, KilledAtEveryCallOfASave) {
  save(1);
  const int calls = calls_of_a_save();
  ASSERT_GT(calls, 12);
  int old_ones = 0;
  for (int call = 1; call <= calls; ++call) {
    SCOPED_TRACE(call);
    save(1);
    int status = status_of_child([&] { faults::kill_at(call), save(2); });
    ASSERT_TRUE(WIFSIGNALED(status));
    old_ones += which() == 1;
  }
  EXPECT_GT(old_ones, 0);
  EXPECT_LT(old_ones, calls);
}

TEST_F(Crash, KilledAtEveryCallOfTheFirstSave) {
  const int calls = calls_of_a_save();
  int none = 0;
  for (int call = 1; call < calls; ++call) {
    SCOPED_TRACE(call);
    forget();
    ASSERT_TRUE(WIFSIGNALED(status_of_child([&] { faults::kill_at(call), save(2); })));
    if (std::filesystem::exists(path("ck/checkpoint.json"))) {
      EXPECT_EQ(which(), 2);
    } else {
      ++none;
    }
  }
  EXPECT_GT(none, 0);
}

TEST_F(Crash, FailedAtEveryCallOfASave) {
  save(1);
  const int calls = calls_of_a_save();
  int failures = 0;
  for (int error : {EIO, ENOSPC}) {
    for (int call = 1; call <= calls; ++call) {
      SCOPED_TRACE(call);
      save(1);
      std::string message;
      faults::fail_at(call, error);
      try {
        save(2);
      } catch (const Error& e) {
        message = e.what();
      }
      EXPECT_EQ(faults::fsyncs_after_failure(), 0);
      faults::clear();
      EXPECT_EQ(which(), message.empty() ? 2 : 1);
      if (!message.empty()) {
        ++failures;
        EXPECT_THAT(message, HasSubstr(std::strerror(error)));
        EXPECT_THAT(message, HasSubstr("save elsewhere"));
        EXPECT_EQ(leftovers(), 0);
      }
    }
  }
  EXPECT_GT(failures, 20);
}

// What a power cut asks for and no kill can show: all is on the disk before the rename, and the
// rename before the old one goes.
TEST_F(Crash, SyncsEveryFileAndDirectoryInOrder) {
  save(1);
  faults::clear();
  save(2);
  EXPECT_TRUE(std::regex_match(faults::trace(), std::regex("mw+ffrf((w+f)+f){2}w+ffrfu+")))
      << faults::trace();
}

TEST_F(Crash, ShortAndInterruptedWritesAreCompleted) {
  faults::short_writes();
  save(1);
  EXPECT_GT(faults::calls(), 100);
  EXPECT_EQ(which(), 1);
}

// Killed from outside at a random moment: also between the calls, and inside the kernel.
TEST_F(Crash, KilledAtRandomMoments) {
  auto contents = [](unsigned which) {
    return std::vector<NamedTensor>{{"w", filled({ORR_F32, {400, 256}}, which)},
                                    {"optim.w.m", filled({ORR_F32, {400, 256}}, which + 2)}};
  };
  const std::array<std::vector<NamedTensor>, 2> both = {contents(0), contents(1)};
  save_checkpoint(path("ck"), facts_of_step(1), both[1]);
  std::mt19937 random(11);
  for (int round = 0; round < 20; ++round) {
    int started[2];
    ASSERT_EQ(::pipe(started), 0);
    pid_t child = ::fork();
    if (child == 0) {
      for (unsigned i = 0;; ++i) {
        save_checkpoint(path("ck"), facts_of_step(i % 2), both[i % 2]);
        if (i == 0) ::close(started[1]);
      }
    }
    ::close(started[1]);
    char byte;
    EXPECT_EQ(::read(started[0], &byte, 1), 0);  // the end of the pipe: one save is done
    ::close(started[0]);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 40'000));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const Checkpoint loaded = load_checkpoint(path("ck"));
    ASSERT_TRUE(holds(loaded, both.at(static_cast<size_t>(loaded.facts().step))));
  }
}

TEST_F(Crash, AFileSizeLimitKeepsTheOldOne) {
  save(1);
  int status = status_of_child([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit limit = {64 << 10, 64 << 10};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    std::string message = error_of([&] {
      save_checkpoint(path("ck"), {}, {{"w", filled({ORR_U8, {1 << 20}}, 3)}});
    });
    if (message.find(
            "/2/shard-00001-model-00001-of-00001.safetensors' cannot be written: File too large") ==
        message.npos)
      ::_exit(2);
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(which(), 1);
  EXPECT_EQ(leftovers(), 0);
}

TEST_F(Crash, AFullDiskKeepsTheOldOne) {
  std::filesystem::create_directory(path("disk"));
  if (::mount("tmpfs", path("disk").c_str(), "tmpfs", 0, "size=1m") != 0)
    GTEST_SKIP() << "mounting a small tmpfs: " << std::strerror(errno);
  struct Unmount {
    std::string place;
    ~Unmount() { ::umount2(place.c_str(), MNT_DETACH); }
  } unmount{path("disk")};
  auto save_bytes = [&](int64_t bytes, unsigned salt) {
    save_checkpoint(path("disk/ck"), {}, {{"w", filled({ORR_U8, {bytes}}, salt)}});
  };
  save_bytes(1000, 1);
  EXPECT_THAT(error_of([&] { save_bytes(2 << 20, 2); }),
              HasSubstr("/2/shard-00001-model-00001-of-00001.safetensors' cannot be written: No "
                        "space left on device; free some"));
  EXPECT_TRUE(holds(load_checkpoint(path("disk/ck")), {{"w", filled({ORR_U8, {1000}}, 1)}}));
  save_bytes(600'000, 3);  // needs what the failed save had taken
  EXPECT_TRUE(holds(load_checkpoint(path("disk/ck")), {{"w", filled({ORR_U8, {600'000}}, 3)}}));
}

}  // namespace
}  // namespace orrery
