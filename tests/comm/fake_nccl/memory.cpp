// SPDX-License-Identifier: Apache-2.0
#include "memory.h"

#include <signal.h>
#include <sys/mman.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>

#include "misuse.h"
#include "stream.h"

namespace fake::memory {
namespace {

constexpr size_t page = 4096;

struct Allocation {
  size_t bytes = 0;
  char* bytes_at = nullptr;
  bool by_nccl = false;
  int windows = 0;
};

// Never destroyed: streams may outlive main.
struct Tables {
  std::mutex mutex;
  std::map<uintptr_t, Allocation> device;
  std::map<uintptr_t, size_t> pinned;
};
Tables& tables() {
  static Tables& all = *new Tables;
  return all;
}

size_t whole(size_t bytes) { return (bytes + page) / page * page; }

// An address of device memory that no other word of a kernel's arguments looks like: the driver
// knows addresses among them by their values alone. Four bytes of padding behind a number of four
// may hold half an address of the host's. So the upper halves here are none of the host's, and the
// lower halves no small numbers. No address is given out twice.
// REQUIRES: the caller holds the tables' mutex.
void* unmistakable(size_t size) {
  constexpr uintptr_t window = uintptr_t{1} << 32, lowest = uintptr_t{1} << 30;
  static uintptr_t next = 0x2e5c * window + lowest;
  if (next % window + size > window) next = (next / window + 1) * window + lowest;
  return reinterpret_cast<void*>(std::exchange(next, next + size));
}

Allocation* find(uintptr_t at, size_t bytes) {
  auto next = tables().device.upper_bound(at);
  if (next == tables().device.begin()) return nullptr;
  auto& [begin, a] = *std::prev(next);
  return at + bytes <= begin + a.bytes ? &a : nullptr;
}

// A fault on a device address is the host's mistake and gets its name.
void on_fault(int, siginfo_t* info, void*) {
  const auto at = reinterpret_cast<uintptr_t>(info->si_addr);
  if (find(at, 1)) misuse("host code touches device memory", "at " + std::to_string(at));
  signal(SIGSEGV, SIG_DFL);
}

void catch_faults() {
  static const bool once = [] {
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO;
    return sigaction(SIGSEGV, &action, nullptr) == 0;
  }();
  static_cast<void>(once);
}

}  // namespace

uintptr_t allocate(size_t bytes, bool by_nccl) {
  catch_faults();
  const size_t size = whole(bytes);
  std::lock_guard lock(tables().mutex);
  void* address =
      mmap(unmistakable(size), size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  void* place = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED || place == MAP_FAILED) return 0;
  madvise(place, size, MADV_HUGEPAGE);  // tests touch gigabytes
  tables().device[reinterpret_cast<uintptr_t>(address)] = {bytes, static_cast<char*>(place),
                                                           by_nccl, 0};
  return reinterpret_cast<uintptr_t>(address);
}

void release(uintptr_t address, bool by_nccl) {
  std::lock_guard lock(tables().mutex);
  auto at = tables().device.find(address);
  if (at == tables().device.end() || at->second.by_nccl != by_nccl)
    misuse("memory freed that is not there", by_nccl ? "ncclMemFree" : "cuMemFree");
  if (at->second.windows > 0) misuse("memory freed in use", "a window is registered on it");
  need_unused({at->second.bytes_at, at->second.bytes, true}, "memory freed in use");
  munmap(at->second.bytes_at, whole(at->second.bytes));
  munmap(reinterpret_cast<void*>(address), whole(at->second.bytes));
  tables().device.erase(at);
}

char* look_behind(const void* address, size_t bytes, size_t* bytes_left) {
  std::lock_guard lock(tables().mutex);
  const auto at = reinterpret_cast<uintptr_t>(address);
  Allocation* a = find(at, bytes);
  if (!a) return nullptr;
  const auto begin = std::prev(tables().device.upper_bound(at))->first;
  if (bytes_left) *bytes_left = a->bytes - (at - begin);
  return a->bytes_at + (at - begin);
}

char* behind(const void* address, size_t bytes, const char* who) {
  char* place = look_behind(address, bytes);
  if (!place)
    misuse("not device memory",
           std::string(who) + " got " + std::to_string(bytes) + " bytes elsewhere");
  return place;
}

bool is_nccl(const void* address, size_t bytes) {
  std::lock_guard lock(tables().mutex);
  const Allocation* a = find(reinterpret_cast<uintptr_t>(address), bytes);
  return a && a->by_nccl;
}

void add_window(const void* address, int change) {
  std::lock_guard lock(tables().mutex);
  if (Allocation* a = find(reinterpret_cast<uintptr_t>(address), 1)) a->windows += change;
}

void* allocate_pinned(size_t bytes) {
  void* place = std::aligned_alloc(page, whole(bytes));
  std::lock_guard lock(tables().mutex);
  tables().pinned[reinterpret_cast<uintptr_t>(place)] = bytes;
  return place;
}

void release_pinned(void* address) {
  std::lock_guard lock(tables().mutex);
  auto at = tables().pinned.find(reinterpret_cast<uintptr_t>(address));
  if (at == tables().pinned.end()) misuse("memory freed that is not there", "cuMemFreeHost");
  need_unused({static_cast<char*>(address), at->second, true}, "memory freed in use");
  tables().pinned.erase(at);
  std::free(address);
}

bool is_pinned(const void* address, size_t bytes) {
  std::lock_guard lock(tables().mutex);
  const auto at = reinterpret_cast<uintptr_t>(address);
  auto next = tables().pinned.upper_bound(at);
  return next != tables().pinned.begin() &&
         at + bytes <= std::prev(next)->first + std::prev(next)->second;
}

void need_pinned(const void* address, size_t bytes, const char* who) {
  if (is_pinned(address, bytes)) return;
  misuse("not pinned memory", std::string(who) + " would block the host on this memory");
}

}  // namespace fake::memory
