// SPDX-License-Identifier: Apache-2.0
//
// A kernel plugin against the oracles of every op that it claims.
#include <algorithm>
#include <cstring>
#include <map>

#include "base/error.h"
#include "conformance/kernel/cases.h"
#include "conformance/kernel/compare.h"
#include "conformance/kernel/device.h"
#include "conformance/kernel/leaves.h"
#include "conformance/kernel_parts.h"
#include "conformance/loaded.h"
#include "run/thread_pool.h"

namespace orrery::judge {
using namespace kernel_suite;
namespace {

void probe(const Subject& subject) {
  const orr_kernel_api& api = kernel_of(subject);
  char reason[96];
  std::memset(reason, 'x', sizeof reason);
  const int32_t score = api.probe(api.self, reason, sizeof reason);
  if (!std::memchr(reason, 0, sizeof reason) && score <= 0)
    throw Fault("kernel.h: \"Score 0 with a reason\"", "a terminated reason", "one without an end");
  if (!std::memchr(api.device, 0, sizeof api.device) || !api.device[0])
    throw Fault("kernel.h: \"the device it works on\"", "the name of a device", "none");
}

std::vector<Values> inputs_of(const Subject& subject, const Case& c, bool exact) {
  return make_inputs(c, exact, static_cast<uint32_t>(subject.seed));
}

void expect(const std::string& contract, const Case& c, const std::string& what,
            const std::string& fault) {
  if (!fault.empty()) throw Fault(contract, fmt::format("{}: {}", c.name(), what), fault);
}

RunResult run_clean(const Subject& subject, const Case& c, const std::vector<Values>& inputs,
                    const RunOptions& options = {}) {
  RunResult r = run(subject.name(), c, inputs, options);
  expect("kernel.h: launch, \"one buffer per tensor of the op\"", c,
         "a launch without error that writes its outputs and nothing else",
         r.unsupported.empty() ? trouble(r) : "");
  return r;
}

void values(const Subject& subject, const Case& c) {
  for (bool exact : {true, false}) {
    if (exact && !c.exact) continue;
    const std::vector<Values> inputs = inputs_of(subject, c, exact);
    const RunResult r = run_clean(subject, c, inputs);
    const std::string contract = "ops.h: " + c.kind;
    if (exact)
      expect(contract, c, "of small integers exactly the op",
             difference(r.values, kernel_suite::expected(c, inputs)));
    else
      expect(contract, c, "the op, within rounding", distance(c, r.values, c.oracle(c, inputs)));
  }
}

void expect_bits(const Case& c, const std::string& what, const RunResult& got,
                 const RunResult& want) {
  expect("host.h: \"Results must not depend on which thread makes a call\"", c,
         "the same bits " + what,
         got.bits == want.bits ? "" : "other bits: " + difference(got.values, want.values));
}

void bits(const Subject& subject, const Case& c) {
  const std::vector<Values> inputs = inputs_of(subject, c, false);
  ThreadPool::get().configure(2);
  const RunResult whole = run_clean(subject, c, inputs);
  expect_bits(c, "shifted by an element", run_clean(subject, c, inputs, {.misalign = 1}), whole);
  if (whole.support.inplace)
    expect_bits(c, "in place", run_clean(subject, c, inputs, {.inplace = whole.support.inplace}),
                whole);
  if (whole.support.capturable)
    expect_bits(c, "recorded", run_clean(subject, c, inputs, {.recorded = true}), whole);
  ThreadPool::get().configure(1);
  expect_bits(c, "on one thread", run_clean(subject, c, inputs), whole);
}

void rows(const Subject& subject, const Case& c) {
  const std::vector<Values> inputs = inputs_of(subject, c, false);
  const RunResult whole = run_clean(subject, c, inputs);
  for (const Axis& axis : c.axes)
    for (int64_t n : {1, 2, 3, 64, 255})
      for (int64_t first : {int64_t{0}, 256 - n}) {
        if (axis.prefix && first > 0) continue;
        std::vector<Values> some;
        for (size_t i = 0; i < inputs.size(); ++i)
          some.push_back(part(c.in[i], inputs[i], axis.in[i], first, n));
        const RunResult r = run_clean(subject, part(c, axis, n), some);
        // Another layout may be another id: `part` is contiguous.
        if (std::string_view(r.support.numerics) != whole.support.numerics) continue;
        for (size_t o = 0; o < c.out.size(); ++o)
          if (r.bits.empty() || r.bits[o] != part(c.out[o], whole.bits[o], axis.out[o], first, n))
            throw Fault(
                "kernel.h: \"equal id = equal bits\" (batch invariance)",
                fmt::format("{}: rows {} .. {} alone have the bits that they have in the batch",
                            c.name(), first, first + n),
                r.bits.empty() ? "no support for so few: " + r.unsupported
                               : fmt::format("others in output {}", o));
      }
}

// An op without its leaves would break ranks that share a batch: claimed is claimed with them.
void leaves(const Subject& subject, const Case& c) {
  const auto seed = static_cast<uint32_t>(subject.seed);
  const char* tree = "ops.h: \"added in the binary tree over the leaf index\"";
  for (int64_t total : {1, 2, 3, 5, 8, 13})
    expect(tree, c, "leaves of one call as of single calls",
           leaves_of_one_call(subject.name(), c, total, seed));
  for (int64_t total : {6, 13})
    for (int64_t ranks : {2, 3, 5})
      expect("ops.h: \"The op writes every maximal node that the range completes\"", c,
             "nodes of ranks that give the sum of one",
             leaves_of_ranks(subject.name(), c, total, ranks, seed));
}

// The ops that a joined one stands for.
std::pair<Case, Case> apart(const Case& both) {
  if (both.kind == "pointwise_next") return {first_of(both), next_of(both)};
  return {matmul_of(both), pointwise_of(both)};
}

bool takes_apart(const Subject& subject, const Case& c) {
  const auto [first, second] = apart(c);
  return takes(kernel_of(subject), first) && takes(kernel_of(subject), second);
}

void is_as_two(const Subject& subject, const Case& c) {
  const auto [first, second] = apart(c);
  std::vector<Values> inputs = inputs_of(subject, c, false);
  const RunResult one = run_clean(subject, c, inputs);
  const auto own = inputs.begin() + long(first.in.size());
  RunResult two = run_clean(subject, first, {inputs.begin(), own});
  inputs.erase(inputs.begin(), own);
  inputs.insert(inputs.begin(), two.values[0]);
  const RunResult last = run_clean(subject, second, inputs);
  if (c.kind != "pointwise_next") two.bits.clear();  // the product is not stored
  two.bits.insert(two.bits.end(), last.bits.begin(), last.bits.end());
  if (one.bits != two.bits)
    throw Fault("ops.h: " + c.kind + ", \"The bits are those of the two ops\"",
                c.name() + ": the bits of the two ops", "other bits");
}

// All cases of one op that the plugin claims; Skip if there are none.
std::vector<Case> claimed(const Subject& subject, const std::string& kind,
                          bool (*wanted)(const Case&)) {
  std::vector<Case> found;
  for (Case& c : all_cases())
    if (c.kind == kind && wanted(c) && takes(kernel_of(subject), c)) found.push_back(std::move(c));
  if (found.empty()) throw Skip("it does not claim such cases");
  return found;
}

bool any(const Case&) { return true; }
bool has_axis(const Case& c) { return !c.axes.empty(); }
bool has_leaves(const Case& c) { return !c.leaf_in.empty(); }

using CaseTest = void (*)(const Subject&, const Case&);

std::function<void(const Subject&)> over_cases(const std::string& kind, bool (*wanted)(const Case&),
                                               CaseTest test) {
  return [=](const Subject& subject) {
    require_device(subject);
    for (const Case& c : claimed(subject, kind, wanted)) test(subject, c);
  };
}

// A plugin that claims a joined op gives the bits that it gives the two that it stands for.
std::function<void(const Subject&)> as_two(const std::string& kind) {
  return [=](const Subject& subject) {
    require_device(subject);
    std::vector<Case> cases = claimed(subject, kind, any);
    std::erase_if(cases, [&](const Case& c) { return !takes_apart(subject, c); });
    if (cases.empty()) throw Skip("it takes no such case apart");
    for (const Case& c : cases) is_as_two(subject, c);
  };
}

// What a newer host may ask for.
Case of_tomorrow(Case c, int way) {
  if (way == 0) c.kind += "_of_tomorrow";
  if (way == 1) c.out[0].dtype = 99;
  if (way == 2 && !c.in.empty()) c.in[0].dtype = 99;
  if (way == 2 && c.in.empty()) c.out[0].dtype = 99;
  if (way == 3) c.instrs.back().fn = 9999;
  return c;
}

// Score 0 and a reason, never a crash.
void refusals(const Subject& subject) {
  const orr_kernel_api& api = kernel_of(subject);
  const char* ways[] = {"an op of a newer header", "an output of dtype 99", "an input of dtype 99",
                        "function 9999"};
  for (const Case& c : all_cases())
    for (int way = 0; way < (c.instrs.empty() ? 3 : 4); ++way) {
      const Case odd = of_tomorrow(c, way);
      const AbiOp op(odd);
      orr_support support{};
      support.size = sizeof support;
      api.supports(api.self, &op.op, &support);
      if (support.score != 0 || !support.reason[0])
        throw Fault(
            "kernel.h: \"Score 0 means no, with the reason\"",
            fmt::format("{}: {} is refused with a reason", c.name(), ways[way]),
            support.score ? fmt::format("score {}", support.score) : "score 0 without a reason");
    }
}

// What the plugin says of each op that it claims.
void answers(const Subject& subject) {
  const orr_kernel_api& api = kernel_of(subject);
  for (const Case& c : all_cases()) {
    const AbiOp op(c);
    orr_support support{};
    support.size = sizeof support;
    api.supports(api.self, &op.op, &support);
    if (support.score <= 0) continue;
    const auto end = std::find(std::begin(support.numerics), std::end(support.numerics), '\0');
    expect("kernel.h: orr_support", c, "`numerics` with a name that ends",
           end == std::begin(support.numerics) ? "an empty one"
           : end == std::end(support.numerics) ? "one without an end"
                                               : "");
    if (support.inplace < 0 || support.inplace > op.op.n_in)
      throw Fault("kernel.h: orr_support", c.name() + ": `inplace` of an input, plus 1",
                  fmt::format("{} of {} inputs", support.inplace, op.op.n_in));
    orr_kernel_size size{};
    size.size = sizeof size;
    check(api.measure(api.self, &op.op, &size));
    if (size.workspace > uint64_t{1} << 40)
      throw Fault("kernel.h: measure", c.name() + ": a workspace that fits into a machine",
                  fmt::format("{} bytes", size.workspace));
  }
}

// An op that the plugin claims in full, so that somebody uses it.
void claims(const Subject& subject) {
  require_device(subject);
  for (const Case& c : all_cases())
    if (takes(kernel_of(subject), c)) return;
  if (subject.descriptor.kinds & ORR_KIND_OP) throw Skip("its kernels are for its own ops");
  if (kernel_of(subject).claim) throw Skip("its kernels are for groups of ops");
  throw Fault("kernel.h: supports", "a case of ops.h that it takes", "it takes none of them");
}

}  // namespace

const orr_kernel_api& kernel_of(const Subject& subject) {
  return registry_with(subject).kernel(subject.name());
}

void require_device(const Subject& subject) {
  const orr_kernel_api& api = kernel_of(subject);
  char reason[96] = "";
  if (api.probe(api.self, reason, sizeof reason) <= 0)
    throw Skip(fmt::format("it does not work here: {}", reason));
  try {
    Device::of(api);
  } catch (const Error& e) {
    if (e.code() != ORR_UNAVAILABLE && e.code() != ORR_INVALID) throw;
    throw Skip(
        fmt::format("the device '{}' that it works on is not here: {}", api.device, e.what()));
  }
}

bool takes(const orr_kernel_api& api, const Case& c) { return ask(api, c).score > 0; }

std::vector<Test> kernel_tests() {
  std::vector<Test> tests = {{"kernel.probe", 10, probe},
                             {"kernel.claims", 60, claims},
                             {"kernel.answers", 60, answers},
                             {"kernel.refusals", 30, refusals},
                             {"kernel.as_two.matmul_pointwise", 120, as_two("matmul_pointwise")},
                             {"kernel.as_two.pointwise_next", 120, as_two("pointwise_next")}};
  for (Test& test : kernel_contract_tests()) tests.push_back(std::move(test));
  struct Has {
    bool rows = false, leaves = false;
  };
  std::map<std::string, Has> kinds;
  for (const Case& c : all_cases())
    kinds[c.kind].rows |= has_axis(c), kinds[c.kind].leaves |= has_leaves(c);
  for (const auto& [kind, has] : kinds) {
    tests.push_back({"kernel.values." + kind, 300, over_cases(kind, any, values)});
    tests.push_back({"kernel.bits." + kind, 300, over_cases(kind, any, bits)});
    if (has.rows) tests.push_back({"kernel.rows." + kind, 300, over_cases(kind, has_axis, rows)});
    if (has.leaves)
      tests.push_back({"kernel.leaves." + kind, 300, over_cases(kind, has_leaves, leaves)});
  }
  for (auto family : {gradient_tests, bad_data_tests, kernel_training_tests})
    for (Test& test : family()) tests.push_back(std::move(test));
  return tests;
}

}  // namespace orrery::judge
