// SPDX-License-Identifier: Apache-2.0
//
// Huge pages: the kernel copies from another process page by page.
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

// REQUIRES: bytes is a multiple of huge_page.
Pages take_huge_pages(uint64_t bytes);

}  // namespace shared
