// SPDX-License-Identifier: Apache-2.0
//
// Structs of the ABI as hosts of other versions have them: one that ends where unmapped memory
// begins, and one that is longer than the plugin's header says.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace orrery::judge {

// kExact: reading or writing one byte more is SIGSEGV. kLonger: `size` says 64 bytes more, which
// are the newer host's own.
enum class Fit { kExact, kLonger };

// Gone with the object: a read or write of them after that is SIGSEGV, too.
class GuardedBytes {
 public:
  GuardedBytes(const void* from, uint32_t bytes, Fit fit);
  GuardedBytes(const GuardedBytes&) = delete;
  ~GuardedBytes();
  void* data() const { return begin_; }
  bool tail_intact() const;  // of kLonger: nobody wrote into what it does not know

 private:
  char* pages_;
  char* begin_;
  uint32_t bytes_;
  Fit fit_;
};

// REQUIRES: T begins with its uint32_t size.
template <class T>
class Guarded {
 public:
  Guarded(const T& value, Fit fit) : bytes_(&value, sizeof(T), fit) {
    static_assert(std::is_trivially_copyable_v<T>);
    get()->size = static_cast<uint32_t>(sizeof(T)) + (fit == Fit::kLonger ? 64 : 0);
  }
  T* get() const { return static_cast<T*>(bytes_.data()); }
  T* operator->() const { return get(); }
  bool tail_intact() const { return bytes_.tail_intact(); }

 private:
  GuardedBytes bytes_;
};

}  // namespace orrery::judge
