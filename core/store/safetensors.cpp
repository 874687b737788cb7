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

std::string read_header(const File& file, Digest& digest) {
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
    entries.push_back({name, tensor.type, at, at + tensor.type.bytes()});
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

SafetensorsContents read_safetensors(const File& file) {
  Digest digest;
  std::string header = read_header(file, digest);
  uint64_t data_at = kPrefix + header.size();
  SafetensorsContents contents;
  for (auto& entry : parse_safetensors_header(header, file.size() - data_at, file.label())) {
    HostTensor tensor = HostTensor::make(entry.type);
    file.read(tensor.bytes->data(), tensor.bytes->size(), data_at + entry.begin);
    digest.add(tensor.bytes->data(), tensor.bytes->size());  // tensors are in order, without gaps
    contents.tensors.emplace(std::move(entry.name), std::move(tensor));
  }
  contents.digest = digest.text();
  return contents;
}

}  // namespace orrery
