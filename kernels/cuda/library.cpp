// SPDX-License-Identifier: Apache-2.0
#include "library.h"

#include <dlfcn.h>

#include <cstdlib>

#include <orrery/sdk/plugin.hpp>

namespace orr_cuda {
namespace {

[[noreturn]] void unavailable(const std::string& why) { throw orr::Error(ORR_UNAVAILABLE, why); }

void* load(const char* file) { return dlopen(file, RTLD_NOW | RTLD_LOCAL); }

}  // namespace

void* open_library(const char* variable, std::initializer_list<const char*> usual,
                   const std::string& missing) {
  if (const char* named = std::getenv(variable)) {
    if (void* handle = load(named)) return handle;
    unavailable(std::string(variable) + " names a library that cannot be loaded: " + dlerror());
  }
  for (const char* file : usual) {
    if (void* handle = load(file)) return handle;
    const std::string why = dlerror();
    if (why.find("cannot open shared object file") == std::string::npos)
      unavailable(std::string(file) + " cannot be loaded: " + why);
  }
  unavailable(missing);
}

void* find_symbol(void* library, const char* name) {
  void* found = dlsym(library, name);
  if (!found)
    unavailable(std::string("the library has no ") + name + ": it is too old for this plugin");
  return found;
}

}  // namespace orr_cuda
