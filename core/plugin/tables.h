// SPDX-License-Identifier: Apache-2.0
//
// Copies a plugin's table to the host's full size and fills its holes (NULL or missing functions),
// so that the core can call every function, whatever version of the headers the plugin was built
// with. Each function notes that the thread is in the plugin (plugin/inside.h), and turns an
// exception into a status.
#pragma once

#include <orrery/boot.h>
#include <orrery/checkpoint.h>
#include <orrery/comm.h>
#include <orrery/data.h>
#include <orrery/device.h>
#include <orrery/facts.h>
#include <orrery/kernel.h>
#include <orrery/observer.h>
#include <orrery/op.h>
#include <orrery/storage.h>
#include <orrery/strategy.h>

#include <memory>
#include <string>

namespace orrery {

// Makes the full copy. A hole that returns a status answers ORR_UNIMPLEMENTED, `probe` and
// `supports` answer score 0 with a reason, the others do nothing and answer zero. Throws
// Error(ORR_UNAVAILABLE) if the table's size cannot be true. `plugin` names it in errors. REQUIRES:
// T is one of the ten *_api. [main thread]
template <class T>
std::unique_ptr<T> complete_table(const void* table, const std::string& plugin);

}  // namespace orrery
