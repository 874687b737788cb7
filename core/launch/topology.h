// SPDX-License-Identifier: Apache-2.0
//
// The cores of this machine, in the order in which they lie beside each other. Read by hwloc, so
// that HWLOC_SYNTHETIC and HWLOC_XMLFILE describe another machine than this one.
#pragma once

#include <vector>

namespace orrery {

// The hardware threads of a core, by the kernel's numbers.
using Core = std::vector<int>;

struct Topology {
  int packages = 1, nodes = 1;  // nodes: of memory (NUMA)
  bool here = true;             // describes the machine that the process runs on
  std::vector<Core> cores;      // those of a node, and of a package, follow one another

  static Topology load();
  // Only what may be used: cores of which no thread is in `cpus` are left out. A CPU that belongs
  // to no core is one by itself.
  std::vector<Core> allowed(const std::vector<int>& cpus) const;
};

}  // namespace orrery
