// SPDX-License-Identifier: Apache-2.0
#include "cli/choice.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdio>

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

void add_common(CLI::App* command, Choice& choice) {
  command->add_option("-n,--ranks", choice.ranks, "Number of ranks");
  command->add_option("--comm", choice.comm, "Comm plugin that carries bytes between ranks");
  command->add_option("--kernels", choice.kernels, "Kernel plugins to use, first choice first")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("script", choice.arguments, "The Lua script, then its key=value arguments")
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
  int code =
      run_script(choice.arguments.front(), {choice.arguments.begin() + 1, choice.arguments.end()});
  if (choice.profile && detect().rank == 0) std::fputs(Profile::get().text().c_str(), stdout);
  return code;
}

}  // namespace orrery
