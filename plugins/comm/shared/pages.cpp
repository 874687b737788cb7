// SPDX-License-Identifier: Apache-2.0
#include "pages.h"

#include <sys/mman.h>

#include <new>

namespace shared {

Pages take_huge_pages(uint64_t bytes) {
  Pages pages(static_cast<char*>(std::aligned_alloc(huge_page, bytes)));
  if (!pages) throw std::bad_alloc();
  madvise(pages.get(), bytes, MADV_HUGEPAGE);  // advice
  return pages;
}

}  // namespace shared
