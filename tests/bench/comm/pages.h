// SPDX-License-Identifier: Apache-2.0
//
// Private memory as Orrery's core gives it to its users, huge pages where the system has them: a
// kernel that copies between processes takes each page by itself, so that on small ones it is no
// faster than 3 to 4 GB/s, whoever calls it.
#pragma once

#include <cstring>

#include "../../../plugins/comm/shared/pages.h"

// A page more than is asked for: caches that look lines up by a hash of their addresses (AMD's
// first level) take buffers that lie a multiple of 256 MB from each other for one, and lose each
// line to the other.
inline shared::Pages private_memory(size_t bytes) {
  shared::Pages pages =
      shared::take_huge_pages((bytes / shared::huge_page + 2) * shared::huge_page);
  std::memset(pages.get(), 0, bytes);
  return pages;
}
