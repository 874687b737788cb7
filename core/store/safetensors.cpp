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

std::string read_header_text(const File& file) {
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
  return header;
}

}  // namespace

void write_safetensors(File& file, NamedTensors tensors, const Metadata& metadata) {
  std::sort(tensors.begin(), tensors.end(), [](auto& a, auto& b) {
    const int x = safetensors_order(a.second.type.dtype),
              y = safetensors_order(b.second.type.dtype);
    return x != y ? x > y : a.first < b.first;
  });
  check_writable(tensors);
  std::vector<SafetensorsEntry> entries;
  uint64_t at = 0;
  for (auto& [name, tensor] : tensors) {
    entries.push_back(SafetensorsEntry::of_engine(name, tensor.type, at));
    at = entries.back().end;
  }
  std::string header = render_safetensors_header(entries, metadata);
  uint64_t length = header.size();
  if (length > kMostHeaderBytes)
    fail(ORR_INVALID, "{}: {} tensors make a header of {} bytes, above the limit of {}; use fewer",
         file.label(), tensors.size(), length, kMostHeaderBytes);
  file.write(&length, kPrefix);
  file.write(header.data(), header.size());
  for (auto& [name, tensor] : tensors) write_tensor(file, name, tensor.type, tensor.read());
}

SafetensorsFile::SafetensorsFile(File file) : file_(std::move(file)) {
  const std::string text = read_header_text(file_);
  data_at_ = kPrefix + text.size();
  entries_ = parse_safetensors_header(text, file_.size() - data_at_, file_.label());
}

HostTensor SafetensorsFile::read(const SafetensorsEntry& entry, int32_t dtype) const {
  HostTensor tensor = HostTensor::make({dtype, entry.type.dims});
  const bool direct = same_bytes({entry.kind}, dtype);
  std::vector<std::byte> raw(direct ? 0 : entry.end - entry.begin);
  std::vector<std::byte>& bytes = direct ? *tensor.bytes : raw;
  read(entry, 0, bytes.size(), bytes.data());
  if (!direct)
    convert_elements({entry.kind}, raw.data(), static_cast<size_t>(entry.type.elements()), dtype,
                     tensor.data<std::byte>(),
                     fmt::format("{}: tensor '{}'", file_.label(), entry.name));
  return tensor;
}

void SafetensorsFile::read(const SafetensorsEntry& entry, uint64_t first, uint64_t count,
                           std::byte* to) const {
  file_.read(to, count, data_at_ + entry.begin + first);
}

}  // namespace orrery
