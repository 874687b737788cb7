// SPDX-License-Identifier: Apache-2.0
#include "launch/restarts.h"

#include <algorithm>

#include "base/error.h"
#include "launch/supervisor.h"

namespace orrery {

using std::chrono::seconds;

seconds Restarts::next_wait(std::chrono::steady_clock::duration lasted) {
  constexpr seconds first{1}, longest{60}, progress{10};
  wait_ = lasted >= progress ? first : std::clamp(2 * wait_, first, longest);
  return wait_;
}

int Restarts::use_one(std::chrono::steady_clock::duration lasted, JobSignals& signals) {
  const seconds wait = next_wait(lasted);
  --left_;
  Supervisor::say(fmt::format("orrery: starting again in {} s, {} restart{} left after this one",
                              wait.count(), left_, left_ == 1 ? "" : "s"));
  const int signal = signals.next_within(wait);
  if (signal)
    Supervisor::say(
        fmt::format("orrery: signal {} to the launcher: the job does not start again", signal));
  return signal;
}

}  // namespace orrery
