// SPDX-License-Identifier: Apache-2.0
//
// Texts of any length, which lie in heaps of the file; a dataset has references to them. HDF5 1.10
// follows such a reference without a look at whether the heap has what it names, and a damaged file
// ends the process. So the library reads the references alone, and this file the heaps, by the
// format's specification ("Disk Format: Level 1E - Global Heap").
#pragma once

#include <map>
#include <string>
#include <vector>

#include "../bytes.h"
#include "library.h"

namespace data {

class Heaps {
 public:
  // `subject` begins messages. REQUIRES: a Turn.
  Heaps(const std::string& path, hid_t file, const std::string& subject);

  // The type in memory of `count` references, and their texts.
  hid_t reference() const { return reference_.get(); }
  size_t reference_bytes() const { return 8 + address_bytes_; }
  std::string text(const std::byte* reference);

 private:
  struct Place {
    uint64_t at, bytes;
  };
  uint64_t number(const std::byte* bytes, size_t count) const;
  void open(uint64_t at);
  [[noreturn]] void damaged(const char* what) const;

  const BytesPtr file_;
  const std::string& subject_;
  HeldType reference_;
  size_t address_bytes_ = 0, size_bytes_ = 0;
  uint64_t base_ = 0;               // of addresses in the file
  uint64_t open_at_ = UINT64_MAX;   // the heap that was looked at last
  std::map<uint64_t, Place> held_;  // in it, by number
};

}  // namespace data
