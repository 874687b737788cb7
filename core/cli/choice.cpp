// SPDX-License-Identifier: Apache-2.0
#include "cli/choice.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/machine.h"
#include "base/text.h"
#include "launch/affinity.h"
#include "launch/environment.h"
#include "lua/script.h"
#include "plugin/registry.h"
#include "run/profile.h"
#include "run/runtime.h"
#include "run/thread_pool.h"

namespace orrery {

namespace {

// --help before the script is about the command, behind it about the script.
void add_help(CLI::App* command, Choice& choice) {
  command->set_help_flag();
  command->add_flag_function(
      "-h,--help",
      [command, &choice](int64_t) {
        const std::vector<CLI::Option*>& given = command->parse_order();
        const auto help = std::find(given.begin(), given.end(), command->get_option("--help"));
        if (std::find(given.begin(), help, command->get_option("script")) == help)
          throw CLI::CallForHelp();
        choice.help = true;
      },
      "Print this and exit; behind a script, print its arguments");
}

// What stands behind the script.
std::vector<std::string> arguments_of(const Choice& choice) {
  return {choice.arguments.begin() + 1, choice.arguments.end()};
}

}  // namespace

void add_common(CLI::App* command, Choice& choice) {
  add_help(command, choice);
  command->add_option("-n,--ranks", choice.ranks, "Number of ranks");
  command->add_option("--comm", choice.comm, "Comm plugin that carries bytes between ranks");
  command->add_option("--kernels", choice.kernels, "Kernel plugins to use, first choice first")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      ->add_option("script", choice.arguments,
                   "The Lua script, then its arguments: key=value, or @FILE of such lines")
      ->required();
}

void check_ranks(int ranks) {
  if (ranks < 1) fail(ORR_INVALID, "-n {}: the number of ranks is at least 1", ranks);
}

void check_names(const CLI::App& command, const Choice& choice) {
  for (const std::string& name : choice.kernels) Registry::get().kernel(name);
  if (command.count("--comm")) Registry::get().comm(choice.comm);
}

void tell_unused() {
  if (detect().rank > 0 || detect().source == "orrery") return;
  for (const PluginFile& file : Registry::get().files())
    if (file.descriptor.magic && !file.refusal.empty())
      spdlog::warn("{} '{}' is not used: plugin {}: {}", kinds_text(file.descriptor.kinds),
                   file.descriptor.name, file.path.string(), file.refusal);
}

std::map<std::string, std::string> observers_of(const Choice& choice) {
  std::map<std::string, std::string> options;
  for (const std::string& given : choice.observe) {
    const size_t at = given.find('=');
    const std::string name = given.substr(0, at);
    const std::vector<std::string> known = Registry::get().names(ORR_KIND_OBSERVER);
    if (at == std::string::npos || at + 1 == given.size())
      fail(ORR_INVALID, "--observe {}: write NAME=OPTIONS, or NAME=off", given);
    if (std::find(known.begin(), known.end(), name) == known.end())
      fail(ORR_INVALID, "--observe {}: there is no observer '{}'{}; there are: {}", given, name,
           did_you_mean(name, known), join(known, ", "));
    options[name] = given.substr(at + 1);
  }
  return options;
}

void apply(const Choice& choice) {
  RuntimeOptions& options = runtime_options();
  options.comm = choice.comm;
  options.kernels = choice.kernels;
  if (choice.profile) Profile::get().turn_on();
  options.check_nan = choice.check_nan;
  options.verify = choice.verify;
  options.fallback = choice.fallback;
  options.run_directory = choice.directory;
  options.records = choice.records;
  options.observe = observers_of(choice);
  options.link_speed = choice.link_speed;
  if (choice.threads > 0)
    ThreadPool::get().configure(choice.threads, order_by_core(allowed_cpus()));
}

Watchdog watch_plugins() {
  const World world = detect();
  return {world.size > 1 ? fmt::format("rank {}", world.rank) : "this process", deadline_ns()};
}

int run_chosen(const Choice& choice) {
  int code = run_script(choice.arguments.front(), arguments_of(choice));
  if (choice.profile && detect().rank == 0) std::fputs(Profile::get().text().c_str(), stdout);
  return code;
}

std::FILE* keep_stdout(int other) {
  std::FILE* out = ::fdopen(::dup(STDOUT_FILENO), "w");
  if (!out || ::dup2(other, STDOUT_FILENO) < 0)
    fail(ORR_FAILED, "stdout cannot be kept: {}", std::strerror(errno));
  return out;
}

void print_script_help(const Choice& choice) {
  std::FILE* out = keep_stdout(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  apply(choice);
  runtime_options().plan_only = true;
  runtime_options().plan_ranks = std::max(choice.ranks, detect().size);
  const std::string text = script_help(choice.arguments.front(), arguments_of(choice));
  if (detect().rank == 0) std::fputs(text.c_str(), out);
  if (std::fclose(out) != 0)
    fail(ORR_FAILED, "the output could not be written: {}", std::strerror(errno));
}

}  // namespace orrery
