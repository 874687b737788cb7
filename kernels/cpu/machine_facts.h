// SPDX-License-Identifier: Apache-2.0
//
// What matters for speed on this machine, as the plugin's facts (facts.h). Each time it is measured
// anew, in less than a second, and the best rates of all times are kept on disk for this CPU model
// and number of threads: what else the CPUs did on one day spoils no figure for good. No choice
// depends on it, so that no bits do.
#pragma once

#include <string>
#include <vector>

#include "kernel.h"

namespace orr_cpu {

struct Fact {
  std::string name, text;
};

// `plugin` names the folder of the cache; `widest` is the widest instruction set, or -1.
std::vector<Fact> machine_facts(const std::string& plugin, int widest);

}  // namespace orr_cpu
