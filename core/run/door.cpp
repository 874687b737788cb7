// SPDX-License-Identifier: Apache-2.0
#include "run/door.h"

#include "run/thread_pool.h"

namespace orrery {

Door::Door(Reactor& reactor, const Line& line, int worker)
    : reactor_(reactor), line_(line), worker_(worker) {
  thread_ = std::thread([this] {
    ThreadPool::get().unpin();
    try {
      serve();
    } catch (...) {
      reactor_.stop(std::current_exception());
    }
  });
}

uint64_t Door::close() {
  if (thread_.joinable()) thread_.join();
  return put_off_;
}

void Door::serve() {
  std::vector<std::byte> values(reactor_.value_bytes(worker_));
  for (;;) {
    Letter letter{};
    line_.recv(&letter, sizeof letter, "letters");
    if (letter.kind == Arrival::push) {
      Reactor::Facts facts(reactor_.facts());
      line_.recv(facts.data(), facts.size() * sizeof(double), "numbers of a step");
      line_.recv(values.data(), values.size(), "gradients");
      reactor_.push(worker_, letter.clock, letter.read, std::move(facts), values.data());
    } else if (answer(letter) && letter.kind == Arrival::end) {
      return;
    }
  }
}

// Whether it has given the weights.
bool Door::answer(const Letter& letter) {
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

}  // namespace orrery
