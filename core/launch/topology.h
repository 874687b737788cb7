// SPDX-License-Identifier: Apache-2.0
//
// The cores of this machine, ordered so that neighbours are close together. They are read with
// hwloc, so HWLOC_SYNTHETIC and HWLOC_XMLFILE can describe another machine.
#pragma once

#include <vector>

namespace orrery {

// The hardware threads of a core, as CPU numbers of the kernel.
using Core = std::vector<int>;

struct Topology {
  int packages = 1, nodes = 1;  // nodes: of memory (NUMA)
  bool here = true;             // this is the machine that the process runs on
  std::vector<Core> cores;      // cores of a node, and of a package, follow one another

  static Topology load();
  // The cores with only those threads that are in `cpus`; cores without such a thread are left out.
  // A CPU that belongs to no known core is a core by itself.
  std::vector<Core> allowed(const std::vector<int>& cpus) const;
};

}  // namespace orrery
