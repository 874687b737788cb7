// SPDX-License-Identifier: Apache-2.0
//
// Modules of generated sources on the open device, each made once and kept. Compiling one takes a
// tenth of a second or more, and a program has dozens: they are asked for when ops are prepared,
// compiled by other threads meanwhile (as many as the host gives us), and loaded when they are
// first launched.
#pragma once

#include <cuda.h>

#include <string>

namespace orr_cuda {

// Begins to make the module of this source, unless that was done before. [main thread]
void request_module(const std::string& source);

// The module, once it is compiled and loaded. Throws what compiling threw. [main thread]
CUmodule module_of(const std::string& source);

// Loads all that were requested: a recording must not load any. [main thread]
void load_requested();

CUfunction function_of(CUmodule module, const char* name);

}  // namespace orr_cuda
