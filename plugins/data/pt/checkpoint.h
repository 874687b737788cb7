// SPDX-License-Identifier: Apache-2.0
//
// Directories of torch.distributed.checkpoint: .metadata, a pickle, says of each tensor which of
// its chunks are where; a chunk is what torch.save writes, one after another in __0_0.distcp and
// others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "archive.h"

namespace data {

struct Chunk {
  std::vector<int64_t> offsets, sizes;  // in the tensor
  std::string file;
  uint64_t begin, bytes;  // of it in the file
};

struct ChunkedTensor {
  std::string name;
  std::string elements;  // as NumPy names them
  int64_t element_bytes;
  std::vector<int64_t> dims;
  std::vector<Chunk> chunks;  // that hold each element once, without those that have none

  // Writes its elements, row by row, and returns where the next one goes. Throws Error for chunks
  // that are damaged. [any thread]
  std::byte* read(std::byte* to) const;
};

// The archive of a chunk, in its file. Throws Error unless it has what .metadata says.
Archive archive_of(const BytesPtr& file, const Chunk& chunk, const ChunkedTensor& whole);
constexpr const char* kChunk = "tensor";  // its one tensor

bool is_checkpoint(const std::string& directory);

// What is no tensor: where each is, by its name. Offsets and sizes are empty.
using ChunksByName = std::map<std::string, Chunk>;

// All tensors, or the one of this name. What else was saved, such as numbers of steps, is passed
// over. Throws Error, which names the file, for metadata that is damaged, that holds what is not
// known, or that does not fit the other files.
std::vector<ChunkedTensor> checkpoint_tensors(const std::string& directory,
                                              const std::string& only);
ChunksByName checkpoint_values(const std::string& directory);
// The paths of all its files in the directory; whether they are there is not looked at.
std::set<std::string> checkpoint_files(const std::string& directory);

}  // namespace data
