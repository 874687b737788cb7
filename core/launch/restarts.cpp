// SPDX-License-Identifier: Apache-2.0
#include "launch/restarts.h"

#include <algorithm>

#include "base/error.h"

namespace orrery {

using std::chrono::seconds;

seconds Restarts::next_wait(std::chrono::steady_clock::duration lasted) {
  constexpr seconds first{1}, longest{60}, progress{10};
  wait_ = lasted >= progress ? first : std::clamp(2 * wait_, first, longest);
  return wait_;
}

int Restarts::use_one(std::chrono::steady_clock::duration lasted, Front& front) {
  const seconds wait = next_wait(lasted);
  --left_;
  front.say(fmt::format("orrery: starting again in {} s, {} restart{} left after this one",
                        wait.count(), left_, left_ == 1 ? "" : "s"));
  const int signal = front.wait_for_signal(wait);
  if (signal)
    front.say(
        fmt::format("orrery: signal {} to the launcher: the job does not start again", signal));
  return signal;
}

}  // namespace orrery
