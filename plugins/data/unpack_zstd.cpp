// SPDX-License-Identifier: Apache-2.0
//
// Files packed by zstd, by libzstd.
#include <zstd.h>

#include <algorithm>
#include <memory>

#include "refuse.h"
#include "unpacked.h"

namespace data {
namespace {

constexpr int kLargestWindow = 31;  // of `zstd --long=31`

struct Free {
  void operator()(ZSTD_DCtx* zstd) const { ZSTD_freeDCtx(zstd); }
};

}  // namespace

std::vector<std::byte> unpack_zstd(const Bytes& file) {
  const std::unique_ptr<ZSTD_DCtx, Free> zstd(ZSTD_createDCtx());
  if (!zstd) fail(ORR_FAILED, file.label(), ": zstd does not start");
  ZSTD_DCtx_setParameter(zstd.get(), ZSTD_d_windowLogMax, kLargestWindow);
  Unpacked unpacked(file);
  std::vector<std::byte> piece(kPackedPiece);
  size_t left = 0;  // what zstd wants to see of the frame that it is in; 0 at the end of one
  for (uint64_t at = 0; at < file.size();) {
    const size_t count = std::min<uint64_t>(piece.size(), file.size() - at);
    file.read(piece.data(), count, at);
    at += count;
    ZSTD_inBuffer in{piece.data(), count, 0};
    // A full room may be all that zstd has, or not.
    for (bool full = false; in.pos < in.size || full;) {
      ZSTD_outBuffer out{unpacked.room(), kPackedPiece, 0};
      left = ZSTD_decompressStream(zstd.get(), &out, &in);
      if (ZSTD_isError(left))
        refuse(file.label(), ": the packed file is altered (", ZSTD_getErrorName(left),
               "); restore it from a copy");
      unpacked.add(out.pos);
      full = left > 0 && out.pos == out.size;
    }
  }
  if (left > 0) refuse(file.label(), ": the packed file is cut short; restore it from a copy");
  return unpacked.all();
}

}  // namespace data
