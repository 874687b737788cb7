// SPDX-License-Identifier: Apache-2.0
//
// Huge pages. The kernel copies from another process page by page, so that it is two to three times
// as fast where they are huge, as the core's memory then is; on small ones, what is long travels
// faster through shared slots.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>

namespace shared {

struct FreePages {
  void operator()(char* pages) const { std::free(pages); }
};
using Pages = std::unique_ptr<char, FreePages>;

constexpr uint64_t huge_page = 2 << 20;

// Whether the system gives them to who asks.
bool has_huge_pages();

// REQUIRES: bytes is a multiple of huge_page.
Pages take_huge_pages(uint64_t bytes);

}  // namespace shared
