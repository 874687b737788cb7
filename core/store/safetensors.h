// SPDX-License-Identifier: Apache-2.0
//
// safetensors files: u64 little-endian length of the header, the header, the tensors' bytes.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "program/state.h"
#include "store/file.h"

namespace orrery {

using NamedTensors = std::vector<std::pair<std::string, HostTensor>>;

// Writes all tensors to a file just created; the caller finishes it. The order of the file is by
// dtype, then name, whatever the order of `tensors`: equal tensors make equal files. Throws Error
// for names that are empty, repeated, reserved or not UTF-8, and for writes that fail.
void write_safetensors(File& file, NamedTensors tensors);

struct SafetensorsContents {
  std::map<std::string, HostTensor> tensors;
  std::string digest;  // of the whole file
};

// Reads every tensor of a file just opened. Throws Error, naming file, tensor and field, for any
// file that the specification does not allow. No length is believed before it fits in the file.
SafetensorsContents read_safetensors(const File& file);

}  // namespace orrery
