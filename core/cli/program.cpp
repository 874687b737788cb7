// SPDX-License-Identifier: Apache-2.0
#include "cli/program.h"

#include <fcntl.h>
#include <orrery/types.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/machine.h"
#include "base/text.h"

namespace orrery {
namespace {

void set_up_log() {
  const bool plain = std::getenv("NO_COLOR") != nullptr;
  spdlog::set_default_logger(spdlog::stderr_color_mt(
      "orrery", plain ? spdlog::color_mode::never : spdlog::color_mode::automatic));
  spdlog::set_pattern("%H:%M:%S %^%l%$ %v");
}

// The exit code for an error. Codes that are no exit codes become ORR_FAILED.
int exit_code_of(const Error& e) {
  switch (e.code()) {
    case ORR_INVALID:
    case ORR_UNAVAILABLE:
    case ORR_RETRY:
    case ORR_DEADLINE: return e.code();
    default: return ORR_FAILED;
  }
}

// Throws the error for arguments that the chosen command does not take, such as "--thread (did you
// mean '--threads'?)".
[[noreturn]] void fail_extra(const CLI::App& app) {
  const CLI::App& command = app.get_subcommands().empty() ? app : *app.get_subcommands().front();
  std::vector<std::string> known;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  const std::string given = app.remaining(true).front();
  const bool has_script = command.get_option_no_throw("script") != nullptr;
  fail(ORR_INVALID, "{} does not take '{}'{}; it takes {}{}", command.get_name(), given,
       did_you_mean(given, known), join(known, ", "),
       has_script ? "; the script's own arguments are written key=value" : "");
}

// Opens standard streams that are closed. Otherwise the next file that is opened would get the
// stream's number, and printed text would be written into it.
void open_standard_streams() {
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF)
      ::open("/dev/null", fd == STDIN_FILENO ? O_RDONLY : O_WRONLY);  // gets the lowest free number
}

// Flushes stdout, and returns the exit code: a failure if that cannot be written, as on a full
// disk. A text longer than stdio's buffer is written at once, long before this, and its errno is
// gone by now: one newline more says why the output takes nothing.
int flushed(int exit_code) {
  errno = 0;
  const bool failed = std::fflush(stdout) != 0 || std::ferror(stdout);
  if (!failed || exit_code != ORR_OK) return exit_code;
  const bool known = errno != 0 || ::write(STDOUT_FILENO, "\n", 1) < 0;
  fail(ORR_FAILED, "the output could not be written: {}",
       known ? std::strerror(errno) : "an earlier write failed");
}

}  // namespace

int parse(CLI::App& app, int argc, char** argv, const int& exit_code) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ExtrasError&) {
    fail_extra(app);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? int(ORR_OK) : int(ORR_INVALID);
  }
  return exit_code;
}

int run_program(int argc, char** argv, int (*run)(int argc, char** argv)) {
  open_standard_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // so that writing too large a file fails with an error
  try {
    set_up_log();
    return flushed(run(argc, argv));
  } catch (const Error& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return exit_code_of(e);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "error: %s\n", out_of_memory().c_str());
    return ORR_FAILED;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return ORR_FAILED;
  }
}

}  // namespace orrery
