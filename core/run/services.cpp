// SPDX-License-Identifier: Apache-2.0
//
// What run/ provides to the plugin room: the pool behind host/1 and the device "host".
#include "plugin/services.h"

#include "run/host_device.h"
#include "run/thread_pool.h"

namespace orrery::services {

void parallel_for(int64_t n, void (*fn)(void*, int64_t), void* arg) {
  ThreadPool::get().run(n, fn, arg);
}

int32_t threads() { return ThreadPool::get().threads(); }

const orr_device_api& host_device() { return orrery::host_device(); }

}  // namespace orrery::services
