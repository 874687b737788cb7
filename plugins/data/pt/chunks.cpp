// SPDX-License-Identifier: Apache-2.0
//
// Puts a tensor together from its chunks.
#include <cstring>

#include "../refuse.h"
#include "checkpoint.h"

namespace data {

Archive archive_of(const BytesPtr& file, const Chunk& chunk, const ChunkedTensor& whole) {
  Archive archive(Bytes::part(file, chunk.begin, chunk.bytes));
  const auto found = archive.tensors().find(kChunk);
  if (found == archive.tensors().end() || found->second.tensor.dims != chunk.sizes ||
      found->second.tensor.elements != whole.elements)
    refuse(chunk.file, ": at byte ", chunk.begin, " is not the chunk of '", whole.name,
           "' that .metadata says; one of them is altered, or from another save: restore both");
  return archive;
}

namespace {

size_t product(const std::vector<int64_t>& dims) {
  size_t count = 1;
  for (int64_t dim : dims) count *= static_cast<size_t>(dim);
  return count;
}

// The elements of a chunk, row by row.
std::vector<std::byte> elements_of(const Chunk& chunk, const ChunkedTensor& whole) {
  const Archive archive = archive_of(Bytes::open(chunk.file), chunk, whole);
  std::vector<std::byte> elements(product(chunk.sizes) * static_cast<size_t>(whole.element_bytes));
  archive.read(archive.tensors().at(kChunk), elements.data());
  return elements;
}

// Copies a chunk, whose last dim is contiguous in both, to its place.
void put(const Chunk& chunk, const ChunkedTensor& whole, std::byte* to) {
  const auto elements = elements_of(chunk, whole);
  const size_t rank = whole.dims.size(), size = static_cast<size_t>(whole.element_bytes);
  const size_t row = (rank == 0 ? 1 : static_cast<size_t>(chunk.sizes[rank - 1])) * size;
  std::vector<int64_t> index(rank);
  for (size_t from = 0; from < elements.size(); from += row) {
    size_t place = 0;
    for (size_t d = 0; d < rank; ++d)
      place = place * static_cast<size_t>(whole.dims[d]) +
              static_cast<size_t>(chunk.offsets[d] + index[d]);
    std::memcpy(to + place * size, elements.data() + from, row);
    for (size_t d = rank; d-- > 1;) {
      if (++index[d - 1] < chunk.sizes[d - 1]) break;
      index[d - 1] = 0;
    }
  }
}

}  // namespace

std::byte* ChunkedTensor::read(std::byte* to) const {
  for (const Chunk& chunk : chunks) put(chunk, *this, to);
  return to + product(dims) * static_cast<size_t>(element_bytes);
}

}  // namespace data
