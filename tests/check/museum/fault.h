// SPDX-License-Identifier: Apache-2.0
//
// A bad plugin is the template of its kind with one function replaced. FAULT_NAME, from the command
// line, chooses the fault and is the plugin's name.
#pragma once

#include <orrery/plugin.h>

#include <cstdlib>
#include <string_view>

namespace {

constexpr bool fault(std::string_view name) { return name == FAULT_NAME; }

// Written to memory, so that no compiler leaves the allocation out.
[[maybe_unused]] void* volatile leaked;
[[maybe_unused]] void leak(size_t bytes) { leaked = std::malloc(bytes); }

// Ends by a signal, once its frames reach the end of the stack.
[[maybe_unused]] int deeper(volatile int* from) {
  volatile int here[256] = {};
  here[0] = from ? from[0] + 1 : 1;
  return here[0] ? deeper(here) + here[0] : 0;
}

}  // namespace

// Templates define their plugin at their end; here they must not.
#pragma push_macro("ORR_PLUGIN")
#undef ORR_PLUGIN
#define ORR_PLUGIN(...)
