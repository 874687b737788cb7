// SPDX-License-Identifier: Apache-2.0
//
// The trial: every test in a process of its own, so that a crash or an endless wait is a failed
// test and not the judge's end.
#pragma once

#include <string>
#include <vector>

#include "conformance/test.h"

namespace orrery::judge {

enum class State { kPassed, kFailed, kSkipped };

struct Result {
  std::string test;
  State state = State::kPassed;
  double seconds = 0;
  std::string contract, expected, got;  // of a failure
  std::string reason;                   // of a skipped test
  std::string output;                   // of a failure, what the test's processes printed
};

// The plugin in the file. Throws Error with the reason if it is none, or not to be trusted.
Subject examine(const std::filesystem::path& file, uint64_t seed);

// Runs one test in a process of its own. REQUIRES: main() hands `orrery check FILE --seed N --test
// NAME` to run_here.
Result run_apart(const Subject& subject, const Test& test);
// The other end: runs the test in this process and says what it found on `verdict_fd`.
void run_here(const Subject& subject, const std::string& name);

}  // namespace orrery::judge
