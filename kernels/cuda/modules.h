// SPDX-License-Identifier: Apache-2.0
//
// Modules of generated sources on the open device, each made once and kept. Compiling one takes a
// tenth of a second or more, and a program has dozens, which are prepared one after another. So all
// those that the plugin was asked about begin to be compiled when the first one is needed, by as
// many threads as the host gives us.
#pragma once

#include <cuda.h>

#include <string>

namespace orr_cuda {

// A program may soon need the module of this source; needs no device. [any thread]
void expect_module(const std::string& source);

// The module, once it is compiled and loaded. Throws what compiling threw. [main thread]
CUmodule module_of(const std::string& source);

// Begins to compile what only recordings need. [main thread]
void request_module(const std::string& source);
// Loads what was requested: a recording must not load any. [main thread]
void load_requested();

CUfunction function_of(CUmodule module, const char* name);

}  // namespace orr_cuda
