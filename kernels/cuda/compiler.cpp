// SPDX-License-Identifier: Apache-2.0
#include "compiler.h"

#include <nvrtc.h>

#include <memory>
#include <optional>
#include <vector>

#include <orrery/sdk/plugin.hpp>

#include "library.h"
#include "shared/disk_cache.h"
#include "start_cost.h"

namespace orr_cuda {
namespace {

// clang-format off
#define ORR_NVRTC_FUNCTIONS(X)                                                                    \
  X(nvrtcCreateProgram) X(nvrtcDestroyProgram) X(nvrtcCompileProgram) X(nvrtcGetErrorString)      \
  X(nvrtcGetProgramLogSize) X(nvrtcGetProgramLog) X(nvrtcGetCUBINSize) X(nvrtcGetCUBIN)           \
  X(nvrtcGetPTXSize) X(nvrtcGetPTX) X(nvrtcGetNumSupportedArchs) X(nvrtcGetSupportedArchs)        \
  X(nvrtcVersion)
// clang-format on

struct Library {
  Library() {
    void* library =
        open_library("ORRERY_NVRTC_LIBRARY", {"libnvrtc.so.13", "libnvrtc.so.12"},
                     "libnvrtc.so.13 was not found: install the CUDA toolkit's run-time "
                     "compiler, or name it with ORRERY_NVRTC_LIBRARY");
    ORR_NVRTC_FUNCTIONS(ORR_NEED)
  }
  ORR_NVRTC_FUNCTIONS(ORR_MEMBER)
};

const Library& library() {
  static const Library opened;
  return opened;
}

void check_nvrtc(nvrtcResult code, const char* what) {
  if (code != NVRTC_SUCCESS)
    throw orr::Error(ORR_FAILED, std::string(what) + ": " + library().nvrtcGetErrorString(code));
}

#define ORR_NVRTC(name, ...) check_nvrtc(library().name(__VA_ARGS__), #name)

std::vector<std::string> options_for(int arch, bool ptx) {
  return {"--gpu-architecture=" + std::string(ptx ? "compute_" : "sm_") + std::to_string(arch),
          "--std=c++17", "--fmad=false"};
}

}  // namespace

int newest_known(int device) {
  int count = 0;
  ORR_NVRTC(nvrtcGetNumSupportedArchs, &count);
  std::vector<int> known(static_cast<size_t>(count));
  ORR_NVRTC(nvrtcGetSupportedArchs, known.data());
  int best = 0;
  for (int arch : known)
    if (arch <= device && arch > best) best = arch;
  if (best == 0)
    throw orr::Error(ORR_UNAVAILABLE, "this NVRTC compiles for no GPU as old as sm_" +
                                          std::to_string(device) +
                                          ": install an older CUDA toolkit");
  return best;
}

Compiled compile(const std::string& source, int arch, bool ptx) {
  const Library& lib = library();
  nvrtcProgram program = nullptr;
  ORR_NVRTC(nvrtcCreateProgram, &program, source.c_str(), "pointwise.cu", 0, nullptr, nullptr);
  const std::unique_ptr<nvrtcProgram, decltype(lib.nvrtcDestroyProgram)> owned(
      &program, lib.nvrtcDestroyProgram);
  const auto take = [&](auto size_of, auto get, const char* what) {
    size_t size = 0;
    check_nvrtc(size_of(program, &size), what);
    std::string text(size, '\0');
    check_nvrtc(get(program, text.data()), what);
    return text;
  };
  const std::vector<std::string> options = options_for(arch, ptx);
  std::vector<const char*> texts;
  for (const std::string& option : options) texts.push_back(option.c_str());
  const nvrtcResult code =
      lib.nvrtcCompileProgram(program, static_cast<int>(texts.size()), texts.data());
  // Without the NUL at its end.
  const std::string log =
      take(lib.nvrtcGetProgramLogSize, lib.nvrtcGetProgramLog, "nvrtcGetProgramLog").c_str();
  if (code != NVRTC_SUCCESS)
    throw orr::Error(ORR_FAILED, "NVRTC refused a generated kernel: " + log);
  return {ptx ? take(lib.nvrtcGetPTXSize, lib.nvrtcGetPTX, "nvrtcGetPTX")
              : take(lib.nvrtcGetCUBINSize, lib.nvrtcGetCUBIN, "nvrtcGetCUBIN"),
          log};
}

std::string image_key(const std::string& source, int arch, bool ptx) {
  int major = 0, minor = 0;
  ORR_NVRTC(nvrtcVersion, &major, &minor);
  std::string key = "NVRTC " + std::to_string(major) + "." + std::to_string(minor);
  for (const std::string& option : options_for(arch, ptx)) key += " " + option;
  return key + "\n" + source;
}

std::string image_of(const std::string& source, int arch, bool ptx) {
  const std::string key = image_key(source, arch, ptx);
  const orr_kernels::DiskCache cache("cuda");
  const orr_kernels::DiskCache::Lock lock(cache, key);
  if (std::optional<std::string> kept = cache.kept(key)) return *std::move(kept);
  std::string image = compile(source, arch, ptx).image;
  start_cost().compiled();
  cache.keep(key, image);
  return image;
}

}  // namespace orr_cuda
