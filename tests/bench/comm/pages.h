// SPDX-License-Identifier: Apache-2.0
//
// Private memory as Orrery's core gives it to its users, huge pages where the system has them: a
// kernel that copies between processes takes each page by itself, so that on small ones it is no
// faster than 3 to 4 GB/s, whoever calls it.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstring>
#include <new>

class Pages {
 public:
  // A page more: caches that look lines up by a hash of their addresses (AMD's first level) take
  // buffers that lie a multiple of 256 MB from each other for one, and lose each line to the other.
  explicit Pages(size_t bytes) : bytes_(bytes + (2 << 20)) {
    void* at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    madvise(at, bytes_, MADV_HUGEPAGE);
    std::memset(at, 0, bytes);
    data_ = static_cast<float*>(at);
  }
  ~Pages() { munmap(data_, bytes_); }
  Pages(const Pages&) = delete;

  float* data() const { return data_; }

 private:
  size_t bytes_;
  float* data_;
};
