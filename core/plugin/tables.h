// SPDX-License-Identifier: Apache-2.0
//
// A plugin's table, copied to the host's full size with every hole filled: no call through NULL,
// whatever version of the headers the plugin was built with. Its functions note where the thread is
// (plugin/inside.h), and what a plugin throws becomes a status.
#pragma once

#include <orrery/comm.h>
#include <orrery/device.h>
#include <orrery/kernel.h>
#include <orrery/observer.h>
#include <orrery/op.h>
#include <orrery/strategy.h>

#include <memory>
#include <string>

namespace orrery {

// Makes the full copy. A hole that returns a status answers ORR_UNIMPLEMENTED, `probe` and
// `supports` answer score 0 with a reason, the others do nothing and answer zero. Throws
// Error(ORR_UNAVAILABLE) if the table's size cannot be true. `plugin` names it in errors. REQUIRES:
// T is one of the six *_api. [main thread]
template <class T>
std::unique_ptr<T> complete_table(const void* table, const std::string& plugin);

}  // namespace orrery
