// SPDX-License-Identifier: Apache-2.0
#include "lua/stopping.h"

#include "base/error.h"
#include "launch/stop_signal.h"
#include "store/checkpoint.h"

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

void stop_if_told(Run& run, const std::string& saved, bool in_series, const std::string& line) {
  const std::string& own = runtime_options().run_directory;
  if (saved.empty() && own.empty()) return end_by_user_signal();
  watch_stop_signals();
  const int signal = run.in_step() ? told_anywhere(line) : stop_signal();
  if (!signal) return;
  const std::string place = saved.empty() ? own + "/checkpoint"
                            : in_series   ? series_path(saved, run.steps_done())
                                          : saved;
  run.save(place, "", {false, in_series ? saved : "", {}});
  fail(ORR_RETRY, "stopped by signal {} after step {}; run:load \"{}\" continues from there",
       signal, run.steps_done(), place);
}

}  // namespace orrery::lua
