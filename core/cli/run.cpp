// SPDX-License-Identifier: Apache-2.0
//
// `orrery run` and `orrery plan` run the same script, to train or to plan.
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/machine.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/records_directory.h"
#include "edit/planner.h"
#include "launch/affinity.h"
#include "launch/environment.h"
#include "launch/guard.h"
#include "launch/launch.h"
#include "launch/launch_hosts.h"
#include "launch/stop_signal.h"
#include "lua/script.h"
#include "plugin/registry.h"
#include "plugin/watchdog.h"
#include "run/profile.h"
#include "run/run.h"
#include "run/runtime.h"
#include "run/thread_pool.h"
#include "store/checkpoint.h"

namespace orrery {
namespace {

struct Choice {
  int ranks = 1;
  std::string comm = ORRERY_DEFAULT_COMM;
  std::vector<std::string> kernels;
  int threads = 0;
  std::string pin = "cores";
  uint64_t link_speed = 0;
  bool profile = false, check_nan = false, fallback = false;
  int64_t verify = 0;
  std::string directory;  // of the run; "": it is not named
  std::string records;    // then the one that is made when there is something to record
  bool no_directory = false;
  std::vector<std::string> observe;  // NAME=OPTIONS
  std::string hosts, remote_shell = default_remote_shell();
  bool as_host = false;
  int restarts = 0, min_ranks = 0;
  std::vector<std::string> arguments;  // script, key=value...
};

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

// Throws Error for a name that no plugin has, before any rank starts.
void check_names(const CLI::App& command, const Choice& choice) {
  for (const std::string& name : choice.kernels) Registry::get().kernel(name);
  if (command.count("--comm")) Registry::get().comm(choice.comm);
}

// Warns of plugins that were found and cannot be used: another of the same name comes first, or the
// file is not trusted. The user may rely on such a plugin without having named it.
void tell_unused() {
  if (detect().rank > 0 || detect().source == "orrery") return;
  for (const PluginFile& file : Registry::get().files())
    if (file.descriptor.magic && !file.refusal.empty())
      spdlog::warn("{} '{}' is not used: plugin {}: {}", kinds_text(file.descriptor.kinds),
                   file.descriptor.name, file.path.string(), file.refusal);
}

// The options of observers by name. Throws Error for a name that no plugin has.
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

// What a plan is asked for, for scripts/orrery/plan.lua.
struct PlanChoice {
  bool diff = false, digest = false, json = false, search = false;
  int rank = 0, seconds = 100;
  uint64_t fit = 0, memory = 0;
  std::string machine, ops, svg;
};

void check_plan(const CLI::App& command, const PlanChoice& asked, int ranks) {
  if (asked.rank < 0 || asked.rank >= ranks)
    fail(ORR_INVALID, "--rank {}: there are ranks 0 to {}", asked.rank, ranks - 1);
  if (command.count("--fit") && asked.fit == 0)
    fail(ORR_INVALID, "--fit 0: a rank needs some memory");
}

nlohmann::json options_of(const PlanChoice& asked) {
  return {{"diff", asked.diff},     {"digest", asked.digest}, {"json", asked.json},
          {"search", asked.search}, {"rank", asked.rank},     {"seconds", asked.seconds},
          {"fit", asked.fit},       {"memory", asked.memory}, {"machine", asked.machine},
          {"ops", asked.ops},       {"svg", asked.svg}};
}

// What the script prints goes to stderr from now on; stdout has the JSON alone.
void keep_stdout_for_json() {
  planner().out = fdopen(dup(STDOUT_FILENO), "w");
  if (!planner().out || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
    fail(ORR_FAILED, "--json: stdout cannot be kept: {}", std::strerror(errno));
}

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

// Tells of plugins that do not come back, during its life.
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

void add_plan(CLI::App& app, int& exit_code) {
  auto choice = std::make_shared<Choice>();
  auto asked = std::make_shared<PlanChoice>();
  CLI::App* command =
      app.add_subcommand("plan", R"(Print what a script's step will do, and run nothing
Examples:
  orrery plan examples/gpt.lua
  orrery plan -n 512 examples/gpt2.lua
  orrery plan -n 4 --diff --rank 1 examples/pipeline.lua
  orrery plan -n 8 --fit 16GiB examples/gpt-3d.lua)");
  add_common(command, *choice);
  command->add_option("--svg", asked->svg,
                      "Draw the order of work of the model's stages into this file");
  command->add_option("--machine", asked->machine,
                      "File with the machine's speed in JSON, as examples/machine.lua measures it");
  command->add_option("--ops", asked->ops)
      ->group("");  // hidden: `orrery check --script` gets a script's ops by it
  CLI::Option* json = command->add_flag(
      "--json", asked->json, "Print one JSON object instead of text; docs/plan.md has its fields");
  CLI::Option* diff =
      command
          ->add_flag("--diff", asked->diff,
                     "Print what each strategy of the stack changes in the program of a rank")
          ->excludes(json);
  command
      ->add_flag("--digest", asked->digest,
                 "Print hashes of what every kind of rank will do: equal where two builds of "
                 "Orrery plan alike")
      ->excludes(json)
      ->excludes(diff);
  command->add_option("--rank", asked->rank, "The rank that --diff shows")
      ->needs(diff)
      ->capture_default_str();
  command
      ->add_option("--fit", asked->fit,
                   "Memory of a rank, as 16GiB: plan with the fewest microbatches that fit, "
                   "whatever the script asks for")
      ->transform(CLI::AsSizeValue(true))
      ->excludes(diff);
  CLI::Option* search =
      command
          ->add_flag("--search", asked->search,
                     "Print the ten fastest layouts of the model on these ranks, with their stacks")
          ->excludes(diff)
          ->excludes(json);
  command
      ->add_option("--memory", asked->memory,
                   "Of --search: memory of a rank, as 80GiB; else the machine file's")
      ->transform(CLI::AsSizeValue(true))
      ->needs(search);
  command
      ->add_option("--seconds", asked->seconds,
                   "Of --search: when to stop, with what seems best planned first; 0: at the end")
      ->check(CLI::NonNegativeNumber)
      ->needs(search)
      ->capture_default_str();
  command->callback([choice, asked, command, &exit_code] {
    const Watchdog watchdog = watch_plugins();
    check_ranks(choice->ranks);
    check_names(*command, *choice);
    tell_unused();
    check_plan(*command, *asked, choice->ranks);
    if (asked->json) keep_stdout_for_json();
    planner().options = options_of(*asked);
    apply(*choice);
    // Workspaces depend on the number of threads: plan with those that `run -n` would give a rank.
    ThreadPool::get().configure(thread_share(allowed_cpus(), 0, choice->ranks));
    runtime_options().plan_only = true;
    runtime_options().plan_ranks = choice->ranks;
    exit_code = run_chosen(*choice);
  });
}

}  // namespace orrery
