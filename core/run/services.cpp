// SPDX-License-Identifier: Apache-2.0
//
// What run/ provides to the plugin room: the pool behind host/1 and the device "host".
#include "plugin/services.h"

#include "plugin/inside.h"
#include "run/host_device.h"
#include "run/thread_pool.h"

namespace orrery::services {

// The threads of the pool count as being in the plugin that the caller is in.
void parallel_for(int64_t n, void (*fn)(void*, int64_t), void* arg) {
  struct Call {
    void (*fn)(void*, int64_t);
    void* arg;
    PluginCall here;
  } call{fn, arg, Inside::here()};
  const auto run = [](void* of, int64_t i) {
    const Call& c = *static_cast<const Call*>(of);
    const Inside inside(c.here);
    c.fn(c.arg, i);
  };
  ThreadPool::get().run(n, run, &call);
}

int32_t threads() { return ThreadPool::get().threads(); }

const orr_device_api& host_device() { return orrery::host_device(); }

}  // namespace orrery::services
