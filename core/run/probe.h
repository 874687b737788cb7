// SPDX-License-Identifier: Apache-2.0
//
// Values and gradients that a step is asked for by name: the program of that step has them as
// further results. [main thread]
#pragma once

#include <string>
#include <vector>

#include "program/program.h"

namespace orrery {

inline constexpr const char* kGradientOf = "grad ";  // before the name of a value or parameter

// The names that steps which are built now are asked for.
const std::vector<std::string>& probed();

// Asks for these names, and those that are asked for already, during its lifetime.
class ProbeScope {
 public:
  explicit ProbeScope(const std::vector<std::string>& names);
  ~ProbeScope();
  ProbeScope(const ProbeScope&) = delete;

 private:
  std::vector<std::string> before_;
};

// Offers a value of the trace by its name ("NAME#2" if it is the second of this name), and returns
// what stands for it from now on. REQUIRES: names are counted anew for each program.
ValueId offer(Program& p, ValueId x, const std::string& name);
void forget_offers();

// Throws Error, beginning with `line`, for a name that is no result of `p`.
void expect_probed(const Program& p, const std::string& line);

}  // namespace orrery
