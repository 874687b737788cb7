// SPDX-License-Identifier: Apache-2.0
//
// Where one remote worker reaches a server: a thread that hears its letters and has the reactor
// handle them.
#pragma once

#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "line.h"
#include "reactor.h"

namespace server {

class Door {
 public:
  // Opens at once; closes itself when the worker has ended, or with an error, which stops the
  // reactor.
  Door(Reactor& reactor, const Line& line, int worker, const orr_driver_host& host)
      : reactor_(reactor), line_(line), worker_(worker) {
    thread_ = std::thread([this, &host] {
      host.begin_thread(host.self);
      try {
        serve();
      } catch (...) {
        reactor_.stop(std::current_exception());
      }
    });
  }
  ~Door() { close(); }
  Door(const Door&) = delete;

  // Waits for that. Returns how often it has put the worker off (Reactor::weights).
  uint64_t close() {
    if (thread_.joinable()) thread_.join();
    return put_off_;
  }

 private:
  void serve() {
    std::vector<std::byte> values(reactor_.value_bytes(worker_));
    for (;;) {
      Letter letter{};
      line_.recv(&letter, sizeof letter, "letters");
      if (letter.kind == Arrival::push) {
        Facts facts(reactor_.facts());
        line_.recv(facts.data(), facts.size() * sizeof(double), "numbers of a step");
        line_.recv(values.data(), values.size(), "gradients");
        reactor_.push(worker_, letter.clock, letter.read, std::move(facts), values.data());
      } else if (answer(letter) && letter.kind == Arrival::end) {
        return;
      }
    }
  }

  // Whether it has given the weights.
  bool answer(const Letter& letter) {
    std::vector<std::byte> weights(reactor_.weight_bytes());
    const int64_t version = reactor_.weights(static_cast<Arrival::Kind>(letter.kind), worker_,
                                             letter.clock, weights.data());
    line_.send(&version, sizeof version, "version");
    if (version < 0)
      ++put_off_;
    else
      line_.send(weights.data(), weights.size(), "weights");
    return version >= 0;
  }

  Reactor& reactor_;
  const Line& line_;
  int worker_;
  uint64_t put_off_ = 0;
  std::thread thread_;
};

}  // namespace server
