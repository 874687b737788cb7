// SPDX-License-Identifier: Apache-2.0
//
// Files packed by gzip, by zlib, or by zstd.
#include <zlib.h>

#include <algorithm>
#include <array>

#include "refuse.h"
#include "unpacked.h"

namespace data {
namespace {

// zlib's object. It reads the file piece by piece.
class Unpacking {
 public:
  explicit Unpacking(const Bytes& file) : file_(file), out_(file) {
    constexpr int only_gzip = 16;
    if (inflateInit2(&zlib_, only_gzip + MAX_WBITS) != Z_OK)
      fail(ORR_FAILED, file.label(), ": zlib does not start");
  }
  ~Unpacking() { inflateEnd(&zlib_); }
  Unpacking(const Unpacking&) = delete;

  // A file may be several packed ones, one after another, and have zeros behind them.
  std::vector<std::byte> all() {
    do one_member();
    while (skip_zeros() && inflateReset(&zlib_) == Z_OK);
    return out_.all();
  }

 private:
  // Whether there is a byte that has not been used.
  bool refill() {
    if (zlib_.avail_in > 0) return true;
    const size_t count = std::min<uint64_t>(piece_.size(), file_.size() - at_);
    file_.read(piece_.data(), count, at_);
    at_ += count;
    zlib_.next_in = piece_.data(), zlib_.avail_in = static_cast<uInt>(count);
    return count > 0;
  }

  // Whether there is something else.
  bool skip_zeros() {
    while (refill()) {
      if (*zlib_.next_in) return true;
      ++zlib_.next_in, --zlib_.avail_in;
    }
    return false;
  }

  void one_member() {
    for (int done = Z_OK; done != Z_STREAM_END;) {
      if (!refill())
        refuse(file_.label(), ": the packed file is cut short; restore it from a copy");
      zlib_.next_out = reinterpret_cast<Bytef*>(out_.room());
      zlib_.avail_out = kPackedPiece;
      done = inflate(&zlib_, Z_NO_FLUSH);
      out_.add(kPackedPiece - zlib_.avail_out);
      if (done != Z_OK && done != Z_STREAM_END)
        refuse(file_.label(), ": the packed file is altered (",
               zlib_.msg ? zlib_.msg : "it does not unpack", "); restore it from a copy");
    }
  }

  const Bytes& file_;
  z_stream zlib_{};
  std::array<Bytef, kPackedPiece> piece_;
  uint64_t at_ = 0;  // in the file
  Unpacked out_;
};

enum class Packed { no, gzip, zstd };

Packed packing_of(const Bytes& file) {
  std::array<unsigned char, 4> first{};
  file.read(first.data(), std::min<uint64_t>(first.size(), file.size()), 0);
  if (first[0] == 0x1f && first[1] == 0x8b) return Packed::gzip;
  const bool frame = first[0] == 0x28 && first[1] == 0xb5 && first[2] == 0x2f && first[3] == 0xfd;
  // Of any content, which is skipped: pzstd writes one before each frame.
  const bool skipped =
      first[0] >> 4 == 5 && first[1] == 0x2a && first[2] == 0x4d && first[3] == 0x18;
  return frame || skipped ? Packed::zstd : Packed::no;
}

}  // namespace

BytesPtr open_unpacked(const std::string& path) {
  BytesPtr file = Bytes::open(path);
  switch (packing_of(*file)) {
    case Packed::gzip: return std::make_shared<Bytes>(Unpacking(*file).all(), path);
    case Packed::zstd: return std::make_shared<Bytes>(unpack_zstd(*file), path);
    case Packed::no: return file;
  }
  return file;
}

}  // namespace data
