// SPDX-License-Identifier: Apache-2.0
#include "small_text.h"

#include "bytes.h"
#include "refuse.h"

namespace data {

std::string small_text(const std::string& path) {
  constexpr uint64_t kMostBytes = 64 << 20;
  const BytesPtr file = Bytes::open(path);
  if (file->size() > kMostBytes)
    refuse(path, ": has ", file->size(), " bytes, more than the ", kMostBytes, " that are read");
  std::string text(static_cast<size_t>(file->size()), '\0');
  file->read(text.data(), text.size(), 0);
  return text;
}

}  // namespace data
