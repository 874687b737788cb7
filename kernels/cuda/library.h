// SPDX-License-Identifier: Apache-2.0
//
// Opens libraries of CUDA at run time.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <initializer_list>
#include <orrery/sdk/plugin.hpp>
#include <string>
#include <vector>

namespace orr_cuda {

// The name of a function, which may be a macro for one of its versions.
#define ORR_TEXT_OF(name) #name
#define ORR_TEXT(name) ORR_TEXT_OF(name)

// A member for a function, and how a constructor finds it in `library`.
#define ORR_MEMBER(name) decltype(&::name) name = nullptr;
#define ORR_NEED(name) need(library, ORR_TEXT(name), name);

// Opens the library that the environment variable names, or else the first of `usual` that is
// found. It is never closed, because threads that a library starts may outlive its last user.
// Throws orr::Error (ORR_UNAVAILABLE), with `missing` if none is found.
inline void* open_library(const char* variable, std::initializer_list<const char*> usual,
                          std::string missing) {
  std::vector<const char*> files = usual;
  const char* named = std::getenv(variable);
  if (named) files = {named};
  for (const char* file : files) {
    if (void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL)) return library;
    const std::string why = dlerror();
    if (named)
      missing = std::string(variable) + " names a library that cannot be loaded: " + why;
    else if (why.find("cannot open shared object file") == std::string::npos)
      throw orr::Error(ORR_UNAVAILABLE, std::string(file) + " cannot be loaded: " + why);
  }
  throw orr::Error(ORR_UNAVAILABLE, missing);
}

// Finds a function. Throws orr::Error (ORR_UNAVAILABLE) if the library does not have it.
template <class F>
void need(void* library, const char* name, F*& to) {
  to = reinterpret_cast<F*>(dlsym(library, name));
  if (!to)
    throw orr::Error(ORR_UNAVAILABLE,
                     std::string("the library has no ") + name + ": it is too old for this plugin");
}

}  // namespace orr_cuda
