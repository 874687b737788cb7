// SPDX-License-Identifier: Apache-2.0
#include "ranks.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "base/error.h"
#include "launch/affinity.h"
#include "launch/launch.h"
#include "launch/store.h"

namespace ranks {
namespace {

using Clock = std::chrono::steady_clock;

std::map<std::string, std::function<int(const std::string&)>>& bodies() {
  static std::map<std::string, std::function<int(const std::string&)>> all;
  return all;
}

std::string slurp(int fd) {
  std::string text;
  char buffer[4096];
  lseek(fd, 0, SEEK_SET);
  for (ssize_t n; (n = read(fd, buffer, sizeof buffer)) > 0;) text.append(buffer, n);
  close(fd);
  return text;
}

int run_body(const std::string& name, const std::string& argument) {
  try {
    return bodies().at(name)(argument);
  } catch (const orrery::Error& e) {
    const orrery::World world = orrery::detect();
    std::fprintf(stderr, "rank %d: %s\n", world.rank, e.what());
    return e.code();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", name.c_str(), e.what());
    return 1;
  }
}

}  // namespace

Body::Body(const char* name, std::function<int(const std::string&)> run) {
  bodies()[name] = std::move(run);
}

Running start(int n, const std::string& body, const std::string& argument,
              const std::vector<std::string>& env) {
  const int out = memfd_create("output", 0);
  fcntl(out, F_SETFL, O_APPEND);  // several processes write
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid != 0) return {pid, out};
  dup2(out, 1);
  dup2(out, 2);
  for (const std::string& entry : env) {
    const size_t equals = entry.find('=');
    setenv(entry.substr(0, equals).c_str(), entry.substr(equals + 1).c_str(), 1);
  }
  orrery::LaunchOptions options;
  options.ranks = n;
  options.argv = {"ranks", "--body", body, argument};
  int code = 1;
  try {
    // Other tests run beside: CPUs of their own are for the test that looks at them.
    const char* pin = std::getenv("ORRERY_PIN");
    orrery::pinning() = {.on = pin && std::string(pin) == "cores", .asked = false};
    code = orrery::launch(options);
  } catch (const orrery::Error& e) {
    std::fprintf(stderr, "launcher: %s\n", e.what());
    code = e.code();
  }
  std::fflush(nullptr);
  _exit(code);
}

Outcome finish(const Running& running) {
  int status = 0;
  waitpid(running.pid, &status, 0);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return {code, slurp(running.output_fd), 0};
}

Outcome run(int n, const std::string& body, const std::string& argument,
            const std::vector<std::string>& env) {
  const auto begin = Clock::now();
  Outcome outcome = finish(start(n, body, argument, env));
  outcome.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return outcome;
}

int count(const std::string& text, const std::string& word) {
  int n = 0;
  for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += word.size()) ++n;
  return n;
}

}  // namespace ranks

int main(int argc, char** argv) {
  if (argc == 4 && std::string(argv[1]) == "--body") return ranks::run_body(argv[2], argv[3]);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
