// SPDX-License-Identifier: Apache-2.0
#include "conformance/growth.h"

#include <fmt/format.h>
#include <malloc.h>

#include <filesystem>

// A sanitizer allocates in place of the C library, which then counts nothing.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ORR_SANITIZER_COUNTS
extern "C" size_t __sanitizer_get_current_allocated_bytes();  // gcc has no header of it
#endif

namespace orrery::judge {
namespace {

constexpr int settling = 20, rounds = 400, most_attempts = 3;
// Bytes a round. The least that malloc gives is 32; libraries' threads come and go with less.
constexpr size_t noise = 8;

size_t bytes_held() {
#ifdef ORR_SANITIZER_COUNTS
  return __sanitizer_get_current_allocated_bytes();
#else
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
#endif
}

size_t open_files() {
  size_t n = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++n;
  return n;
}

std::string growth_of_rounds(const std::function<void()>& round) {
  const size_t files = open_files(), bytes = bytes_held();
  for (int i = 0; i < rounds; ++i) round();
  const size_t now = bytes_held();
  if (now > bytes + noise * rounds)
    return fmt::format("{:.1f} bytes", double(now - bytes) / rounds);
  if (open_files() > files)
    return fmt::format("{:.1f} open files", double(open_files() - files) / rounds);
  return "";
}

}  // namespace

// A table that doubles now and then is no leak: what leaks grows every time.
std::string growth(const std::function<void()>& round, int attempts) {
  for (int i = 0; i < settling; ++i) round();
  std::string grown;
  bool grows = true;
  for (int i = 0; i < attempts || (grows && i < most_attempts); ++i) {
    grown = growth_of_rounds(round);
    grows = grows && !grown.empty();
  }
  return grows ? grown : "";
}

}  // namespace orrery::judge
