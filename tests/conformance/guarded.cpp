// SPDX-License-Identifier: Apache-2.0
#include "conformance/guarded.h"

#include <sys/mman.h>

#include "base/error.h"

namespace orrery::judge {
namespace {

constexpr uint32_t page = 4096, room = 4 * page, tail = 64;
constexpr unsigned char mark = 0xA5;

}  // namespace

GuardedBytes::GuardedBytes(const void* from, uint32_t bytes, Fit fit) : bytes_(bytes), fit_(fit) {
  void* at = mmap(nullptr, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) fail(ORR_FAILED, "no memory for a guarded struct");
  pages_ = static_cast<char*>(at);
  mprotect(pages_ + room, page, PROT_NONE);
  begin_ = pages_ + room - bytes - (fit == Fit::kLonger ? tail : 0);
  std::memcpy(begin_, from, bytes);
  if (fit == Fit::kLonger) std::memset(begin_ + bytes, mark, tail);
}

// The address is never given to another: who kept it faults.
GuardedBytes::~GuardedBytes() {
  madvise(pages_, room, MADV_DONTNEED);
  mprotect(pages_, room, PROT_NONE);
}

bool GuardedBytes::tail_intact() const {
  for (uint32_t i = 0; fit_ == Fit::kLonger && i < tail; ++i)
    if (static_cast<unsigned char>(begin_[bytes_ + i]) != mark) return false;
  return true;
}

}  // namespace orrery::judge
