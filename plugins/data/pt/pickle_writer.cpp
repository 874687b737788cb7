// SPDX-License-Identifier: Apache-2.0
#include "pickle_writer.h"

namespace data {

void PickleWriter::little_endian(uint64_t value, size_t count) {
  for (size_t i = 0; i < count; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xff);
}

void PickleWriter::number(int64_t value) {
  if (value >= 0 && value < 256) {
    bytes_ += 'K';
    little_endian(static_cast<uint64_t>(value), 1);
  } else if (value == static_cast<int32_t>(value)) {
    bytes_ += 'J';
    little_endian(static_cast<uint64_t>(value), 4);
  } else {
    bytes_ += "\x8a\x08";
    little_endian(static_cast<uint64_t>(value), 8);
  }
}

// Recalls what was written before. Returns false the first time, when it is to be written now: that
// is remembered by `keep`.
bool PickleWriter::recall(const std::string& what) {
  const auto [at, is_new] = memo_.try_emplace(what, memo_.size());
  if (is_new) return false;
  bytes_ += 'j';
  little_endian(at->second, 4);
  return true;
}

void PickleWriter::text(const std::string& text) {
  if (recall("text " + text)) return;
  bytes_ += 'X';
  little_endian(text.size(), 4);
  bytes_ += text + 'r';
  little_endian(memo_.size() - 1, 4);
}

void PickleWriter::name(const std::string& module, const std::string& name) {
  if (recall("name " + module + " " + name)) return;
  bytes_ += 'c' + module + '\n' + name + '\n' + 'r';
  little_endian(memo_.size() - 1, 4);
}

void PickleWriter::numbers(const std::vector<int64_t>& values) {
  begin();
  for (int64_t value : values) number(value);
  tuple();
}

void PickleWriter::size(const std::vector<int64_t>& values) {
  name("torch", "Size");
  begin();
  numbers(values);
  tuple();
  call();
}

}  // namespace data
