// SPDX-License-Identifier: Apache-2.0
//
// Writes .metadata, in which torch.distributed.checkpoint finds what is where.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace data {

// Where an archive is: in a file, by its path in the checkpoint's directory.
struct WrittenPlace {
  std::string path;
  uint64_t begin = 0, bytes = 0;
};

struct WrittenChunk {
  std::vector<int64_t> offsets, sizes;
  WrittenPlace place;
};

struct WrittenTensor {
  std::string dtype;  // "torch.float32"
  std::vector<int64_t> dims;
  std::vector<WrittenChunk> chunks;
};

// The second of the names of a value, as {"orrery": {"step": 3}} has them.
struct WrittenValue {
  std::string outer, inner;
  WrittenPlace place;
};

std::string metadata_of(const std::map<std::string, WrittenTensor>& tensors,
                        const std::vector<WrittenValue>& values);

}  // namespace data
