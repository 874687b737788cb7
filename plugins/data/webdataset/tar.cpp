// SPDX-License-Identifier: Apache-2.0
#include "tar.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <array>
#include <memory>

#include "../refuse.h"

namespace data {
namespace {

constexpr uint64_t kBlock = 512;  // of tar: headers and contents begin at multiples of it

// What libarchive reads: a header's block of bytes, and then what it does not skip.
struct Source {
  const Bytes& bytes;
  uint64_t at = 0;
  std::array<std::byte, 16 * kBlock> piece{};
};

la_ssize_t read_piece(archive*, void* self, const void** out) {
  auto& source = *static_cast<Source*>(self);
  const size_t count = std::min<uint64_t>(source.piece.size(), source.bytes.size() - source.at);
  source.bytes.read(source.piece.data(), count, source.at);
  source.at += count;
  *out = source.piece.data();
  return static_cast<la_ssize_t>(count);
}

la_int64_t skip(archive*, void* self, la_int64_t count) {
  auto& source = *static_cast<Source*>(self);
  const auto skipped = std::min(static_cast<uint64_t>(count), source.bytes.size() - source.at);
  source.at += skipped;
  return static_cast<la_int64_t>(skipped);
}

struct Free {
  void operator()(archive* a) const { archive_read_free(a); }
};
using Archive = std::unique_ptr<archive, Free>;

Archive open_tar(Source& source) {
  Archive tar(archive_read_new());
  if (!tar) fail(ORR_FAILED, source.bytes.label(), ": libarchive does not start");
  archive_read_support_format_tar(tar.get());
  if (archive_read_open2(tar.get(), &source, nullptr, read_piece, skip, nullptr) != ARCHIVE_OK)
    refuse(source.bytes.label(), ": it is no tar archive (", archive_error_string(tar.get()), ")");
  return tar;
}

// Names are bytes to tar, and UTF-8 in its newer headers.
std::string name_of(archive_entry* entry, const std::string& label) {
  const char* name = archive_entry_pathname_utf8(entry);
  if (!name) name = archive_entry_pathname(entry);
  if (!name) refuse(label, ": the name of a file in it cannot be read; rename it in UTF-8");
  return name;
}

// Two blocks of zeros are behind the last file; one of them shows that nothing is missing.
void check_end(const Bytes& archive, uint64_t at) {
  std::array<std::byte, kBlock> block{};
  const uint64_t end = (at + kBlock - 1) / kBlock * kBlock;
  bool whole = end + kBlock <= archive.size();
  if (whole) archive.read(block.data(), block.size(), end);
  whole = whole && block == std::array<std::byte, kBlock>{};
  if (!whole)
    refuse(archive.label(), ": the archive is cut short: no zeros mark its end behind byte ", at,
           "; restore it from a copy");
}

}  // namespace

std::vector<TarEntry> tar_entries(const Bytes& archive) {
  Source source{archive};
  const Archive tar = open_tar(source);
  std::vector<TarEntry> entries;
  uint64_t end = 0;
  archive_entry* entry = nullptr;
  for (;;) {
    const int status = archive_read_next_header(tar.get(), &entry);
    if (status == ARCHIVE_EOF) break;
    if (status < ARCHIVE_WARN)
      refuse(archive.label(), ": the archive is no tar, cut short or altered behind byte ", end,
             " (", archive_error_string(tar.get()), "); restore it from a copy");
    const auto offset = static_cast<uint64_t>(archive_filter_bytes(tar.get(), 0));
    const la_int64_t size = archive_entry_size(entry);
    if (archive_entry_sparse_count(entry) > 0)
      refuse(archive.label(), ": '", name_of(entry, archive.label()),
             "' is stored with holes; write the archive without --sparse");
    end = offset;
    if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry)) continue;
    if (size < 0 || offset > archive.size() ||
        static_cast<uint64_t>(size) > archive.size() - offset)
      refuse(archive.label(), ": the archive is cut short within '",
             name_of(entry, archive.label()), "'; restore it from a copy");
    end = offset + static_cast<uint64_t>(size);
    entries.push_back({name_of(entry, archive.label()), offset, static_cast<uint64_t>(size)});
  }
  check_end(archive, end);
  return entries;
}

}  // namespace data
