// SPDX-License-Identifier: Apache-2.0
#include "run/agree.h"
#include "run/run.h"
#include "store/weights.h"

namespace orrery {

void save_weights(const std::string& path, const std::vector<std::shared_ptr<State>>& states,
                  const std::vector<std::string>& names, const std::string& line) {
  const bool writing = world_info().rank == 0;
  materialize(states);
  std::vector<std::pair<std::string, HostTensor>> tensors;
  for (size_t i = 0; i < states.size(); ++i) {
    HostTensor value = read_state(*states[i]);
    if (writing) tensors.emplace_back(names[i], std::move(value));
  }
  std::string error;
  try {
    if (writing) write_weights(path, tensors);
  } catch (const std::exception& e) {
    error = e.what();
  }
  fail_together(error, "save_weights", line);
}

}  // namespace orrery
