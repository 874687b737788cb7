// SPDX-License-Identifier: Apache-2.0
//
// See executable.h. Memory is first writable, then executable, never both. Kernels of the same
// expression share their code, so that it takes less of the instruction caches and the TLB.
#include "executable.h"

#include <sys/mman.h>
#include <orrery/sdk/plugin.hpp>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>

// A test builds the plugin with a protection that no system grants.
#ifndef ORR_CPU_EXECUTABLE
#define ORR_CPU_EXECUTABLE PROT_EXEC
#endif

namespace orr_cpu {
namespace {

void warn_once() {
  static const bool warned = [] {
    const std::string text = std::string("cpu: the system refuses executable memory (") +
                             std::strerror(errno) + "); pointwise expressions are interpreted";
    orr::host->log(ORR_LOG_WARN, text.c_str());
    return true;
  }();
  (void)warned;
}

std::shared_ptr<void> map(const std::string& code) {
  void* at = mmap(nullptr, code.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return warn_once(), nullptr;
  std::shared_ptr<void> owner(at, [n = code.size()](void* p) { munmap(p, n); });
  std::memcpy(at, code.data(), code.size());
  if (mprotect(at, code.size(), PROT_READ | ORR_CPU_EXECUTABLE)) return warn_once(), nullptr;
  return owner;
}

}  // namespace

std::shared_ptr<void> executable(const std::string& code) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<void>> known;
  if (code.empty()) return nullptr;
  std::lock_guard lock(mutex);
  std::erase_if(known, [](const auto& entry) { return entry.second.expired(); });
  if (auto shared = known[code].lock()) return shared;
  auto made = map(code);
  known[code] = made;
  return made;
}

}  // namespace orr_cpu
