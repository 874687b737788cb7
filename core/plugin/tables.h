// SPDX-License-Identifier: Apache-2.0
//
// A plugin's table, copied to the host's full size with every hole filled: no call through NULL,
// whatever version of the headers the plugin was built with.
#pragma once

#include <orrery/comm.h>
#include <orrery/device.h>
#include <orrery/kernel.h>
#include <orrery/observer.h>
#include <orrery/strategy.h>

#include <memory>

namespace orrery {

// Makes the full copy. A hole that returns a status answers ORR_UNIMPLEMENTED, `probe` and
// `supports` answer score 0 with a reason, the others do nothing and answer zero. Throws
// Error(ORR_UNAVAILABLE) if the table's size cannot be true. REQUIRES: T is one of the five *_api.
template <class T>
std::unique_ptr<T> complete_table(const void* table);

}  // namespace orrery
