// SPDX-License-Identifier: Apache-2.0
#include "ending.h"

#include <cstdlib>
#include <exception>

#include <orrery/sdk/plugin.hpp>

namespace shared {
namespace {

// Set once the process runs its exit handlers: whoever wanted to part in order has done so before.
std::atomic<bool> exiting{false};

}  // namespace

Ending::Ending() {
  static const int registered = std::atexit([] { exiting = true; });
  static_cast<void>(registered);
}

bool Ending::end(int32_t code, const std::string& reason) {
  std::lock_guard lock(mutex_);
  if (ended_) return false;
  code_ = code;
  reason_ = reason;
  ended_ = true;
  return true;
}

void Ending::abort(int32_t code, const std::string& reason) {
  if (end(code, reason)) tell_peers(code, reason);
}

void Ending::fail(int32_t code, const std::string& reason) {
  abort(code, reason);
  check_alive();
  throw orr::Error(code, reason);
}

void Ending::check_alive() const {
  if (!ended_) return;
  std::lock_guard lock(mutex_);
  throw orr::Error(code_, reason_);
}

bool Ending::failing() const { return ended_ || exiting || std::uncaught_exceptions() > 0; }

}  // namespace shared
