// SPDX-License-Identifier: Apache-2.0
//
// bits_of_cases PLUGIN: what a kernel plugin computes for each case that it takes, as a hash of its
// bits, and how far that is from the oracle if it is too far. Two machines whose kernels keep the
// contract print the same lines (tests/foreign/aarch64.py).
#include <fmt/format.h>

#include "conformance/kernel/cases.h"
#include "conformance/kernel/compare.h"

namespace {

using namespace kernel_suite;

// FNV-1a, 64 bits.
uint64_t hash_of(const std::vector<std::vector<uint8_t>>& outputs) {
  uint64_t hash = 14695981039346656037u;
  for (const std::vector<uint8_t>& bytes : outputs)
    for (uint8_t byte : bytes) hash = (hash ^ byte) * 1099511628211u;
  return hash;
}

void print(const std::string& plugin, const Case& c, bool exact) {
  const std::vector<Values> inputs = make_inputs(c, exact, 1);
  const RunResult r = run(plugin, c, inputs);
  if (!r.unsupported.empty()) return;
  std::string fault = trouble(r);
  if (fault.empty() && c.oracle) fault = distance(c, r.values, expected(c, inputs));
  fmt::print("{}{} {:016x} {}\n", c.name(), exact ? " exact" : "", hash_of(r.bits), fault);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return fmt::print(stderr, "usage: {} PLUGIN\n", argv[0]), 64;
  for (const Case& c : all_cases()) {
    print(argv[1], c, false);
    if (c.exact) print(argv[1], c, true);
  }
}
