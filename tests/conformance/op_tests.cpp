// SPDX-License-Identifier: Apache-2.0
//
// Ops of plugins, tried by scripts: in one process by orrery.check_op, and in training on 1 to 3
// ranks.
#include <fstream>

#include "base/error.h"
#include "base/process.h"
#include "conformance/loaded.h"
#include "conformance/process.h"
#include "conformance/scripts.h"
#include "edit/plugin_ops.h"

namespace orrery::judge {
namespace {

constexpr int kSeconds = 60;

std::vector<PluginOp> ops_of(const Subject& subject) {
  registry_with(subject);
  std::vector<PluginOp> found;
  for (const PluginOp& op : plugin_ops())
    if (op.plugin == subject.name()) found.push_back(op);
  return found;
}

// What is tried of the op, by check_op's word for it.
ScriptRun tried(const Subject& subject, const PluginOp& op, const std::string& what, int ranks) {
  const ScratchDirectory directory;
  const std::filesystem::path file = directory.path() / "op.lua";
  std::ofstream(file) << fmt::format(
      "local orrery = require \"orrery\"\norrery.check_op(\"{}\", \"{}\")\n", op.name, what);
  const Ended ended =
      run_orrery({"run", "-n", std::to_string(ranks), file.string()},
                 {"ORRERY_PLUGIN_PATH=" + subject.path.string(), "ORRERY_DEADLINE=10"}, kSeconds);
  return {ended.late ? ORR_DEADLINE : ended.code, ended.seconds, ended.output};
}

void description(const Subject& subject) {
  const std::vector<PluginOp> ops = ops_of(subject);
  if (ops.empty()) throw Fault("op.h: count", "at least one op", "none");
  for (const PluginOp& op : ops)
    if (op.summary.empty() || op.n_examples < 1)
      throw Fault("op.h: describe", "a summary and at least one example",
                  fmt::format("op '{}' with the summary '{}' and {} examples", op.name, op.summary,
                              op.n_examples));
}

std::string end_of(const ScriptRun& run) {
  if (run.code == ORR_DEADLINE) return fmt::format("no end after {} s", kSeconds);
  return fmt::format("{}: {}", describe_code(run.code), run.output);
}

void hold(const Subject& subject, const std::string& what, const std::string& contract,
          const std::string& expected) {
  for (const PluginOp& op : ops_of(subject)) {
    const ScriptRun run = tried(subject, op, what, 1);
    if (run.code != 0) throw Fault(contract, expected, end_of(run));
  }
}

void shape(const Subject& subject) {
  hold(subject, "shape", "op.h: shape", "a result of the shape that `shape` says");
}
void gradient(const Subject& subject) {
  hold(subject, "gradient", "op.h: backward", "the slope that central differences in f64 show");
}
void second(const Subject& subject) {
  hold(subject, "second", "op.h: \"can be differentiated again\"",
       "the slope of the gradient that central differences in f64 show");
}

void factors(const Subject& subject) {
  hold(subject, "factors", "op.h: factors",
       "parts of the result from parts of the inputs, along each dim that has a factor");
}

void parts(const Subject& subject) {
  hold(subject, "parts", "op.h: on_parts",
       "the whole results of ranks that have parts of the inputs, along each dim of part_factors");
}

void known(const Subject& subject) {
  hold(subject, "known", "op.h: kernel", "by a kernel what the known ops of `forward` make");
}

void training(const Subject& subject) {
  for (const PluginOp& op : ops_of(subject)) {
    const ScriptRun alone = tried(subject, op, "training", 1);
    const char* contract = "op.h: \"the same arguments on all ranks, and again\"";
    if (alone.code != 0) throw Fault(contract, "three steps on one rank", end_of(alone));
    for (int ranks : {2, 3}) {
      const ScriptRun run = tried(subject, op, "training", ranks);
      if (run.code != 0)
        throw Fault(contract, fmt::format("three steps on {} ranks", ranks), end_of(run));
      if (alone.bits() != run.bits())
        throw Fault(contract, fmt::format("the bits of one rank on {}: {}", ranks, alone.bits()),
                    run.bits());
    }
  }
}

}  // namespace

std::vector<Test> op_tests() {
  return {{"op.describe", 10, description},        {"op.shape", 4 * kSeconds, shape},
          {"op.gradient", 4 * kSeconds, gradient}, {"op.second", 4 * kSeconds, second},
          {"op.factors", 4 * kSeconds, factors},   {"op.parts", 4 * kSeconds, parts},
          {"op.known", 4 * kSeconds, known},       {"op.training", 4 * kSeconds, training}};
}

}  // namespace orrery::judge
