// SPDX-License-Identifier: Apache-2.0
//
// Opening a library of CUDA's at run time.
#pragma once

#include <initializer_list>
#include <string>

namespace orr_cuda {

// The name of a function that may be a macro for one of its versions.
#define ORR_TEXT_OF(name) #name
#define ORR_TEXT(name) ORR_TEXT_OF(name)

// The library that the environment variable names, or else the first of `usual` that is found.
// Never closed: what a library starts outlives its last user. Throws orr::Error, ORR_UNAVAILABLE:
// with `missing` if there is none of them.
void* open_library(const char* variable, std::initializer_list<const char*> usual,
                   const std::string& missing);

// The address of a function. Throws orr::Error, ORR_UNAVAILABLE, if the library has none.
void* find_symbol(void* library, const char* name);

template <class F>
void need(void* library, const char* name, F*& to) {
  to = reinterpret_cast<F*>(find_symbol(library, name));
}

}  // namespace orr_cuda
