// SPDX-License-Identifier: Apache-2.0
#include "generated.h"

#include <map>

#include "modules.h"

namespace orr_cuda {

Generated& Generated::of(const std::string& source, const std::string& name, bool vectors) {
  static std::map<CUmodule, Generated> kept;
  const CUmodule module = module_of(source);
  Generated& g = kept[module];
  g.name_ = name;
  if (!g.single) g.single = function_of(module, (name + "_single").c_str());
  if (!g.vector && vectors) g.vector = function_of(module, (name + "_vector").c_str());
  return g;
}

void Generated::add_op(const std::function<std::string()>& table_source) {
  if (table.empty() && ops > 0 && table_source) request_module(table = table_source());
  ++ops;
}

Function Generated::merged() {
  if (!many && !table.empty()) many = function_of(module_of(table), (name_ + "_many").c_str());
  return many;
}

void Generated::enqueue(CUstream stream, SmallLaunch& launch, bool by_vector, void** arguments) {
  const auto alone = [&] {
    enqueue_packed(stream, by_vector ? vector : single, {launch.blocks}, {launch.threads},
                   launch.shared, arguments);
  };
  const auto recording = recordings().find(stream);
  if (recording == recordings().end()) return alone();
  launch.many = by_vector || !vector ? merged() : nullptr;
  recording->second.add(launch, alone);
}

}  // namespace orr_cuda
