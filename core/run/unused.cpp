// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"
#include "run/run_states.h"
#include "run/runtime.h"
#include "store/file.h"

namespace orrery {

void RunStates::tell_unused() const {
  constexpr size_t most = 3;
  if (ranks_ > 1 && world_info().rank > 0) return;
  std::vector<std::string> names;
  std::string directory;
  for (auto& [name, loaded] : pending_)
    if (loaded.from->of_plugin()) {
      names.push_back("'" + name + "'");
      directory = loaded.from->directory();
    }
  if (names.empty()) return;
  const size_t more = names.size() - std::min(names.size(), most);
  names.resize(names.size() - more);
  if (more > 0) names.push_back(fmt::format("{} more", more));
  tell_once(
      fmt::format("{}: checkpoint '{}' has tensors that the step does not use: {}; is a state "
                  "called otherwise here?",
                  spec_.line, directory, join(names, ", ")));
}

}  // namespace orrery
