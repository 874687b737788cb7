// SPDX-License-Identifier: Apache-2.0
//
// `orrery run`, in this process or by starting ranks, and `orrery repl`.

#include "run/run.h"
#include "base/error.h"
#include "base/machine.h"
#include "cli/choice.h"
#include "cli/commands.h"
#include "cli/records_directory.h"
#include "launch/affinity.h"
#include "launch/environment.h"
#include "launch/guard.h"
#include "launch/launch.h"
#include "launch/launch_hosts.h"
#include "launch/stop_signal.h"
#include "lua/script.h"
#include "plugin/registry.h"
#include "run/runtime.h"
#include "run/thread_pool.h"
#include "store/checkpoint.h"

namespace orrery {
namespace {

// Throws Error if a plugin that the user has named does not work here, whether it will be needed or
// not. This is checked before ranks meet, so that no rank waits for one that has ended.
void check_asked(const CLI::App& command, const Choice& choice) {
  if (!choice.kernels.empty()) Runtime::get().kernels();
  if (detect().size == 1 && !command.count("--comm")) return;
  const orr_comm_api& api = Registry::get().comm(choice.comm);
  orr_comm_caps caps{};
  caps.size = sizeof caps;
  char reason[256] = "";
  if (!api.probe(api.self, &caps, reason, sizeof reason))
    fail(ORR_UNAVAILABLE, "comm '{}' does not work here: {}", choice.comm, reason);
  if (const int ranks = detect().size; caps.max_ranks > 0 && ranks > caps.max_ranks)
    fail(ORR_INVALID,
         "comm '{}' joins at most {} rank{}: {} would train nothing together; choose "
         "another --comm",
         choice.comm, caps.max_ranks, caps.max_ranks == 1 ? "" : "s", ranks);
}

// The command line of one rank: the given one, without -n.
std::vector<std::string> rank_command(const Choice& choice) {
  std::vector<std::string> argv = {"orrery", "run", "--comm", choice.comm};
  for (const std::string& name : choice.kernels) argv.insert(argv.end(), {"--kernels", name});
  if (choice.profile) argv.push_back("--profile");
  if (choice.check_nan) argv.push_back("--check-nan");
  if (choice.verify) argv.insert(argv.end(), {"--verify", std::to_string(choice.verify)});
  if (choice.fallback || choice.restarts > 0) argv.push_back("--fallback");
  if (choice.link_speed)
    argv.insert(argv.end(), {"--link-speed", std::to_string(choice.link_speed)});
  if (!choice.directory.empty()) argv.insert(argv.end(), {"--dir", choice.directory});
  if (!choice.records.empty()) argv.insert(argv.end(), {"--records", choice.records});
  if (choice.directory.empty() && choice.records.empty()) argv.push_back("--no-dir");
  for (const std::string& given : choice.observe) argv.insert(argv.end(), {"--observe", given});
  argv.insert(argv.end(), choice.arguments.begin(), choice.arguments.end());
  return argv;
}

// Whether this process must start ranks (-n). Not if another launcher has already made it one of
// several.
bool must_launch(const Choice& choice) {
  const World world = detect();  // called in any case: it throws if launchers contradict each other
  if (choice.restarts > 0 && world.size > 1)
    fail(ORR_INVALID,
         "--restarts {}: {} has started this rank, and only it can start it again; leave "
         "--restarts out",
         choice.restarts, world.source);
  if (choice.ranks == 1) return choice.restarts > 0;
  if (world.size == 1) return true;
  if (world.size == choice.ranks) return false;
  fail(ORR_INVALID, "-n {}: this process is already one of {} ranks ({}); leave -n out",
       choice.ranks, world.size, world.source);
}

// Starts ranks on other machines (--hosts), as many as these have slots.
int run_on_hosts(const Choice& choice) {
  const World world = detect();
  if (world.size > 1)
    fail(ORR_INVALID, "--hosts {}: this process is already one of {} ranks ({}); leave --hosts out",
         choice.hosts, world.size, world.source);
  if (choice.ranks != 1)
    fail(ORR_INVALID,
         "-n {} with --hosts {}: leave -n out, the hosts' slots say how many ranks there are",
         choice.ranks, choice.hosts);
  return launch_hosts({read_hosts(choice.hosts), choice.remote_shell, rank_command(choice),
                       choice.threads, choice.restarts, choice.min_ranks,
                       choice.arguments.front()});
}

}  // namespace

void add_run(CLI::App& app, int& exit_code) {
  auto choice = std::make_shared<Choice>();
  CLI::App* command = app.add_subcommand("run", R"(Run a training script
Examples:
  orrery run examples/regression.lua
  orrery run -n 4 --comm local examples/gpt.lua steps=200 batch=32
  orrery run --hosts hosts.txt examples/gpt.lua)");
  add_common(command, *choice);
  command->add_option("--hosts", choice->hosts,
                      "File of the hosts to run on: a name per line, slots=N");
  command
      ->add_option("--remote-shell", choice->remote_shell, "Command that --hosts reaches a host by")
      ->capture_default_str();
  command->add_flag("--as-host", choice->as_host)
      ->group("");  // hidden: --hosts starts this program with it on each host
  command
      ->add_option("--restarts", choice->restarts,
                   "Start all ranks again after one was lost, so many times at most")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--min-ranks", choice->min_ranks,
                   "Of --hosts: a restart leaves out hosts that were lost, if so many ranks are "
                   "left")
      ->check(CLI::PositiveNumber)
      ->needs("--hosts")
      ->needs("--restarts");
  command->add_option("--threads", choice->threads, "Compute threads of each rank (0: its share)")
      ->envname("ORRERY_THREADS");
  command
      ->add_option("--pin", choice->pin,
                   "Whether ranks of a host get cores of their own: cores, none")
      ->check(CLI::IsMember({"cores", "none"}))
      ->envname("ORRERY_PIN")
      ->capture_default_str();
  command
      ->add_option("--link-speed", choice->link_speed,
                   "Pretend that ranks are joined by links of so many bytes a second: 1GB, 125MB")
      ->transform(CLI::AsSizeValue(true));
  command->add_flag("--profile", choice->profile, "Print at the end where rank 0 spent its time");
  command->add_flag("--check-nan", choice->check_nan,
                    "End at the first op that makes NaN or infinity, and name it; slow");
  command
      ->add_option("--verify", choice->verify,
                   "Every so many steps, compute one twice; name the rank whose bits differ")
      ->check(CLI::PositiveNumber);
  command->add_flag("--fallback", choice->fallback,
                    "Load an older checkpoint of the directory where the newest is damaged; "
                    "--restarts implies it");
  CLI::Option* named = command->add_option(
      "--dir", choice->directory,
      "Run directory, for what observers write; made if missing. Without it: runs/TIME-SCRIPT");
  command->add_flag("--no-dir", choice->no_directory, "No run directory: nothing is recorded")
      ->excludes(named);
  command->add_option("--records", choice->records)
      ->group("");  // hidden: a launcher names the directory of its ranks with it
  command
      ->add_option(
          "--observe", choice->observe,
          "NAME=OPTIONS of an observer that `orrery plugins` lists; NAME=off leaves it out")
      ->allow_extra_args(false);
  command->callback([choice, command, &exit_code] {
    if (is_guard(detect())) {
      exit_code = guard(detect());
      return;
    }
    const Watchdog watchdog = watch_plugins();
    check_ranks(choice->ranks);
    if (detect().rank > 0) Registry::get().leave_warnings_to_rank_0();
    check_names(*command, *choice);
    observers_of(*choice);
    if (choice->help) return print_script_help(*choice);
    tell_unused();
    if (choice->directory.empty() && !choice->no_directory && !choice->as_host)
      if (choice->records.empty()) choice->records = records_directory(choice->arguments.front());
    if (choice->threads < 0) fail(ORR_INVALID, "--threads {}: at least 1, or 0", choice->threads);
    pinning() = {choice->pin == "cores", command->count("--pin") > 0};
    if (choice->as_host) {
      exit_code = launch_as_host();
      return;
    }
    if (command->count("--hosts")) {
      exit_code = run_on_hosts(*choice);
      return;
    }
    if (must_launch(*choice)) {
      exit_code =
          launch({choice->ranks, rank_command(*choice), "", choice->threads, choice->restarts});
      return;
    }
    watch_user_signal();
    const int threads = take_share(detect());
    if (choice->threads == 0) choice->threads = threads;
    apply(*choice);
    const JobStart start = job_start();
    writer_job() = {start.job, start.start};
    check_asked(*command, *choice);
    exit_code = run_chosen(*choice);
  });
}

void add_repl(CLI::App& app, int& exit_code) {
  app.add_subcommand("repl", R"(Run Lua line by line, in one process
Examples:
  orrery repl
  echo 'orrery.tensor { 1, 2 }' | orrery repl)")
      ->callback([&exit_code] {
        const Watchdog watchdog = watch_plugins();
        apply({});
        ThreadPool::get().configure(thread_share(allowed_cpus(), 0, 1));
        exit_code = run_repl();
      });
}

}  // namespace orrery
