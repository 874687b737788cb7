// SPDX-License-Identifier: Apache-2.0
//
// The launcher: exit codes, whose error is named, signals, lines, and that nothing is left behind.
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/error.h"
#include "base/machine.h"
#include "launch/affinity.h"
#include "launch/launch.h"
#include "launch/store.h"
#include "ranks.h"

namespace orrery {
namespace {

using ranks::count;

// Argument: the code of each rank, "0,3,0"; 9 dies by signal 9; a report goes with the others.
const ranks::Body codes("codes", [](const std::string& list) {
  const World world = detect();
  auto store = Store::open(world);
  const int code = std::atoi(list.c_str() + 2 * world.rank);
  if (code == 9) raise(SIGKILL);
  if (code != 0) store->report("rank " + std::to_string(world.rank) + " has its reasons");
  return code;
});

TEST(Launch, ExitCodeIsThatOfTheFailingRank) {
  EXPECT_EQ(ranks::run(3, "codes", "0,0,0").code, 0);
  const auto failed = ranks::run(3, "codes", "0,3,0");
  EXPECT_EQ(failed.code, 3);
  EXPECT_NE(failed.output.find("orrery: rank 1 failed with exit code 3: rank 1 has its reasons"),
            std::string::npos)
      << failed.output;
  const auto killed = ranks::run(2, "codes", "0,9");
  EXPECT_EQ(killed.code, 137);
  EXPECT_NE(killed.output.find("orrery: rank 1 was killed by signal 9"), std::string::npos);
}

const ranks::Body leave("leave", [](const std::string&) {
  const World world = detect();
  const std::string folder =
      "/dev/shm/left-" + Store::open(world)->job() + "-" + std::to_string(world.rank);
  std::filesystem::create_directory(folder);
  std::ofstream(folder + "/file") << "x";
  std::printf("%s\n", folder.c_str());
  std::fflush(stdout);
  return raise(SIGKILL);
});

TEST(Launch, TakesAlongWhatKilledRanksLeaveInSharedMemory) {
  for (const int n : {1, 2}) {
    const auto killed = ranks::run(n, "leave");
    EXPECT_EQ(count(killed.output, "/dev/shm/left-job-"), n) << killed.output;
  }
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    EXPECT_FALSE(entry.path().filename().string().starts_with("left-job-")) << entry.path();
}

// Rank 0 hears of rank 1's trouble first and ends before it: rank 1 is still the cause.
const ranks::Body origin("origin", [](const std::string&) {
  const World world = detect();
  auto store = Store::open(world);
  if (world.rank == 0) {
    store->report("rank 1 died");
    store->put("go", "");
    return int{ORR_RETRY};
  }
  store->get("go", int64_t{5} * 1000000000);
  store->report("label 99 is outside of the 10 classes");
  return 1;
});

TEST(Launch, TheCauseIsNamedNotItsConsequence) {
  const auto outcome = ranks::run(2, "origin", "");
  EXPECT_EQ(outcome.code, 1) << outcome.output;
  EXPECT_NE(outcome.output.find("orrery: rank 1 failed with exit code 1: label 99"),
            std::string::npos)
      << outcome.output;
}

const ranks::Body speaks("speaks", [](const std::string&) {
  const World world = detect();
  std::printf("one of %s\ntwo", std::getenv("WORLD_SIZE"));
  std::fflush(stdout);
  std::fprintf(stderr, "%s", world.rank == 0 ? "\n" : "complaint\n");
  return 0;
});

TEST(Launch, LinesOfOtherRanksCarryTheirRank) {
  const auto outcome = ranks::run(2, "speaks");
  EXPECT_NE(outcome.output.find("[rank 1] one of 2\n"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("[rank 1] two\n"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("[rank 1] complaint\n"), std::string::npos) << outcome.output;
  EXPECT_EQ(count(outcome.output, "[rank 0]"), 0) << outcome.output;
}

// Says that it is ready, then waits for a signal that never comes by itself.
const ranks::Body waits("waits", [](const std::string&) {
  auto store = Store::open(detect());
  std::printf("pid %d\n", getpid());
  std::fflush(stdout);
  for (;;) pause();
  return 0;
});

// The process ids that the ranks have printed, once there are n of them.
std::set<int> wait_for_pids(const ranks::Running& job, int n) {
  std::set<int> pids;
  while (static_cast<int>(pids.size()) < n) {
    char text[4096];
    const ssize_t got = pread(job.output_fd, text, sizeof text - 1, 0);
    text[std::max<ssize_t>(got, 0)] = 0;
    for (const char* at = text; (at = std::strstr(at, "pid ")) && std::strchr(at, '\n'); at += 4)
      pids.insert(std::atoi(at + 4));
    sched_yield();
  }
  return pids;
}

bool ends_within(int pidfd, int ms) {
  pollfd fd{pidfd, POLLIN, 0};
  return pidfd < 0 || poll(&fd, 1, ms) == 1;
}

TEST(Launch, NoRankOutlivesAKilledLauncher) {
  const ranks::Running job = ranks::start(3, "waits");
  std::vector<int> fds;
  for (int pid : wait_for_pids(job, 3))
    fds.push_back(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  kill(job.pid, SIGKILL);
  for (int fd : fds) {
    EXPECT_TRUE(ends_within(fd, 5000));
    close(fd);
  }
  EXPECT_EQ(ranks::finish(job).code, 137);
}

TEST(Launch, SignalsArePassedOn) {
  for (int signal : {SIGINT, SIGTERM}) {
    const ranks::Running job = ranks::start(2, "waits");
    wait_for_pids(job, 2);
    kill(job.pid, signal);
    const auto outcome = ranks::finish(job);
    EXPECT_EQ(outcome.code, 128 + signal) << outcome.output;
  }
}

// Ignores the first request to stop.
const ranks::Body stubborn("stubborn", [](const std::string&) {
  signal(SIGINT, [](int) { (void)!write(1, "heard\n", 6); });
  std::printf("pid %d\n", getpid());
  std::fflush(stdout);
  for (;;) pause();
  return 0;
});

TEST(Launch, AnInterruptASecondLaterKills) {
  const ranks::Running job = ranks::start(2, "stubborn");
  wait_for_pids(job, 2);
  const auto begun = std::chrono::steady_clock::now();
  for (siginfo_t ended{}; ended.si_pid == 0; sched_yield()) {
    kill(job.pid, SIGINT);
    waitid(P_PID, static_cast<id_t>(job.pid), &ended, WEXITED | WNOHANG | WNOWAIT);
  }
  EXPECT_GE(std::chrono::steady_clock::now() - begun, std::chrono::seconds(1));
  const auto outcome = ranks::finish(job);
  EXPECT_EQ(outcome.code, 137);
  EXPECT_EQ(count(outcome.output, "heard"), 2) << "what comes within a second is passed on once";
}

// Runs a shell command as the only rank of a job.
int launch_shell(const std::string& command) {
  LaunchOptions options;
  options.program = "/bin/sh", options.argv = {"sh", "-c", command};
  return launch(options);
}

TEST(Launch, ASignalBehindTheLastRankDoesNotReplaceTheCode) {
  const pid_t pid = fork();
  if (pid == 0) {
    const int code = launch_shell("kill -TERM $PPID; exec sleep 100");
    for (int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) raise(signal);
    _exit(code);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 128 + SIGTERM);
}

TEST(Launch, AJobThatNobodyStopsLeavesSignalsAsTheyWere) {
  sigset_t before, after;
  sigprocmask(SIG_SETMASK, nullptr, &before);
  EXPECT_EQ(launch_shell("exit 0"), 0);
  sigprocmask(SIG_SETMASK, nullptr, &after);
  for (int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGPIPE, SIGCHLD})
    EXPECT_EQ(sigismember(&before, signal), sigismember(&after, signal)) << signal;
}

const ranks::Body frozen("frozen", [](const std::string&) { return raise(SIGSTOP); });

TEST(Launch, EndsAJobAllRanksOfWhichAreStopped) {
  const auto outcome = ranks::run(2, "frozen", "", {"ORRERY_DEADLINE=1"});
  EXPECT_EQ(outcome.code, ORR_DEADLINE) << outcome.output;
  EXPECT_NE(outcome.output.find("was stopped by signal 19 (Stopped (signal)) for longer"),
            std::string::npos)
      << outcome.output;
}

const ranks::Body pinned("pinned", [](const std::string&) {
  const World world = detect();
  auto store = Store::open(world);
  const std::vector<int> cpus = allowed_cpus();
  if (std::atoi(std::getenv("ORRERY_THREADS")) != thread_share(cpus, 0, 1)) return 1;
  if (world.rank == 1) store->put("cpu", std::to_string(cpus[0]));
  if (world.rank == 0 && store->get("cpu", int64_t{5} * 1000000000) == std::to_string(cpus[0]))
    return 2;
  if (world.rank == 0) store->put("seen", "");
  store->get("seen", int64_t{5} * 1000000000);
  return 0;
});

TEST(Launch, RanksGetTheirOwnCpus) {
  if (allowed_cpus().size() < 2) GTEST_SKIP() << "needs 2 CPUs";
  const auto outcome = ranks::run(2, "pinned", "", {"ORRERY_PIN=cores"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
}

const ranks::Body asks("asks", [](const std::string&) {
  const World world = detect();
  auto store = Store::open(world);
  if (world.rank == 1) return 0;
  store->get("never", int64_t{20} * 1000000000);
  return 0;
});

TEST(Launch, AskingForTheKeyOfAnEndedRankFails) {
  const auto outcome = ranks::run(2, "asks");
  EXPECT_EQ(outcome.code, ORR_RETRY) << outcome.output;
  EXPECT_NE(outcome.output.find("rank 1 died while the job was forming"), std::string::npos);
}

// Its name decides what is removed from shared memory.
TEST(Launch, RefusesJobsThatNoLauncherHasNamed) {
  LaunchOptions options;
  options.argv = {"sh", "-c", "exit 0"}, options.program = "/bin/sh";
  for (const char* name : {"job-1-", "job-1-0123456789abcdef2", "a-job-1-0123456789abcdef"}) {
    options.part = HostPart{};
    options.part->job = name;
    EXPECT_THROW(launch(options), Error) << name;
  }
}

TEST(Launch, RefusesImpossibleSizes) {
  LaunchOptions options;
  options.ranks = 0;
  EXPECT_THROW(launch(options), Error);
}

}  // namespace
}  // namespace orrery
