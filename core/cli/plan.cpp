// SPDX-License-Identifier: Apache-2.0
//
// `orrery plan`: what a script's step will do, in the words of scripts/orrery/plan.lua.
#include <unistd.h>

#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/machine.h"
#include "cli/choice.h"
#include "cli/commands.h"
#include "edit/planner.h"
#include "launch/affinity.h"
#include "run/runtime.h"
#include "run/thread_pool.h"

namespace orrery {
namespace {

// What a plan is asked for, for scripts/orrery/plan.lua.
struct PlanChoice {
  bool diff = false, digest = false, json = false, layouts = false, search = false;
  bool details = false, must_fit = false, next = false;
  int rank = 0, seconds = 100, nodes = 0;
  double steps = 0, tokens = 0, mtbf = 0, job_mtbf = 0;
  uint64_t fit = 0, memory = 0;
  std::string machine, ops, svg;
};

void check_plan(const CLI::App& command, const PlanChoice& asked, int ranks) {
  if (asked.rank < 0 || asked.rank >= ranks)
    fail(ORR_INVALID, "--rank {}: there are ranks 0 to {}", asked.rank, ranks - 1);
  if (command.count("--rank") && !asked.diff && !asked.layouts)
    fail(ORR_INVALID, "--rank {}: give --diff or --layouts, which show one rank", asked.rank);
  if (command.count("--fit") && asked.fit == 0)
    fail(ORR_INVALID, "--fit 0: a rank needs some memory");
  for (const auto& [name, hours] :
       {std::pair{"--mtbf", asked.mtbf}, {"--job-mtbf", asked.job_mtbf}})
    if (command.count(name) && !(hours > 0 && std::isfinite(hours)))
      fail(ORR_INVALID, "{} {}: give hours above 0; without the option nothing fails", name, hours);
  if (command.count("--nodes") && asked.nodes < 1)
    fail(ORR_INVALID, "--nodes {}: a job has at least one host", asked.nodes);
  if (asked.nodes && !command.count("--mtbf") && !command.count("--job-mtbf"))
    fail(ORR_INVALID, "--nodes {}: give --mtbf or --job-mtbf, which it belongs to", asked.nodes);
  if (asked.nodes && ranks % asked.nodes)
    fail(ORR_INVALID, "--nodes {}: hosts have equally many ranks, but it does not divide -n {}",
         asked.nodes, ranks);
}

nlohmann::json options_of(const PlanChoice& asked) {
  return {{"diff", asked.diff},         {"digest", asked.digest}, {"json", asked.json},
          {"layouts", asked.layouts},   {"search", asked.search}, {"rank", asked.rank},
          {"seconds", asked.seconds},   {"fit", asked.fit},       {"memory", asked.memory},
          {"machine", asked.machine},   {"ops", asked.ops},       {"svg", asked.svg},
          {"details", asked.details},   {"next", asked.next},     {"must_fit", asked.must_fit},
          {"steps", asked.steps},       {"tokens", asked.tokens}, {"mtbf", asked.mtbf},
          {"job_mtbf", asked.job_mtbf}, {"nodes", asked.nodes}};
}

// What the first lines of a plan say, and how much follows them.
void add_answers(CLI::App* command, PlanChoice& asked) {
  command->add_flag("--details", asked.details,
                    "Print all tables and pictures behind the answer, however long they are");
  command->add_flag(
      "--next", asked.next,
      "Plan changes that may help, however long that takes; small plans do so anyway");
  command->add_flag("--must-fit", asked.must_fit,
                    "End with exit code 78 if a rank's memory does not hold the plan");
  CLI::Option* steps =
      command->add_option("--steps", asked.steps, "Print what so many steps take, as 1e5")
          ->check(CLI::PositiveNumber);
  command->add_option("--tokens", asked.tokens, "Print what so many tokens take, as 15e12")
      ->check(CLI::PositiveNumber)
      ->excludes(steps);
}

// What failures of hosts cost.
void add_failures(CLI::App* command, PlanChoice& asked) {
  CLI::Option* mtbf = command->add_option(
      "--mtbf", asked.mtbf, "Mean time between failures of one host, in hours: print the goodput");
  command->add_option("--job-mtbf", asked.job_mtbf, "The same of the whole job, all hosts together")
      ->excludes(mtbf);
  command->add_option("--nodes", asked.nodes,
                      "Of --mtbf: how many hosts there are; else by ranks_per_host of the machine");
}

// What is about the answer goes with no other text; --must-fit may also refuse what --json prints.
void separate_answers(CLI::App* command) {
  for (const char* other : {"--diff", "--digest", "--layouts", "--search"})
    for (const std::string failures : {"--mtbf", "--job-mtbf"})
      command->get_option(failures)->excludes(command->get_option(other));
  // A search has details of its own.
  const std::set<std::pair<std::string, std::string>> together = {{"--json", "--must-fit"},
                                                                  {"--search", "--details"}};
  for (const std::string other : {"--diff", "--digest", "--layouts", "--search", "--json"})
    for (const std::string answer : {"--details", "--next", "--steps", "--tokens", "--must-fit"})
      if (!together.count({other, answer}))
        command->get_option(answer)->excludes(command->get_option(other));
}

}  // namespace

void add_plan(CLI::App& app, int& exit_code) {
  auto choice = std::make_shared<Choice>();
  auto asked = std::make_shared<PlanChoice>();
  CLI::App* command =
      app.add_subcommand("plan", R"(Print what a script's step will do, and run nothing
Examples:
  orrery plan examples/gpt.lua
  orrery plan -n 512 examples/gpt2.lua
  orrery plan -n 4 --diff --rank 1 examples/pipeline.lua
  orrery plan -n 4 --layouts examples/zero.lua
  orrery plan -n 8 --fit 16GiB examples/gpt-3d.lua)");
  add_common(command, *choice);
  command->add_option("--svg", asked->svg,
                      "Draw the order of work of the model's stages into this file");
  command->add_option(
      "--machine", asked->machine,
      "A machine that comes with Orrery, as h100, or a file with its speed in JSON, "
      "as examples/machine.lua measures it");
  add_answers(command, *asked);
  add_failures(command, *asked);
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
  command
      ->add_flag("--layouts", asked->layouts,
                 "Print how every state and result of a rank lies over the ranks")
      ->excludes(json)
      ->excludes(diff);
  command->add_option("--rank", asked->rank, "The rank that --diff and --layouts show")
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
      ->add_option("--memory", asked->memory, "Memory of a rank, as 80GiB; else the machine file's")
      ->transform(CLI::AsSizeValue(true));
  command
      ->add_option("--seconds", asked->seconds,
                   "Of --search: when to stop, with what seems best planned first; 0: at the end")
      ->check(CLI::NonNegativeNumber)
      ->needs(search)
      ->capture_default_str();
  separate_answers(command);
  command->callback([choice, asked, command, &exit_code] {
    const Watchdog watchdog = watch_plugins();
    check_ranks(choice->ranks);
    check_names(*command, *choice);
    tell_unused();
    check_plan(*command, *asked, choice->ranks);
    if (choice->help) return print_script_help(*choice);
    if (asked->json) planner().out = keep_stdout(STDERR_FILENO);
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
