// SPDX-License-Identifier: Apache-2.0
//
// --observe notify=COMMAND: rank 0 has a shell run the command when the run fails, ends, or tells
// its first number that is not finite. Training does not wait for it; the end of the job does, for
// ten seconds. The command is told by variables:
//   ORRERY_EVENT      failure, nan or end
//   ORRERY_TEXT       the error; the name of the number; how the run ended
//   ORRERY_STEP       the last step that has ended
//   ORRERY_DIRECTORY  of the run, "" if it has none
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "glue.h"

extern char** environ;

namespace {

constexpr std::chrono::seconds kPatience(10);

void say(const std::string& words) {
  orr::host->log(ORR_LOG_WARN, ("observer notify: " + words).c_str());
}

class Notify {
 public:
  static constexpr const char* kName = "notify";

  void start(const orr_observer_config& config) {
    stop();
    command_ = config.rank == 0 ? observer::options(config) : "";
    directory_ = config.directory;
    step_ = 0, seen_nan_ = said_ = false, ending_ = "finished";
  }

  void observe(const orr_event_record& event) {
    if (command_.empty()) return;
    if (event.kind == ORR_EVENT_STEP_END) step_ = event.step, collect();
    if (event.kind == ORR_EVENT_METRIC && !std::isfinite(event.value) && !seen_nan_) {
      seen_nan_ = true;
      tell("nan", event.text, event.step);
    }
    if (event.kind == ORR_EVENT_FAILURE) fail(event);
    if (event.kind == ORR_EVENT_RUN_END) tell("end", ending_, step_);
  }

  void stop() {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (collect(), !running_.empty() && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (!running_.empty()) say("a command goes on after the end of the run: " + command_);
    running_.clear(), command_.clear();
  }
  int32_t wants(int64_t) const { return 0; }

 private:
  void fail(const orr_event_record& event) {
    ending_ = event.value == 1 ? "stopped" : "failed";
    if (event.value != 1) tell("failure", event.text, step_);
  }

  void tell(const char* what, const std::string& text, int64_t step) {
    std::vector<std::string> own = {std::string("ORRERY_EVENT=") + what, "ORRERY_TEXT=" + text,
                                    "ORRERY_STEP=" + std::to_string(step),
                                    "ORRERY_DIRECTORY=" + directory_};
    std::vector<char*> variables;  // own ones stand for what the environment has by their names
    for (std::string& each : own) variables.push_back(each.data());
    for (char** each = environ; *each; ++each) {
      const std::string_view name(*each, std::strcspn(*each, "=") + 1);
      bool ours = false;
      for (const std::string& mine : own) ours |= mine.starts_with(name);
      if (!ours) variables.push_back(*each);
    }
    variables.push_back(nullptr);
    const char* words[] = {"sh", "-c", command_.c_str(), nullptr};
    pid_t pid = 0;
    const int error =
        posix_spawn(&pid, "/bin/sh", nullptr, nullptr, const_cast<char**>(words), variables.data());
    if (error == 0) return running_.push_back(pid);
    complain(std::string("cannot start a shell: ") + std::strerror(error));
  }

  // Takes the exit codes of commands that have ended.
  void collect() {
    std::erase_if(running_, [this](pid_t pid) {
      int status = 0;
      if (waitpid(pid, &status, WNOHANG) == 0) return false;
      if (status != 0)
        complain("the command ended with " +
                 (WIFEXITED(status) ? "exit code " + std::to_string(WEXITSTATUS(status))
                                    : "signal " + std::to_string(WTERMSIG(status))) +
                 ": " + command_);
      return true;
    });
  }

  void complain(const std::string& words) {
    if (!std::exchange(said_, true)) say(words + "; the run goes on");
  }

  std::string command_, directory_, ending_;
  bool seen_nan_ = false, said_ = false;
  int64_t step_ = 0;
  std::vector<pid_t> running_;
};

}  // namespace

ORR_PLUGIN(ORR_KIND_OBSERVER, "notify", "0.1.0", "Runs a command on a failure, NaN or the end",
           observer::Glue<Notify>::entry, 1, {{"observer", 1, 1}})
