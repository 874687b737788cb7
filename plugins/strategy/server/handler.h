// SPDX-License-Identifier: Apache-2.0
//
// A server's side of the connection to one worker on another rank: a thread that receives the
// worker's requests and answers them from the reactor.
#pragma once

#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "channel.h"
#include "reactor.h"

namespace server {

class Handler {
 public:
  // Starts the thread. It ends when the worker has ended its session, or with an error, which also
  // stops the reactor.
  Handler(Reactor& reactor, const Channel& channel, int worker, const orr_driver_host& host)
      : reactor_(reactor), channel_(channel), worker_(worker) {
    thread_ = std::thread([this, &host] {
      host.begin_thread(host.self);
      try {
        serve();
      } catch (...) {
        reactor_.stop(std::current_exception());
      }
    });
  }
  ~Handler() { close(); }
  Handler(const Handler&) = delete;

  // Waits until the thread has ended. Returns how often it has put the worker off
  // (Reactor::weights).
  uint64_t close() {
    if (thread_.joinable()) thread_.join();
    return put_off_;
  }

 private:
  void serve() {
    std::vector<std::byte> values(reactor_.value_bytes(worker_));
    for (;;) {
      Request request{};
      channel_.recv(&request, sizeof request, "requests");
      if (request.kind == Arrival::push) {
        Facts facts(reactor_.facts());
        channel_.recv(facts.data(), facts.size() * sizeof(double), "numbers of a step");
        channel_.recv(values.data(), values.size(), "gradients");
        reactor_.push(worker_, request.clock, request.read, std::move(facts), values.data());
      } else if (answer(request) && request.kind == Arrival::end) {
        return;
      }
    }
  }

  // Answers a request for weights. Returns whether the weights were sent; if not, the worker is
  // told to ask again.
  bool answer(const Request& request) {
    std::vector<std::byte> weights(reactor_.weight_bytes());
    const int64_t version = reactor_.weights(static_cast<Arrival::Kind>(request.kind), worker_,
                                             request.clock, weights.data());
    channel_.send(&version, sizeof version, "version");
    if (version < 0)
      ++put_off_;
    else
      channel_.send(weights.data(), weights.size(), "weights");
    return version >= 0;
  }

  Reactor& reactor_;
  const Channel& channel_;
  int worker_;
  uint64_t put_off_ = 0;
  std::thread thread_;
};

}  // namespace server
