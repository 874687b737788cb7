// SPDX-License-Identifier: Apache-2.0
//
// One process at a time saves to a directory: another one is refused as long as the first may live,
// and not when it has ended or its job has given it up.
#include "store/writer_lock.h"

#include <gmock/gmock.h>
#include <sys/wait.h>

#include <csignal>

#include "faults.h"
#include "fixture.h"

namespace orrery {
namespace {

using testing::HasSubstr;

// Another process that has saved, and then waits for a byte before it saves again.
class Other {
 public:
  explicit Other(const std::function<void()>& save) {
    if (::pipe(told_) != 0 || ::pipe(done_) != 0) return;
    pid_ = ::fork();
    if (pid_ > 0) {
      EXPECT_EQ(next(), "");
      return;
    }
    for (char byte = 'x'; byte;) {
      std::string error;
      try {
        save();
      } catch (const Error& e) {
        error = e.what();
      }
      error += '\0';
      if (::write(done_[1], error.data(), error.size()) < 0 || ::read(told_[0], &byte, 1) != 1)
        ::_exit(1);
    }
  }
  ~Other() { end(); }

  pid_t pid() const { return pid_; }
  std::string save_again() {
    EXPECT_EQ(::write(told_[1], "x", 1), 1);
    return next();
  }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    for (int fd : {told_[0], told_[1], done_[0], done_[1]}) ::close(fd);
    pid_ = 0;
  }

 private:
  std::string next() {  // the error of its last save
    std::string text;
    for (char byte; ::read(done_[0], &byte, 1) == 1 && byte;) text += byte;
    return text;
  }

  int told_[2], done_[2];
  pid_t pid_ = 0;
};

class WriterLock : public StoreTest {
 protected:
  ~WriterLock() override { faults::no_locks(false), writer_job() = {}; }
  void save(int64_t step) {
    save_checkpoint(path("ck"), facts_of_step(step), small_tensors(static_cast<unsigned>(step)));
  }
  int64_t saved() { return load_checkpoint(path("ck")).facts().step; }
  // As if the owner were on another host.
  void move_owner_away() {
    std::string text = slurp(path("ck/checkpoint.lock"));
    const size_t at = text.find("boot ") + 5;
    spill(path("ck/checkpoint.lock"), text.replace(at, text.find('\n', at) - at, "another"));
  }
};

TEST_F(WriterLock, EndsWithItsOwner) {
  Other other([&] { save(2); });
  EXPECT_THAT(error_of([&] { save(3); }),
              HasSubstr(fmt::format("process {} on host", other.pid())));
  EXPECT_EQ(saved(), 2);
  other.end();
  save(3);
  EXPECT_EQ(saved(), 3);
  // As by a host whose locks this one does not see.
  spill(path("ck/checkpoint.lock"), "process 4711\nhost far\nboot b\nstart 1\n");
  EXPECT_THAT(error_of([&] { save(4); }),
              HasSubstr("process 4711 on host far has begun to save there, too"));
  EXPECT_EQ(saved(), 3);
}

TEST_F(WriterLock, OfAStartThatItsJobHasGivenUpIsTaken) {
  for (bool none : {false, true}) {
    SCOPED_TRACE(none);
    faults::no_locks(none);
    writer_job() = {"job-1-a", 1};
    Other other([&] { save(2); });
    for (const WriterJob& stranger : {WriterJob{}, {"job-1-a", 1}, {"job-2-b", 5}}) {
      writer_job() = stranger;
      EXPECT_THAT(error_of([&] { save(3); }), HasSubstr(std::to_string(other.pid())));
    }
    EXPECT_EQ(saved(), 2);
    writer_job() = {"job-1-a", 2};
    save(3);
    // The earlier one was only asleep.
    EXPECT_THAT(other.save_again(), HasSubstr("has begun to save there, too"));
    EXPECT_EQ(saved(), 3);
    save(4);
    EXPECT_EQ(saved(), 4);
    drop_writer_lock(path("ck"));
  }
}

TEST_F(WriterLock, WithoutLocksIsALease) {
  faults::no_locks(true);
  Other other([&] { save(2); });
  EXPECT_THAT(error_of([&] { save(3); }), HasSubstr("saves there, if it is still alive"));
  move_owner_away();  // it renews its lease
  EXPECT_THAT(error_of([&] { save(3); }), HasSubstr("saves there, if it is still alive"));
  EXPECT_EQ(saved(), 2);
  other.end();
  save(3);
  EXPECT_EQ(saved(), 3);
  drop_writer_lock(path("ck"));
  spill(path("ck/checkpoint.lock"), "process 4711\nhost far\nboot b\nstart 1\n");
  EXPECT_THAT(error_of([&] { save(4); }), HasSubstr("process 4711 on host far saves there, if"));
}

}  // namespace
}  // namespace orrery
