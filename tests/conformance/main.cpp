// SPDX-License-Identifier: Apache-2.0
//
// What `orrery check` starts: a plugin on trial, a line per test, and for each failure what was
// expected, what came and which contract says so.
#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/program.h"
#include "conformance/runner.h"
#include "plugin/registry.h"

namespace orrery {
namespace {

using judge::Result;
using judge::State;

struct Choice {
  std::string file, only, test, body, argument;
  std::vector<std::string> script, file_of_data;
  uint64_t seed = 1;
  int ranks = 0;
  bool json = false, list = false;
};

const char* word(State state) {
  return state == State::kPassed ? "ok" : state == State::kFailed ? "FAILED" : "skipped";
}

// The last lines of a test's output, indented.
std::string tail_of(const std::string& output) {
  constexpr int lines = 8;
  size_t at = output.size();
  for (int i = 0; i <= lines && at != 0 && at != std::string::npos; ++i)
    at = output.rfind('\n', at - 1);
  std::string text = at == std::string::npos ? output : output.substr(at);
  for (size_t i = 0; (i = text.find('\n', i)) != std::string::npos && i + 1 < text.size(); i += 14)
    text.replace(i, 1, "\n             ");
  return text;
}

void print(const Result& r) {
  if (r.state == State::kSkipped) return;
  fmt::print("  {:<36} {:<7}{:6.2f} s\n", r.test, word(r.state), r.seconds);
  if (r.state == State::kFailed) {
    fmt::print("    contract {}\n    expected {}\n    got      {}\n", r.contract, r.expected,
               r.got);
    if (!r.output.empty()) fmt::print("    printed  {}\n", tail_of(r.output));
  }
  std::fflush(stdout);
}

// Skipped tests by their reason, since an op that a plugin does not claim takes several.
void print_skipped(const std::vector<Result>& results) {
  std::map<std::string, int> reasons;
  for (const Result& r : results)
    if (r.state == State::kSkipped) ++reasons[r.reason];
  for (const auto& [reason, n] : reasons) fmt::print("  {} skipped: {}\n", n, reason);
}

nlohmann::json to_json(const Result& r) {
  nlohmann::json out = {{"test", r.test}, {"state", word(r.state)}, {"seconds", r.seconds}};
  if (r.state == State::kSkipped) out["reason"] = r.reason;
  if (r.state != State::kFailed) return out;
  out.update(
      {{"contract", r.contract}, {"expected", r.expected}, {"got", r.got}, {"output", r.output}});
  return out;
}

std::vector<judge::Test> wanted_tests(const judge::Subject& subject, const Choice& choice) {
  std::vector<judge::Test> tests = judge::tests_of(subject);
  const std::string& only = choice.only;
  std::erase_if(tests, [&](const judge::Test& test) {
    return !only.empty() && test.name != only && !test.name.starts_with(only + ".");
  });
  if (tests.empty())
    fail(ORR_INVALID, "--only {}: this plugin has no such test; --list shows all", only);
  return tests;
}

std::vector<Result> try_all(const judge::Subject& subject, const Choice& choice) {
  std::vector<Result> results;
  for (const judge::Test& test : wanted_tests(subject, choice)) {
    results.push_back(judge::run_apart(subject, test));
    if (!choice.json) print(results.back());
  }
  return results;
}

judge::Subject examine(const Choice& choice) {
  judge::Subject subject = judge::examine(choice.file, choice.seed);
  subject.script = choice.script;
  if (!choice.script.empty() && !(subject.descriptor.kinds & ORR_KIND_KERNEL))
    fail(ORR_INVALID, "--script {}: only kernel plugins are tried on a script's ops",
         choice.script.front());
  subject.file = choice.file_of_data;
  if (!choice.file_of_data.empty() && !(subject.descriptor.kinds & ORR_KIND_DATA))
    fail(ORR_INVALID, "--file {}: only data plugins read a file", choice.file_of_data.front());
  return subject;
}

int list_tests(const Choice& choice) {
  const judge::Subject subject = examine(choice);
  for (const judge::Test& test : wanted_tests(subject, choice)) fmt::print("{}\n", test.name);
  return ORR_OK;
}

std::string kind_of(const judge::Subject& subject) {
  return kinds_text(subject.is_lua() ? uint32_t{ORR_KIND_STRATEGY} : subject.descriptor.kinds);
}

std::string title_of(const judge::Subject& subject) {
  const std::string name = fmt::format("{} '{}'", kind_of(subject), subject.name());
  return subject.is_lua() ? name : fmt::format("{} {}", name, subject.descriptor.version);
}

int judge_plugin(const Choice& choice) {
  const judge::Subject subject = examine(choice);
  if (!choice.json) fmt::print("{}: {}, seed {}\n", choice.file, title_of(subject), choice.seed);
  const std::vector<Result> results = try_all(subject, choice);
  const auto count = [&](State s) {
    return std::count_if(results.begin(), results.end(),
                         [&](const Result& r) { return r.state == s; });
  };
  const auto passed = count(State::kPassed), failed = count(State::kFailed),
             skipped = count(State::kSkipped);
  if (choice.json) {
    nlohmann::json list = nlohmann::json::array();
    for (const Result& r : results) list.push_back(to_json(r));
    fmt::print("{}\n", nlohmann::json{{"plugin", subject.name()},
                                      {"kind", kind_of(subject)},
                                      {"seed", choice.seed},
                                      {"passed", passed},
                                      {"failed", failed},
                                      {"skipped", skipped},
                                      {"tests", list}}
                           .dump(2));
  } else {
    print_skipped(results);
    fmt::print("{} passed, {} failed, {} skipped\n", passed, failed, skipped);
  }
  if (failed > 0) return ORR_FAILED;
  // What cannot work here has not been judged: all that passed is what every plugin has to.
  const bool judged = std::any_of(results.begin(), results.end(), [&](const Result& r) {
    return r.state == State::kPassed && (!choice.only.empty() || !r.test.starts_with("plugin."));
  });
  return judged ? ORR_OK : ORR_UNAVAILABLE;
}

int answer(const Choice& choice) {
  if (choice.test.empty() && choice.body.empty())
    return choice.list ? list_tests(choice) : judge_plugin(choice);
  const judge::Subject subject = examine(choice);
  if (choice.ranks > 0)
    return judge::start_ranks(subject, choice.ranks, choice.body, choice.argument);
  if (!choice.body.empty()) return judge::run_body(subject, choice.body, choice.argument);
  judge::run_here(subject, choice.test);
  return ORR_OK;
}

int run(int argc, char** argv) {
  Choice choice;
  CLI::App app(R"(Judge a plugin by the conformance suite
Examples:
  orrery check ./orrery-comm-mine.so
  orrery check ./orrery-comm-mine.so --only comm.collectives --seed 7
  orrery check ./orrery-kernel-mine.so --only kernel.script --script train.lua batch=2
  orrery check ./orrery-data-mine.so --file samples.bin width=4
  orrery check strategies/mine.lua)",
               "orrery check");
  app.add_option("plugin", choice.file, "The plugin's .so file, or the .lua file of a strategy")
      ->required();
  app.add_flag("--json", choice.json, "print JSON");
  app.add_option("--seed", choice.seed, "Source of every random choice")->capture_default_str();
  app.add_option("--only", choice.only,
                 "One test, or all of a family: comm.collectives, kernel.values");
  app.add_option("--script", choice.script,
                 "A kernel plugin is tried on the ops of this script as well; then the "
                 "script's key=value arguments")
      ->expected(1, -1);
  app.add_option("--file", choice.file_of_data,
                 "A data plugin is tried on this file as well; then the option=value words to "
                 "open it with")
      ->expected(1, -1);
  app.add_flag("--list", choice.list, "Print the names of the tests; nothing is tried");
  // How a trial starts itself: one test, and one rank of a test.
  app.add_option("--test", choice.test)->group("");
  app.add_option("--ranks", choice.ranks)->group("");
  app.add_option("--body", choice.body)->group("");
  app.add_option("--argument", choice.argument)->group("");
  int exit_code = ORR_OK;
  app.callback([&] { exit_code = answer(choice); });
  return parse(app, argc, argv, exit_code);
}

}  // namespace
}  // namespace orrery

int main(int argc, char** argv) { return orrery::run_program(argc, argv, orrery::run); }
