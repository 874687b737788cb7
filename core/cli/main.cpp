// SPDX-License-Identifier: Apache-2.0
//
// The program `orrery`: results on stdout, log and errors on stderr, exit codes of types.h.
#include <fcntl.h>
#include <orrery/plugin.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/config.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"

namespace orrery {
namespace {

constexpr const char* overview = R"(Examples:
  orrery run -n 2 examples/gpt.lua steps=100
  orrery plan -n 512 examples/gpt2.lua
  orrery plugins
  orrery doctor

Orrery trains models that Lua scripts describe, on any number of ranks.)";

void set_up_log() {
  const bool plain = std::getenv("NO_COLOR") != nullptr;
  spdlog::set_default_logger(spdlog::stderr_color_mt(
      "orrery", plain ? spdlog::color_mode::never : spdlog::color_mode::automatic));
  spdlog::set_pattern("%H:%M:%S %^%l%$ %v");
}

// Codes that are also exit codes pass; the others are plain failures.
int exit_code_of(const Error& e) {
  switch (e.code()) {
    case ORR_INVALID:
    case ORR_UNAVAILABLE:
    case ORR_RETRY:
    case ORR_DEADLINE: return e.code();
    default: return ORR_FAILED;
  }
}

// Lists subcommands by the first line of their description; the rest is for their own --help.
class Formatter : public CLI::Formatter {
 public:
  std::string make_subcommand(const CLI::App* command) const override {
    const std::string text = command->get_description();
    return fmt::format("  {:<9} {}\n", command->get_name(), text.substr(0, text.find('\n')));
  }
};

void check_subcommand(const CLI::App& app, const std::string& word) {
  std::vector<std::string> known;
  for (const CLI::App* command : app.get_subcommands({})) known.push_back(command->get_name());
  if (word.starts_with("-") || std::count(known.begin(), known.end(), word)) return;
  fail(ORR_INVALID, "there is no subcommand '{}'{}; there are: {}", word, did_you_mean(word, known),
       join(known, ", "));
}

// "--thread (did you mean '--threads'?)" for what the chosen subcommand does not take.
[[noreturn]] void fail_extra(const CLI::App& app) {
  const CLI::App& command = *app.get_subcommands().front();
  std::vector<std::string> known;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  const std::string word = app.remaining(true).front();
  fail(ORR_INVALID, "{} does not take '{}'{}; it takes {}", command.get_name(), word,
       did_you_mean(word, known), join(known, ", "));
}

int run(int argc, char** argv) {
  CLI::App app(overview, "orrery");
  app.formatter(std::make_shared<Formatter>());
  app.set_version_flag("--version", std::string("orrery " ORRERY_VERSION ", plugin bootstrap ") +
                                        std::to_string(ORR_BOOTSTRAP) + ", " + ORR_BUILD_TEXT);
  app.require_subcommand(1);
  int exit_code = ORR_OK;
  add_run(app, exit_code);
  add_plan(app, exit_code);
  add_plugins(app, exit_code);
  add_new(app);
  add_check(app, exit_code);
  add_doctor(app, exit_code);
  add_stubs(app);
  if (argc > 1) check_subcommand(app, argv[1]);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ExtrasError&) {
    fail_extra(app);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? int(ORR_OK) : int(ORR_INVALID);
  }
  return exit_code;
}

// A standard stream that is closed would be the number of the first file that is opened, and what
// is printed would go there.
void open_standard_streams() {
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF)
      ::open("/dev/null", fd == STDIN_FILENO ? O_RDONLY : O_WRONLY);  // the lowest that is free
}

// What is still on its way to stdout may not arrive, as on a disk that is full.
int flushed(int exit_code) {
  errno = 0;
  const bool failed = std::fflush(stdout) != 0 || std::ferror(stdout);
  if (!failed || exit_code != ORR_OK) return exit_code;
  fail(ORR_FAILED, "the output could not be written: {}",
       errno ? std::strerror(errno) : "an earlier write failed");
}

}  // namespace
}  // namespace orrery

int main(int argc, char** argv) {
  orrery::open_standard_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // a file too large is an error of its write, with a sentence
  try {
    orrery::set_up_log();
    return orrery::flushed(orrery::run(argc, argv));
  } catch (const orrery::Error& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return orrery::exit_code_of(e);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return ORR_FAILED;
  }
}
