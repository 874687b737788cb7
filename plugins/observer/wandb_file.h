// SPDX-License-Identifier: Apache-2.0
//
// The file of an offline run of Weights & Biases. It begins with ":W&B", 0xBEE1 (u16) and the
// version 0 (u8); then come blocks of 32768 bytes of chunks, as LevelDB writes its log:
//   CRC-32 of the kind and the bytes (u32, little-endian), length (u16), kind (u8), bytes
// where the kind is 1 for a whole record, and 2, 3, 4 for its first, middle and last chunk. A block
// whose rest has no room for the head of a chunk ends in zeros.
#pragma once

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "event_file.h"
#include "text_file.h"

namespace observer {

class WandbFile {
 public:
  void open(const std::string& path) {
    file_.open(path);
    at_ = 0;
    put(":W&B" + event_file::little<uint16_t>(0xBEE1) + event_file::little<uint8_t>(0));
  }
  explicit operator bool() const { return bool(file_); }

  void record(std::string_view bytes) {
    bool first = true;
    do {
      if (room() < kHead) put(std::string(room(), '\0'));
      const std::string_view part = bytes.substr(0, room() - kHead);
      bytes.remove_prefix(part.size());
      chunk(first ? (bytes.empty() ? 1 : 2) : (bytes.empty() ? 4 : 3), part);
      first = false;
    } while (!bytes.empty());
  }

  void flush() { file_.flush(); }
  void close() { file_.close(); }

 private:
  static constexpr size_t kBlock = 32768, kHead = 7;

  size_t room() const { return kBlock - at_ % kBlock; }

  void put(std::string_view bytes) {
    file_.write(bytes);
    at_ += bytes.size();
  }

  void chunk(uint8_t kind, std::string_view bytes) {
    const std::string checked = std::string(1, static_cast<char>(kind)) + std::string(bytes);
    const uLong crc =
        crc32(0, reinterpret_cast<const Bytef*>(checked.data()), static_cast<uInt>(checked.size()));
    put(event_file::little(static_cast<uint32_t>(crc)) +
        event_file::little(static_cast<uint16_t>(bytes.size())) + checked);
  }

  TextFile file_;
  size_t at_ = 0;
};

}  // namespace observer
