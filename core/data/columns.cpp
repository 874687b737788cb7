// SPDX-License-Identifier: Apache-2.0
#include "data/columns.h"

#include <cstring>

#include "base/error.h"

namespace orrery {

Columns::Columns(std::vector<Column> columns, int64_t samples, int64_t window,
                 std::shared_ptr<const Tokenizer> tokenizer)
    : columns_(std::move(columns)) {
  for (const Column& column : columns_) fields_.push_back(column.field);
  samples_ = samples;
  window_ = window;
  tokenizer_ = std::move(tokenizer);
}

void Columns::read(std::span<const Pick> picks, std::span<std::byte* const> to) const {
  for (size_t i = 0; i < columns_.size(); ++i) {
    const Column& column = columns_[i];
    const size_t bytes = column.field.sample.bytes();
    std::byte* at = to[i];
    for (size_t k = 0; at && k < picks.size(); ++k, at += bytes)
      std::memcpy(at,
                  column.bytes->data() + column.offset +
                      static_cast<uint64_t>(picks[k].sample) * column.stride,
                  bytes);
  }
}

DatasetPtr windows_of(const std::string& text, std::shared_ptr<const Tokenizer> tokenizer,
                      int64_t length, const std::string& name) {
  const std::vector<int32_t> ids = tokenizer->encode(text, name);
  const auto count = static_cast<int64_t>(ids.size());
  if (length < 1 || length == INT64_MAX)
    fail(ORR_INVALID, "{}: a window of {} tokens; give 1 or more", name, length);
  if (count <= length)
    fail(ORR_INVALID, "{}: there are {} tokens, windows of {} need at least {}", name, count,
         length, length + 1);
  const auto* begin = reinterpret_cast<const std::byte*>(ids.data());
  const auto bytes = std::make_shared<const std::vector<std::byte>>(begin, begin + ids.size() * 4);
  const Type window{ORR_I32, {length}};
  return std::make_shared<Columns>(
      std::vector<Column>{{{"x", window}, bytes, 0, 4}, {{"y", window}, bytes, 4, 4}},
      count - length, length, std::move(tokenizer));
}

}  // namespace orrery
