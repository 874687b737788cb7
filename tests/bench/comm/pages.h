// SPDX-License-Identifier: Apache-2.0
//
// Private memory as Orrery's core gives it to its users, huge pages where the system has them: a
// kernel that copies between processes takes each page by itself, so that on small ones it is no
// faster than 3 to 4 GB/s, whoever calls it.
#pragma once

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <memory>

struct FreePages {
  void operator()(char* pages) const { std::free(pages); }
};
using Pages = std::unique_ptr<char, FreePages>;

// A page more than is asked for: caches that look lines up by a hash of their addresses (AMD's
// first level) take buffers that lie a multiple of 256 MB from each other for one, and lose each
// line to the other.
inline Pages private_memory(size_t bytes) {
  constexpr size_t huge_page = 2 << 20;
  const size_t room = (bytes / huge_page + 2) * huge_page;
  Pages pages(static_cast<char*>(std::aligned_alloc(huge_page, room)));
  madvise(pages.get(), room, MADV_HUGEPAGE);
  std::memset(pages.get(), 0, bytes);
  return pages;
}
