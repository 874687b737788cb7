// SPDX-License-Identifier: Apache-2.0
#include "launch/front.h"

#include "base/error.h"

namespace orrery {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

void Front::say(const std::string& line) {
  err.add_line(line);
  flush();
}

void Front::flush() {
  out.flush();
  err.flush();
}

void Front::hurry(bool on) {
  out.hurry(on);
  err.hurry(on);
}

void Front::add_to(std::vector<pollfd>& fds) const {
  fds.push_back({signals.fd(), POLLIN, 0});
  for (const Outlet* o : {&out, &err})
    if (!o->is_empty()) fds.push_back({o->fd(), POLLOUT, 0});
}

int Front::wait_for_signal(milliseconds patience) {
  const auto end = Clock::now() + patience;
  for (;;) {
    if (const int signal = signals.next()) return signal;
    const auto left = std::chrono::ceil<milliseconds>(end - Clock::now()).count();
    if (left <= 0) return 0;
    std::vector<pollfd> fds;
    add_to(fds);
    poll(fds.data(), fds.size(), static_cast<int>(left));
    flush();
  }
}

int Front::finish(int code) {
  constexpr milliseconds patience{5000};
  if (const size_t lost = out.lost() + err.lost())
    say(fmt::format("orrery: {} bytes that the ranks printed are lost: nobody read them", lost));
  flush();
  for (auto last = Clock::now(); !out.is_empty() || !err.is_empty();) {
    const size_t before = out.bytes() + err.bytes();
    std::vector<pollfd> fds;
    add_to(fds);
    poll(fds.data(), fds.size(), 200);
    flush();
    const bool was_told = signals.told();
    if (signals.next() && !was_told) break;
    if (out.bytes() + err.bytes() < before) last = Clock::now();
    if (was_told && Clock::now() - last > patience) break;
  }
  return code;
}

}  // namespace orrery
