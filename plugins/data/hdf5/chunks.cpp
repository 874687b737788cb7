// SPDX-License-Identifier: Apache-2.0
#include "chunks.h"

#include <zlib.h>

#include <algorithm>

namespace data {
namespace {

constexpr hsize_t kChecksum = 4;  // bytes of fletcher32

// How many bytes a stream of zlib unpacks to; `most` + 1 if they are more; 0 if it is none.
hsize_t unpacked_bytes(std::vector<Bytef>& packed, hsize_t most) {
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) return 0;
  std::vector<Bytef> some(size_t{1} << 16);
  stream.next_in = packed.data(), stream.avail_in = static_cast<uInt>(packed.size());
  int code = Z_OK;
  hsize_t bytes = 0;
  while (code == Z_OK && bytes <= most) {
    stream.next_out = some.data(), stream.avail_out = static_cast<uInt>(some.size());
    code = inflate(&stream, Z_NO_FLUSH);
    bytes += some.size() - stream.avail_out;
  }
  inflateEnd(&stream);
  return code == Z_STREAM_END || bytes > most ? bytes : 0;
}

}  // namespace

Chunks::Chunks(hid_t set, size_t element_bytes, std::string subject)
    : set_(set), subject_(std::move(subject)), bytes_(element_bytes) {
  const HeldList created(H5Dget_create_plist(set));
  if (H5Pget_layout(created.get()) != H5D_CHUNKED) return;
  hsize_t dims[H5S_MAX_RANK];
  const int rank = H5Pget_chunk(created.get(), H5S_MAX_RANK, dims);
  dims_.assign(dims, dims + std::max(rank, 0));
  for (const hsize_t dim : dims_) bytes_ *= dim;
  for (int i = 0; i < H5Pget_nfilters(created.get()); ++i) {
    unsigned flags = 0, config = 0;
    size_t values = 0;
    filters_.push_back(H5Pget_filter2(created.get(), static_cast<unsigned>(i), &flags, &values,
                                      nullptr, 0, nullptr, &config));
  }
}

void Chunks::unpack(const std::vector<hsize_t>& corner, hsize_t bytes, hsize_t expected,
                    bool summed) {
  std::vector<Bytef> packed(bytes);
  uint32_t skipped = 0;
  if (H5Dread_chunk(set_, H5P_DEFAULT, corner.data(), &skipped, packed.data()) < 0)
    refuse(subject_, ": a chunk cannot be read: ", last_error(), "; restore the file from a copy");
  if (summed) packed.resize(bytes - kChecksum);
  if (unpacked_bytes(packed, expected) != expected)
    refuse(subject_, ": a chunk does not unpack to its ", expected,
           " bytes; restore the file from a copy");
}

// A chunk is packed by one filter after another. One may be left out, which `skipped` has a bit
// for.
void Chunks::look_at(const std::vector<hsize_t>& corner) {
  if (seen_.contains(corner)) return;
  unsigned skipped = 0;
  haddr_t at = HADDR_UNDEF;
  hsize_t bytes = 0, in_file = 0, sums = 0, sums_inside = 0;
  if (H5Dget_chunk_info_by_coord(set_, corner.data(), &skipped, &at, &bytes) < 0 ||
      H5Fget_filesize(HeldFile(H5Iget_file_id(set_)).get(), &in_file) < 0)
    refuse(subject_, ": a chunk cannot be found: ", last_error(), "; restore the file from a copy");
  if (at == HADDR_UNDEF) return;  // nothing was written there
  bool by_gzip = false, otherwise = false;
  for (size_t i = 0; i < filters_.size(); ++i) {
    if (i < 32 && (skipped >> i & 1)) continue;
    if (filters_[i] == H5Z_FILTER_FLETCHER32)
      ++sums;
    else if (filters_[i] == H5Z_FILTER_DEFLATE)
      otherwise |= by_gzip, by_gzip = true, sums_inside = sums;
    else
      otherwise |= filters_[i] != H5Z_FILTER_SHUFFLE;
  }
  const bool packed = by_gzip || otherwise;
  const hsize_t least = kChecksum * (packed ? sums - sums_inside : sums) + (packed ? 0 : bytes_);
  if (bytes < least || bytes > in_file)
    refuse(subject_, ": a chunk has ", bytes, " bytes, ", least,
           " or more expected; restore the file from a copy");
  if (by_gzip && !otherwise)
    unpack(corner, bytes, bytes_ + kChecksum * sums_inside, sums > sums_inside);
  seen_.insert(corner);
}

void Chunks::check(const std::vector<hsize_t>& start, const std::vector<hsize_t>& count) {
  if (dims_.empty() || dims_.size() != start.size()) return;
  std::vector<hsize_t> first(start.size()), corner;
  for (size_t d = 0; d < start.size(); ++d) first[d] = start[d] / dims_[d] * dims_[d];
  corner = first;
  for (size_t d = start.size(); d > 0;) {
    look_at(corner);
    for (d = start.size(); d > 0; --d) {  // to the next, the last dim first
      corner[d - 1] += dims_[d - 1];
      if (corner[d - 1] < start[d - 1] + count[d - 1]) break;
      corner[d - 1] = first[d - 1];
    }
  }
}

}  // namespace data
