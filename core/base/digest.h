// SPDX-License-Identifier: Apache-2.0
//
// The hash xxh3-64 of a stream of bytes. It detects damage, but an attacker can forge it.
#pragma once

#include <fmt/format.h>
#include <xxhash.h>

#include <cstdint>
#include <memory>
#include <new>
#include <string>

namespace orrery {

class Digest {
 public:
  Digest() : state_(XXH3_createState(), XXH3_freeState) {
    if (!state_ || XXH3_64bits_reset(state_.get()) != XXH_OK) throw std::bad_alloc();
  }
  void add(const void* bytes, size_t count) { XXH3_64bits_update(state_.get(), bytes, count); }
  // The hash of all bytes added so far; `text` has it as 16 hexadecimal digits.
  uint64_t number() const { return XXH3_64bits_digest(state_.get()); }
  std::string text() const { return fmt::format("{:016x}", number()); }

 private:
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state_;
};

}  // namespace orrery
