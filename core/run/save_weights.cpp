// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "run/agree.h"
#include "run/run.h"
#include "run/saving.h"
#include "store/weights.h"

namespace orrery {

void save_weights(const std::string& path, const std::vector<WeightsFile>& files,
                  const std::string& line) {
  const bool writing = world_info().rank == 0;
  std::optional<WeightsWriter> writer;
  std::string error = error_of([&] {
    if (writing) writer.emplace(path, files.size() > 1);
  });
  fail_together(error, "save_weights", line);
  for (const WeightsFile& file : files) {
    materialize(file.states);
    std::vector<std::pair<std::string, HostTensor>> tensors;
    for (size_t i = 0; i < file.states.size(); ++i) {
      HostTensor value = read_state(*file.states[i]);
      if (writing) tensors.emplace_back(file.names[i], std::move(value));
    }
    error = error_of([&] {
      if (writing) writer->add(file.path, tensors);
    });
    fail_together(error, "save_weights", line);
  }
  error = error_of([&] {
    if (writing) writer->finish();
  });
  fail_together(error, "save_weights", line);
}

}  // namespace orrery
