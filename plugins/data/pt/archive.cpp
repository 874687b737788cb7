// SPDX-License-Identifier: Apache-2.0
#include "archive.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "../refuse.h"
#include "tensors.h"

namespace data {
namespace {

// Throws unless all elements are in their storage.
SavedTensor placed(const PickledTensor& tensor, const std::string& name, const ZipEntry& storage,
                   const std::string& label) {
  int64_t last = tensor.offset, count = 1;
  bool is_wrong = tensor.offset < 0;
  for (size_t d = 0; d < tensor.dims.size(); ++d) {
    int64_t more = 0;
    is_wrong |= tensor.dims[d] < 0 || tensor.steps[d] < 0;
    is_wrong |= __builtin_mul_overflow(count, tensor.dims[d], &count);
    is_wrong |= __builtin_mul_overflow(tensor.dims[d] - 1, tensor.steps[d], &more);
    is_wrong |= __builtin_add_overflow(last, more, &last);
  }
  const auto most = static_cast<int64_t>(storage.bytes) / tensor.element_bytes;
  if (is_wrong || (count > 0 && last >= most))
    refuse(label, ": the tensor '", name, "' is not within its ", storage.bytes,
           " bytes; the file is altered: restore it");
  return {tensor, storage.offset + static_cast<uint64_t>(tensor.offset * tensor.element_bytes)};
}

using Entries = std::map<std::string, ZipEntry>;

// What the names of entries begin with: that of the archive.
std::string root_of(const Entries& entries, const std::string& label) {
  for (const auto& [name, entry] : entries)
    if (name.ends_with("/data.pkl") && name.find('/') == name.size() - 9)
      return name.substr(0, name.size() - 8);
  refuse(label, ": a zip archive without data.pkl, which torch.save writes");
}

std::string text_of(const Bytes& file, const ZipEntry& entry) {
  check_memory(entry.bytes, file.label());
  std::string text(static_cast<size_t>(entry.bytes), '\0');
  file.read(text.data(), text.size(), entry.offset);
  return text;
}

void check_crc(const Bytes& file, const std::string& name, const ZipEntry& entry) {
  constexpr uint64_t most = 1 << 20;
  std::vector<Bytef> block(static_cast<size_t>(std::min(most, entry.bytes)));
  uLong crc = ::crc32(0, nullptr, 0);
  for (uint64_t at = 0; at < entry.bytes; at += block.size()) {
    const auto count = static_cast<size_t>(std::min<uint64_t>(block.size(), entry.bytes - at));
    file.read(block.data(), count, entry.offset + at);
    crc = ::crc32_z(crc, block.data(), count);
  }
  if (crc != entry.crc)
    refuse(file.label(), ": '", name, "' was altered: its CRC-32 is ", crc, " instead of ",
           entry.crc, "; restore it from a copy");
}

}  // namespace

Archive::Archive(BytesPtr file, const std::string& only) : file_(std::move(file)) {
  const std::string& label = file_->label();
  const Entries entries = zip_entries(*file_);
  const std::string root = root_of(entries, label);
  if (const auto order = entries.find(root + "byteorder"); order != entries.end())
    if (text_of(*file_, order->second) != "little")
      refuse(label, ": its numbers are big-endian; save it on another machine");
  for (const auto& [name, tensor] :
       pickled_tensors(text_of(*file_, entries.at(root + "data.pkl")), label)) {
    if (!only.empty() && name != only) continue;
    const auto storage = entries.find(root + "data/" + tensor.storage);
    if (storage == entries.end())
      refuse(label, ": the data of the tensor '", name,
             "' is missing; the file is altered: restore it");
    tensors_.emplace(name, placed(tensor, name, storage->second, label));
  }
}

bool Archive::is_in_rows(const SavedTensor& saved) {
  const PickledTensor& tensor = saved.tensor;
  int64_t step = 1;
  for (size_t d = tensor.dims.size(); d-- > 0; step *= tensor.dims[d])
    if (tensor.dims[d] != 1 && tensor.steps[d] != step) return false;
  return true;
}

void Archive::read_rows(const SavedTensor& saved, uint64_t first, uint64_t count,
                        std::byte* to) const {
  const auto size = static_cast<uint64_t>(saved.tensor.element_bytes);
  file_->read(to, static_cast<size_t>(count * size), saved.begin + first * size);
}

std::byte* Archive::read(const SavedTensor& saved, std::byte* to) const {
  const PickledTensor& tensor = saved.tensor;
  const auto size = static_cast<size_t>(tensor.element_bytes);
  size_t count = 1, span = 1;
  for (size_t d = 0; d < tensor.dims.size(); ++d) {
    count *= static_cast<size_t>(tensor.dims[d]);
    span += static_cast<size_t>((tensor.dims[d] - 1) * tensor.steps[d]);
  }
  if (count == 0) return to;
  if (is_in_rows(saved)) {
    file_->read(to, count * size, saved.begin);
    return to + count * size;
  }
  std::vector<std::byte> all(span * size);
  file_->read(all.data(), all.size(), saved.begin);
  std::vector<int64_t> index(tensor.dims.size());
  for (size_t from = 0; count > 0; --count, to += size) {
    std::memcpy(to, all.data() + from * size, size);
    for (size_t d = index.size(); d-- > 0;) {
      from += static_cast<size_t>(tensor.steps[d]);
      if (++index[d] < tensor.dims[d]) break;
      from -= static_cast<size_t>(tensor.steps[d] * tensor.dims[d]);
      index[d] = 0;
    }
  }
  return to;
}

void verify_archive(const Bytes& file) {
  for (const auto& [name, entry] : zip_entries(file)) check_crc(file, name, entry);
}

std::variant<int64_t, std::string> saved_value(BytesPtr file) {
  const Entries entries = zip_entries(*file);
  const std::string root = root_of(entries, file->label());
  return pickled_value(text_of(*file, entries.at(root + "data.pkl")), file->label());
}

}  // namespace data
