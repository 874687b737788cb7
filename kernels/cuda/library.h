// SPDX-License-Identifier: Apache-2.0
//
// Opens libraries of CUDA at run time.
#pragma once

#include <initializer_list>
#include <string>

namespace orr_cuda {

// The name of a function, which may be a macro for one of its versions.
#define ORR_TEXT_OF(name) #name
#define ORR_TEXT(name) ORR_TEXT_OF(name)

// Opens the library that the environment variable names, or else the first of `usual` that is
// found. It is never closed, because threads that a library starts may outlive its last user.
// Throws orr::Error (ORR_UNAVAILABLE), with `missing` if none is found.
void* open_library(const char* variable, std::initializer_list<const char*> usual,
                   const std::string& missing);

// The address of a function. Throws orr::Error (ORR_UNAVAILABLE) if the library does not have it.
void* find_symbol(void* library, const char* name);

template <class F>
void need(void* library, const char* name, F*& to) {
  to = reinterpret_cast<F*>(find_symbol(library, name));
}

// A member for a function of `library`, and how a constructor finds it.
#define ORR_MEMBER(name) decltype(&::name) name = nullptr;
#define ORR_NEED(name) need(library, ORR_TEXT(name), name);

}  // namespace orr_cuda
