// SPDX-License-Identifier: Apache-2.0
//
// Files packed by gzip, by zlib.
#include <zlib.h>

#include <array>

#include "bytes.h"
#include "refuse.h"

namespace data {
namespace {

// zlib's object. It reads the file piece by piece.
class Unpacking {
 public:
  explicit Unpacking(const Bytes& file) : file_(file) {
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
    out_.resize(size_);
    return std::move(out_);
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
      make_room();
      const uInt room = zlib_.avail_out;
      done = inflate(&zlib_, Z_NO_FLUSH);
      size_ += room - zlib_.avail_out;
      if (done != Z_OK && done != Z_STREAM_END)
        refuse(file_.label(), ": the packed file is altered (",
               zlib_.msg ? zlib_.msg : "it does not unpack", "); restore it from a copy");
    }
  }

  void make_room() {
    if (out_.size() - size_ < piece_.size()) {
      const size_t larger = 2 * out_.size() + piece_.size();
      check_memory(larger, file_.label());
      out_.resize(larger);
    }
    zlib_.next_out = reinterpret_cast<Bytef*>(out_.data() + size_);
    zlib_.avail_out = static_cast<uInt>(piece_.size());
  }

  const Bytes& file_;
  z_stream zlib_{};
  std::array<Bytef, size_t{1} << 18> piece_;
  uint64_t at_ = 0;  // in the file
  size_t size_ = 0;  // unpacked so far
  std::vector<std::byte> out_;
};

}  // namespace

BytesPtr open_unpacked(const std::string& path) {
  BytesPtr file = Bytes::open(path);
  std::array<unsigned char, 2> first{};
  if (file->size() >= first.size()) file->read(first.data(), first.size(), 0);
  if (first != std::array<unsigned char, 2>{0x1f, 0x8b}) return file;
  return std::make_shared<Bytes>(Unpacking(*file).all(), path);
}

}  // namespace data
