// SPDX-License-Identifier: Apache-2.0
#include "function.h"

#include <map>
#include <vector>

#include <orrery/sdk/plugin.hpp>

#include <images.h>

// The first byte of each image.
#define ORR_DECLARE(name) \
  extern "C" __attribute__((visibility("hidden"))) const unsigned char orr_image_##name[];
ORR_IMAGES(ORR_DECLARE)

namespace orr_cuda {
namespace {

#define ORR_ADDRESS(name) orr_image_##name,
const unsigned char* const images[] = {ORR_IMAGES(ORR_ADDRESS) nullptr};

// Loaded once for the process's one device, never unloaded.
const std::vector<CUmodule>& modules() {
  static const std::vector<CUmodule> loaded = [] {
    std::vector<CUmodule> all;
    for (const unsigned char* const* image = images; *image; ++image)
      ORR_DRIVER(cuModuleLoadData, &all.emplace_back(), *image);
    return all;
  }();
  return loaded;
}

}  // namespace

Function find_function(const std::string& name) {
  static std::map<std::string, Function> found;
  Function& function = found[name];
  if (function) return function;
  for (CUmodule module : modules()) {
    const CUresult code = driver().cuModuleGetFunction(&function, module, name.c_str());
    if (code == CUDA_SUCCESS) return function;
    if (code != CUDA_ERROR_NOT_FOUND) check(code, "cuModuleGetFunction");
  }
  throw orr::Error(ORR_FAILED, "the cuda plugin has no device function '" + name + "'");
}

void allow_shared(Function function, unsigned bytes) {
  ORR_DRIVER(cuFuncSetAttribute, function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
             static_cast<int>(bytes));
}

void enqueue_packed(CUstream stream, Function function, Extent grid, Extent block,
                    unsigned shared_bytes, void** arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  ORR_DRIVER(cuLaunchKernel, function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
             shared_bytes, stream, arguments, nullptr);
}

}  // namespace orr_cuda
