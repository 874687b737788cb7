// SPDX-License-Identifier: Apache-2.0
//
// Writes and reads safetensors files. Such a file has the length of the header (u64,
// little-endian), the header, and the tensors' bytes.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "program/state.h"
#include "store/file.h"
#include "store/safetensors_header.h"

namespace orrery {

// A tensor to be written. `read` returns its bytes and is called when they are written, so that
// only one tensor at a time has to be in memory.
struct TensorSource {
  TensorSource(Type t, std::function<HostTensor()> r) : type(std::move(t)), read(std::move(r)) {}
  TensorSource(const HostTensor& t)
      : type(t.type), read([t] { return t; }) {}  // NOLINT: meant to convert
  Type type;
  std::function<HostTensor()> read;
};
using NamedTensors = std::vector<std::pair<std::string, TensorSource>>;

// Writes all tensors to a file just created, reading each once. Their order in the file does not
// depend on that of `tensors`: equal tensors make equal files. The caller finishes the file. Throws
// Error for names that are empty, repeated, reserved or not UTF-8, and for writes that fail.
// `metadata` joins the header.
void write_safetensors(File& file, NamedTensors tensors, const Metadata& metadata = {});

// A file whose tensors are read one by one.
class SafetensorsFile {
 public:
  // Reads the header. Throws Error, naming file, tensor and field, for any file that the
  // specification does not allow. No length is believed before it fits in the file.
  explicit SafetensorsFile(File file);

  const std::vector<SafetensorsEntry>& entries() const { return entries_; }  // as they lie
  // An entry as a tensor of `dtype`. Throws Error for numbers that it cannot hold.
  HostTensor read(const SafetensorsEntry& entry, int32_t dtype) const;
  // Bytes of an entry from its `first` one.
  void read(const SafetensorsEntry& entry, uint64_t first, uint64_t count, std::byte* to) const;

 private:
  File file_;
  uint64_t data_at_ = 0;
  std::vector<SafetensorsEntry> entries_;
};

}  // namespace orrery
