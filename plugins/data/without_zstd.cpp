// SPDX-License-Identifier: Apache-2.0
//
// In place of unpack_zstd.cpp where libzstd is not.
#include "refuse.h"
#include "unpacked.h"

namespace data {

std::vector<std::byte> unpack_zstd(const Bytes& file) {
  refuse(file.label(),
         ": it is packed by zstd, and Orrery was built without it: unpack it (zstd -d), or build "
         "again with libzstd-dev installed");
}

}  // namespace data
