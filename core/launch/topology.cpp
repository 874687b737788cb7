// SPDX-License-Identifier: Apache-2.0
#include "launch/topology.h"

#include <hwloc.h>

#include <algorithm>

namespace orrery {
namespace {

Core threads_of(hwloc_obj_t object) {
  Core core;
  for (int cpu = hwloc_bitmap_first(object->cpuset); cpu >= 0;
       cpu = hwloc_bitmap_next(object->cpuset, cpu))
    core.push_back(cpu);
  return core;
}

// Reads only what is needed below, without the hwloc components that open devices and displays.
hwloc_topology_t read_machine() {
  hwloc_topology_t machine;
  hwloc_topology_init(&machine);
  for (const char* component : {"x86", "pci", "opencl", "cuda", "nvml", "rsmi", "levelzero", "gl"})
    hwloc_topology_set_components(machine, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, component);
  hwloc_topology_set_all_types_filter(machine, HWLOC_TYPE_FILTER_KEEP_NONE);
  for (hwloc_obj_type_t type : {HWLOC_OBJ_PACKAGE, HWLOC_OBJ_CORE})
    hwloc_topology_set_type_filter(machine, type, HWLOC_TYPE_FILTER_KEEP_ALL);
  if (hwloc_topology_load(machine) == 0) return machine;
  hwloc_topology_destroy(machine);
  return nullptr;
}

}  // namespace

Topology Topology::load() {
  Topology t;
  const hwloc_topology_t machine = read_machine();
  if (!machine) return t;  // without cores: every CPU counts as a core by itself
  const auto count = [&](hwloc_obj_type_t type) { return hwloc_get_nbobjs_by_type(machine, type); };
  t.packages = std::max(1, count(HWLOC_OBJ_PACKAGE));
  t.nodes = std::max(1, count(HWLOC_OBJ_NUMANODE));
  t.here = hwloc_topology_is_thissystem(machine);
  const hwloc_obj_type_t unit = count(HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
  for (int i = 0; i < count(unit); ++i)
    t.cores.push_back(threads_of(hwloc_get_obj_by_type(machine, unit, static_cast<unsigned>(i))));
  hwloc_topology_destroy(machine);
  return t;
}

std::vector<Core> Topology::allowed(const std::vector<int>& cpus) const {
  std::vector<Core> found;
  std::vector<int> rest = cpus;
  for (const Core& core : cores) {
    Core mine;
    for (int cpu : core)
      if (std::erase(rest, cpu)) mine.push_back(cpu);
    if (!mine.empty()) found.push_back(std::move(mine));
  }
  for (int cpu : rest) found.push_back({cpu});
  return found;
}

}  // namespace orrery
