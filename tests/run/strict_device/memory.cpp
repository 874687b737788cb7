// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <orrery/sdk/plugin.hpp>

#include "machine.h"

namespace strict {

void broken(const std::string& rule) { throw orr::Error(ORR_FAILED, "strict device: " + rule); }

void fatal(const std::string& rule) {
  std::fprintf(stderr, "strict device: %s\n", rule.c_str());
  std::abort();
}

Machine& Machine::get() {
  static Machine* const machine = new Machine;  // memory may be freed while the process ends
  return *machine;
}

void Machine::open() {
  if (open_) broken("opened twice");
  if (std::getenv("STRICT_ABSENT")) throw orr::Error(ORR_UNAVAILABLE, "no strict device here");
  open_ = true;
  if (std::getenv("STRICT_COUNTS"))
    std::atexit([] {
      const Counts& n = get().counts;
      std::fprintf(
          stderr, "strict device: launches %zu recorded %zu graphs %zu syncs %zu allocations %zu\n",
          size_t(n.launches), size_t(n.recorded), size_t(n.graphs), size_t(n.syncs),
          size_t(n.allocations));
    });
  if (const char* seed = std::getenv("STRICT_SEED")) random_ = std::strtoull(seed, nullptr, 10);
}

void Machine::must_be_open() const {
  if (!open_) broken("used before open");
}

orr_memory* Machine::allocate(int32_t tier, uint64_t bytes) {
  must_be_open();
  must_not_capture("allocate");
  if (tier != ORR_TIER_DEVICE && tier != ORR_TIER_PINNED)
    broken("it has no memory of tier " + std::to_string(tier));
  ++counts.allocations;
  const uint64_t handle = ++handles_;
  Allocation& a = allocations_[handle];
  a.bytes.resize(bytes);
  a.memory = std::make_unique<orr_memory>();
  *a.memory = {sizeof(orr_memory),
               tier,
               bytes,
               tier == ORR_TIER_PINNED ? a.bytes.data() : nullptr,
               reinterpret_cast<void*>(handle),
               "strict",
               nullptr};
  return a.memory.get();
}

void Machine::free(orr_memory* memory) {
  if (captures_ > 0 && capturing_ == std::this_thread::get_id())
    fatal("free while a stream is captured");
  const auto at = allocations_.find(reinterpret_cast<uint64_t>(memory->native));
  if (at == allocations_.end() || at->second.memory.get() != memory)
    fatal("free of memory that is not there");
  if (at->second.pending > 0) fatal("free of memory that pending work names");
  std::memset(at->second.bytes.data(), 0xd5, at->second.bytes.size());
  allocations_.erase(at);
}

uint64_t Machine::handle(const orr_buffer& b) {
  if (!b.memory) broken("a buffer without memory");
  if (b.memory->tier == ORR_TIER_HOST || b.memory->tier == ORR_TIER_COMM) return 0;
  const uint64_t handle = reinterpret_cast<uint64_t>(b.memory->native);
  const auto at = allocations_.find(handle);
  if (at == allocations_.end()) broken("use of memory that was freed");
  if (b.offset + b.bytes > at->second.bytes.size() || b.offset + b.bytes < b.offset)
    broken("a buffer ends " + std::to_string(b.offset + b.bytes) + " bytes into an allocation of " +
           std::to_string(at->second.bytes.size()));
  return handle;
}

char* Machine::address(uint64_t handle, const orr_buffer& b) {
  if (handle == 0) return orr::data<char>(b);
  const auto at = allocations_.find(handle);
  if (at == allocations_.end()) fatal("work on memory that was freed");
  return at->second.bytes.data() + b.offset;
}

}  // namespace strict
