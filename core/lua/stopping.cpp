// SPDX-License-Identifier: Apache-2.0
#include "lua/stopping.h"

#include "base/error.h"
#include "launch/stop_signal.h"

namespace orrery::lua {
namespace {

// The signal that any rank has got. Signals reach ranks at different times, but all must stop after
// the same step. Ranks that do not take steps together each stop at their own step, and meet when
// they save.
int told_anywhere(const std::string& line) {
  if (world_info().size == 1) return stop_signal();
  HostTensor told = HostTensor::make({ORR_I32, {1}});
  told.data<int32_t>()[0] = stop_signal();
  return world_allreduce(told, "max", line).data<int32_t>()[0];
}

}  // namespace

int told_to_stop(Run& run, const std::string& saved, const std::string& line) {
  if (saved.empty() && runtime_options().run_directory.empty()) {
    end_by_user_signal();
    return 0;
  }
  watch_stop_signals();
  return run.in_step() ? told_anywhere(line) : stop_signal();
}

}  // namespace orrery::lua
