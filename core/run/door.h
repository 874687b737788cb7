// SPDX-License-Identifier: Apache-2.0
//
// Where one remote worker reaches a server: a thread that hears its letters and has the reactor
// handle them.
#pragma once

#include <cstdint>
#include <thread>

#include "run/line.h"
#include "run/reactor.h"

namespace orrery {

class Door {
 public:
  // Opens at once; closes itself when the worker has ended, or with an error, which stops the
  // reactor.
  Door(Reactor& reactor, const Line& line, int worker);
  // Waits for that. Returns how often it has put the worker off (Reactor::weights).
  uint64_t close();
  ~Door() { close(); }
  Door(const Door&) = delete;

 private:
  void serve();
  bool answer(const Letter& letter);
  Reactor& reactor_;
  const Line& line_;
  int worker_;
  uint64_t put_off_ = 0;
  std::thread thread_;
};

}  // namespace orrery
