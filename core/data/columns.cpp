// SPDX-License-Identifier: Apache-2.0
#include "data/columns.h"

#include <algorithm>

#include "base/error.h"

namespace orrery {
namespace {

void read_column(const Column& column, std::span<const Pick> picks, std::byte* to) {
  const Type& type = column.field.sample;
  const auto count = static_cast<size_t>(type.elements());
  const size_t stored = count * static_cast<size_t>(stored_kind(column.elements.kind).bytes);
  const bool direct = same_bytes(column.elements, type.dtype);
  std::vector<std::byte> raw(direct ? 0 : stored);
  for (const Pick& pick : picks) {
    const uint64_t at = column.offset + static_cast<uint64_t>(pick.sample) * column.stride;
    column.bytes.read(direct ? to : raw.data(), stored, at);
    if (!direct)
      convert_elements(column.elements, raw.data(), count, type.dtype, to, column.bytes.label());
    to += type.bytes();
  }
}

}  // namespace

Columns::Columns(std::vector<Column> columns, int64_t samples, int64_t window,
                 std::shared_ptr<const Tokenizer> tokenizer)
    : columns_(std::move(columns)) {
  for (const Column& column : columns_) fields_.push_back(column.field);
  samples_ = samples;
  window_ = window;
  tokenizer_ = std::move(tokenizer);
}

void Columns::read(std::span<const Pick> picks, std::span<std::byte* const> to) const {
  for (size_t i = 0; i < columns_.size(); ++i)
    if (to[i]) read_column(columns_[i], picks, to[i]);
}

bool Columns::slow() const {
  return std::any_of(columns_.begin(), columns_.end(),
                     [](const Column& column) { return column.bytes.in_file(); });
}

DatasetPtr windows_of(const Bytes& bytes, const Elements& elements, uint64_t offset, int64_t count,
                      int64_t length, const std::string& name, const std::string& unit,
                      std::shared_ptr<const Tokenizer> tokenizer) {
  if (length < 1 || length == INT64_MAX)
    fail(ORR_INVALID, "{}: a window of {} {}; give 1 or more", name, length, unit);
  if (count <= length)
    fail(ORR_INVALID, "{}: there are {} {}, windows of {} need at least {}", name, count, unit,
         length, length + 1);
  const StoredKind& kind = stored_kind(elements.kind);
  const auto size = static_cast<uint64_t>(kind.bytes);
  const Type window{kind.dtype, {length}};
  return std::make_shared<Columns>(
      std::vector<Column>{{{"x", window}, bytes, elements, offset, size},
                          {{"y", window}, bytes, elements, offset + size, size}},
      count - length, length, std::move(tokenizer));
}

}  // namespace orrery
