// SPDX-License-Identifier: Apache-2.0
//
// A kernel plugin on the ops of a user's script: `orrery check FILE --script train.lua`.
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/process.h"
#include "base/text.h"
#include "conformance/kernel/compare.h"
#include "conformance/kernel/script_cases.h"
#include "conformance/kernel_parts.h"
#include "conformance/process.h"
#include "conformance/scripts.h"
#include "program/types.h"

namespace orrery::judge {
namespace {

using namespace kernel_suite;

// The oracle is a plain loop in f64.
constexpr double kMostFlops = 4e9;

std::string shapes_of(const Case& c) {
  std::string text;
  for (const orr_tensor& t : c.in)
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", kernel_suite::dtype_name(t.dtype),
                        to_string(Dims(t.dims, t.dims + t.rank)));
  return text;
}

// The ops of the script's step on one rank, with the plugin in front of all others.
std::vector<ScriptCase> planned(const Subject& subject) {
  const ScratchDirectory directory;
  const std::string file = directory.path() / "ops.json";
  std::vector<std::string> words = {"plan", "--ops", file};
  words.insert(words.end(), subject.script.begin(), subject.script.end());
  const Ended ended = run_orrery(words, {"ORRERY_PLUGIN_PATH=" + subject.path.string()}, 60);
  if (ended.code != 0 || ended.late)
    fail(ORR_INVALID, "--script {}: orrery plan {}:\n{}", join(subject.script, " "),
         ended.late ? "took more than 60 s" : describe_code(ended.code), ended.output);
  std::ostringstream json;
  json << std::ifstream(file).rdbuf();
  if (json.str().empty())
    fail(ORR_INVALID, "--script {}: it takes no step", join(subject.script, " "));
  return script_cases(json.str());
}

void judge_op(const Subject& subject, const ScriptCase& op) {
  const Case& c = op.c;
  if (op.flops > kMostFlops)
    fail(ORR_INVALID,
         "--script: {}{} takes {:.3g} GFLOP, too much for the judge's plain loops: give the script "
         "smaller sizes, such as batch=1 if it has that argument",
         op.where, c.kind, op.flops * 1e-9);
  const std::vector<Values> inputs = make_inputs(c, false, static_cast<uint32_t>(subject.seed));
  const RunResult r = run(subject.name(), c, inputs);
  std::string fault = trouble(r);
  if (fault.empty()) fault = distance(c, r.values, c.oracle(c, inputs));
  if (!fault.empty())
    throw Fault("ops.h: " + c.kind,
                fmt::format("{}the op, within rounding, of inputs {}", op.where, shapes_of(c)),
                fault);
}

void ops_of_script(const Subject& subject) {
  require_device(subject);
  int tried = 0;
  for (const ScriptCase& op : planned(subject))
    if (takes(kernel_of(subject), op.c)) judge_op(subject, op), ++tried;
  if (tried == 0) throw Skip("it takes none of the script's ops");
}

}  // namespace

std::vector<Test> script_tests() { return {{"kernel.script", 600, ops_of_script}}; }

}  // namespace orrery::judge
