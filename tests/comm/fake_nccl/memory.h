// SPDX-License-Identifier: Apache-2.0
//
// Memory of the fake device. Its addresses are reserved and cannot be touched: the bytes lie
// elsewhere, and only what runs on a stream gets to them. Host code that follows a device pointer
// ends by name.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fake::memory {

uintptr_t allocate(size_t bytes, bool by_nccl);
void release(uintptr_t address, bool by_nccl);
// The bytes behind [address, address + bytes); misuse if that is not device memory. `who` asks.
char* behind(const void* address, size_t bytes, const char* who);
// The same, or null if that is not device memory; `bytes_left`, if asked for: up to the
// allocation's end.
char* look_behind(const void* address, size_t bytes, size_t* bytes_left = nullptr);
// Whether the range is memory that ncclMemAlloc gave.
bool is_nccl(const void* address, size_t bytes);
// Counts windows on an allocation; memory under a window may not be released.
void add_window(const void* address, int change);

void* allocate_pinned(size_t bytes);
void release_pinned(void* address);
bool is_pinned(const void* address, size_t bytes);
void need_pinned(const void* address, size_t bytes, const char* who);

}  // namespace fake::memory
