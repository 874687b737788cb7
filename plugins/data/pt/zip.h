// SPDX-License-Identifier: Apache-2.0
//
// Archives of zip whose entries are stored as they are, as torch.save writes them, also large ones
// (zip64).
#pragma once

#include <map>
#include <string>

#include "../bytes.h"

namespace data {

struct ZipEntry {
  uint64_t offset, bytes;  // of its data in the file
  uint32_t crc;            // CRC-32 of its data, as the archive says
};

// The entries by name. Throws Error that names the file, for none or a damaged archive, and for
// entries that are packed.
std::map<std::string, ZipEntry> zip_entries(const Bytes& file);

}  // namespace data
