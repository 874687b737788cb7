// SPDX-License-Identifier: Apache-2.0
//
// What an executor needs for a device that is not the host: the stream of its launches, exchanges,
// recorded launches, and the copies of inputs and outputs. A run ends when all the work that it
// enqueued is done. [main thread]
#pragma once

#include <functional>
#include <vector>

#include "run/device_exchanges.h"
#include "run/mirror.h"
#include "run/recording.h"

namespace orrery {

struct DeviceRun {
  // `place` returns a value's memory. REQUIRES: plan, posted and runtime outlive this object.
  DeviceRun(const RankPlan& plan, std::vector<Posted>& posted, Runtime& runtime,
            const std::function<orr_buffer(ValueId)>& place)
      : compute(runtime.device()),
        mirror(plan, runtime.device(), place),
        exchanges(plan, posted, runtime, compute),
        recording(plan, runtime.device(), compute),
        done(runtime.device()) {}

  void begin(const SharedArena& arena) {
    if (arena.moves() != moves_) recording.forget();
    moves_ = arena.moves();
    exchanges.begin();
    mirror.copy_in(compute);
  }
  // Throws the first error of the work that was enqueued.
  void end() {
    mirror.copy_out(compute);
    exchanges.finish();
    sync();
  }
  void sync() {
    done.record(compute);
    done.sync();
  }

  Stream compute;
  Mirror mirror;
  DeviceExchanges exchanges;
  Recording recording;
  Event done;

 private:
  int moves_ = 0;
};

}  // namespace orrery
