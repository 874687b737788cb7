// SPDX-License-Identifier: Apache-2.0
//
// Directories of torch.distributed.checkpoint: .metadata, a pickle, says of each tensor which of
// its chunks are where; a chunk is what torch.save writes, one after another in __0_0.distcp and
// others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

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
  std::vector<Chunk> chunks;  // that hold each element once

  // Writes its elements, row by row, and returns where the next one goes. Throws Error for chunks
  // that are damaged. [any thread]
  std::byte* read(std::byte* to) const;
};

bool is_checkpoint(const std::string& directory);

// All tensors, or the one of this name. What else was saved, such as numbers of steps, is passed
// over. Throws Error, which names the file, for metadata that is damaged, that holds what is not
// known, or that does not fit the other files.
std::vector<ChunkedTensor> checkpoint_tensors(const std::string& directory,
                                              const std::string& only);

}  // namespace data
