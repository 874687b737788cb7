// SPDX-License-Identifier: Apache-2.0
//
// What matters for speed on this machine, as the plugin's facts (facts.h). It is measured at the
// first use, in less than a second, and kept on disk for this CPU model and number of threads: of
// several processes at once one measures. No choice depends on it, so that no bits do.
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
