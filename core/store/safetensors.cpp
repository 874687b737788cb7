// SPDX-License-Identifier: Apache-2.0
#include "store/safetensors.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "store/safetensors_header.h"

namespace orrery {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors are little-endian");

constexpr uint64_t kPrefix = sizeof(uint64_t);

void check_writable(const NamedTensors& sorted) {
  std::vector<std::string> names;
  for (auto& [name, tensor] : sorted) {
    if (name.empty() || name == "__metadata__" || name.find('\0') != std::string::npos)
      fail(ORR_INVALID, "safetensors cannot hold a tensor named '{}'; rename it", name);
    names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end())
    fail(ORR_INVALID, "two tensors are named '{}'; rename one of them", *twice);
}

void write_tensor(File& file, const std::string& name, const Type& type, const HostTensor& tensor) {
  if (tensor.type != type || tensor.bytes->size() != type.bytes())
    fail(ORR_INVALID,
         "tensor '{}' holds {} bytes instead of the {} of {}; give it all its elements", name,
         tensor.bytes->size(), type.bytes(), to_string(type));
  file.write(tensor.bytes->data(), tensor.bytes->size());
}

std::string read_header_text(const File& file, Digest& digest) {
  const char* remedy = "; restore the file from a copy or save it again";
  if (file.size() < kPrefix)
    fail(ORR_FAILED, "{} is truncated: {} bytes, fewer than the {} that hold the header's length{}",
         file.label(), file.size(), kPrefix, remedy);
  uint64_t length = 0;
  file.read(&length, kPrefix, 0);
  if (length > kMostHeaderBytes)
    fail(ORR_FAILED, "{}: the header's length {} is above the limit of {} bytes{}", file.label(),
         length, kMostHeaderBytes, remedy);
  if (length > file.size() - kPrefix)
    fail(ORR_FAILED, "{} is truncated: the header's length is {} and {} bytes follow it{}",
         file.label(), length, file.size() - kPrefix, remedy);
  std::string header(length, '\0');
  file.read(header.data(), length, kPrefix);
  digest.add(&length, kPrefix);
  digest.add(header.data(), length);
  return header;
}

struct Header {
  std::vector<SafetensorsEntry> entries;
  uint64_t data_at;
};

Header read_header(const File& file, Digest& digest) {
  const std::string text = read_header_text(file, digest);
  const uint64_t data_at = kPrefix + text.size();
  return {parse_safetensors_header(text, file.size() - data_at, file.label()), data_at};
}

HostTensor read_tensor(const File& file, uint64_t data_at, const SafetensorsEntry& entry,
                       int32_t dtype, Digest& digest) {
  HostTensor tensor = HostTensor::make({dtype, entry.type.dims});
  const bool direct = same_bytes({entry.kind}, dtype);
  std::vector<std::byte> raw(direct ? 0 : entry.end - entry.begin);
  std::vector<std::byte>& bytes = direct ? *tensor.bytes : raw;
  file.read(bytes.data(), bytes.size(), data_at + entry.begin);
  digest.add(bytes.data(), bytes.size());
  if (!direct)
    convert_elements({entry.kind}, raw.data(), static_cast<size_t>(entry.type.elements()), dtype,
                     tensor.data<std::byte>(),
                     fmt::format("{}: tensor '{}'", file.label(), entry.name));
  return tensor;
}

}  // namespace

bool earlier_in_file(const std::string& a, const Type& type_of_a, const std::string& b,
                     const Type& type_of_b) {
  int x = safetensors_order(type_of_a.dtype), y = safetensors_order(type_of_b.dtype);
  return x != y ? x > y : a < b;
}

void write_safetensors(File& file, NamedTensors tensors) {
  std::sort(tensors.begin(), tensors.end(), [](auto& a, auto& b) {
    return earlier_in_file(a.first, a.second.type, b.first, b.second.type);
  });
  check_writable(tensors);
  std::vector<SafetensorsEntry> entries;
  uint64_t at = 0;
  for (auto& [name, tensor] : tensors) {
    entries.push_back(SafetensorsEntry::of_engine(name, tensor.type, at));
    at = entries.back().end;
  }
  std::string header = render_safetensors_header(entries);
  uint64_t length = header.size();
  if (length > kMostHeaderBytes)
    fail(ORR_INVALID, "{}: {} tensors make a header of {} bytes, above the limit of {}; use fewer",
         file.label(), tensors.size(), length, kMostHeaderBytes);
  file.write(&length, kPrefix);
  file.write(header.data(), header.size());
  for (auto& [name, tensor] : tensors) write_tensor(file, name, tensor.type, tensor.read());
}

SafetensorsFile::SafetensorsFile(File file) : file_(std::move(file)) {
  Digest unused;
  Header header = read_header(file_, unused);
  data_at_ = header.data_at, entries_ = std::move(header.entries);
}

HostTensor SafetensorsFile::read(const SafetensorsEntry& entry, int32_t dtype) const {
  Digest unused;
  return read_tensor(file_, data_at_, entry, dtype, unused);
}

SafetensorsContents read_safetensors(const File& file) {
  Digest digest;
  SafetensorsContents contents;
  const Header header = read_header(file, digest);
  for (const SafetensorsEntry& entry : header.entries)  // tensors are in order, without gaps
    contents.tensors.emplace(entry.name,
                             read_tensor(file, header.data_at, entry, entry.type.dtype, digest));
  contents.digest = digest.text();
  return contents;
}

}  // namespace orrery
