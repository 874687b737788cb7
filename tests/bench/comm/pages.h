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
  // Begins a huge page. One more: caches that look lines up by a hash of their addresses (AMD's
  // first level) take buffers that lie a multiple of 256 MB from each other for one, and lose each
  // line to the other.
  explicit Pages(size_t bytes) : bytes_(bytes + 2 * huge) {
    mapped_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped_ == MAP_FAILED) throw std::bad_alloc();
    madvise(mapped_, bytes_, MADV_HUGEPAGE);
    const size_t past = reinterpret_cast<size_t>(mapped_) % huge;
    data_ = reinterpret_cast<float*>(static_cast<char*>(mapped_) + (huge - past) % huge);
    std::memset(data_, 0, bytes);
  }
  ~Pages() { munmap(mapped_, bytes_); }
  Pages(const Pages&) = delete;

  float* data() const { return data_; }

 private:
  static constexpr size_t huge = 2 << 20;

  size_t bytes_;
  void* mapped_;
  float* data_;
};
