// SPDX-License-Identifier: Apache-2.0
#include "opened_set.h"

#include <algorithm>

namespace data {
namespace {

constexpr size_t kCache = size_t{64} << 20;     // bytes of unpacked chunks that are kept
constexpr size_t kMostCache = size_t{1} << 30;  // where a chunk is larger
constexpr size_t kCacheSlots = 10007;           // a prime, as the library wants it

// Links to other files are not followed.
herr_t refuse_link(const char*, const char*, const char*, const char*, unsigned*, hid_t, void*) {
  return -1;
}

void check_storage(hid_t created, const std::string& subject) {
  const H5D_layout_t layout = H5Pget_layout(created);
  if (layout == H5D_VIRTUAL || (layout == H5D_CONTIGUOUS && H5Pget_external_count(created) > 0))
    refuse(subject, ": its numbers are in other files; write them into this one");
  for (int i = 0; i < H5Pget_nfilters(created); ++i) {
    unsigned flags = 0, config = 0;
    size_t values = 0;
    char name[64] = "";
    const H5Z_filter_t filter = H5Pget_filter2(created, static_cast<unsigned>(i), &flags, &values,
                                               nullptr, sizeof name, name, &config);
    if (filter >= 0 && H5Zfilter_avail(filter) <= 0)
      refuse(subject, ": its chunks are packed by filter ", filter, *name ? " (" : "", name,
             *name ? ")" : "", ", which HDF5 here has not: write them with gzip");
  }
}

// Bytes of a chunk; 0 where there are none.
size_t chunk_bytes(hid_t created, hid_t type) {
  if (H5Pget_layout(created) != H5D_CHUNKED) return 0;
  hsize_t dims[H5S_MAX_RANK];
  const int rank = H5Pget_chunk(created, H5S_MAX_RANK, dims);
  size_t bytes = H5Tget_size(type);
  for (int d = 0; d < rank; ++d)
    if (__builtin_mul_overflow(bytes, static_cast<size_t>(dims[d]), &bytes)) return SIZE_MAX;
  return bytes;
}

}  // namespace

// Opened twice: how large the cache is must be said before the size of a chunk is known.
HeldSet opened_set(hid_t file, const std::string& dataset, const std::string& subject) {
  const HeldList access(H5Pcreate(H5P_DATASET_ACCESS));
  H5Pset_elink_cb(access.get(), refuse_link, nullptr);
  const auto opened = [&] {
    HeldSet set(H5Dopen2(file, dataset.c_str(), access.get()));
    if (!set) refuse(subject, ": cannot be read: ", last_error());
    return set;
  };
  const HeldSet first = opened();
  const HeldList created(H5Dget_create_plist(first.get()));
  const HeldType type(H5Dget_type(first.get()));
  if (!created || !type) refuse(subject, ": cannot be read: ", last_error());
  check_storage(created.get(), subject);
  const size_t chunk = chunk_bytes(created.get(), type.get());
  if (chunk > kMostCache)
    refuse(subject, ": its chunks are larger than ", kMostCache, " bytes; write smaller ones");
  H5Pset_chunk_cache(access.get(), kCacheSlots, std::max(kCache, chunk), 0.75);
  return opened();
}

}  // namespace data
