// SPDX-License-Identifier: Apache-2.0
#include "heap.h"

#include <cstring>

namespace data {
namespace {

constexpr size_t kObject = 8;  // bytes of an object's header before its size, and of a heap's

// A conversion from references in the file to bytes in memory, which changes none.
herr_t keep_references(hid_t from, hid_t to, H5T_cdata_t* call, size_t, size_t, size_t, void*,
                       void*, hid_t) {
  call->need_bkg = H5T_BKG_NO;
  return H5Tget_size(from) == H5Tget_size(to) ? 0 : -1;
}

// Lets the library read texts of any length as bytes.
void know_references(hid_t bytes) {
  static const bool known = [&] {
    const HeldType texts(H5Tcopy(H5T_C_S1));
    H5Tset_size(texts.get(), H5T_VARIABLE);
    return H5Tregister(H5T_PERS_SOFT, "references of texts", texts.get(), bytes, keep_references) >=
           0;
  }();
  if (!known) fail(ORR_FAILED, "HDF5 takes no conversion: ", last_error());
}

}  // namespace

Heaps::Heaps(const std::string& path, hid_t file, const std::string& subject)
    : file_(Bytes::open(path)), subject_(subject) {
  const HeldList created(H5Fget_create_plist(file));
  hsize_t before = 0;
  if (H5Pget_sizes(created.get(), &address_bytes_, &size_bytes_) < 0 ||
      H5Pget_userblock(created.get(), &before) < 0 || address_bytes_ > 8 || size_bytes_ > 8)
    damaged("the sizes of addresses in it are none that are read");
  base_ = before;
  reference_ = HeldType(H5Tcreate(H5T_OPAQUE, reference_bytes()));
  know_references(reference_.get());
}

void Heaps::damaged(const char* what) const {
  refuse(subject_, ": ", what, "; restore the file from a copy");
}

uint64_t Heaps::number(const std::byte* bytes, size_t count) const {
  uint64_t value = 0;
  for (size_t i = count; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

// Finds what a heap holds. Each object has a number, how often it is referred to, its size, and its
// bytes, filled up to a multiple of 8; that of number 0 is the room that is left.
void Heaps::open(uint64_t at) {
  held_.clear(), open_at_ = UINT64_MAX;
  const size_t head = kObject + size_bytes_;
  if (at > file_->size() || file_->size() - at < head) damaged("a text is behind the file's end");
  std::byte first[2 * kObject];
  file_->read(first, head, at);
  if (std::memcmp(first, "GCOL\1", 5) != 0) damaged("a text is in no heap");
  const uint64_t size = number(first + kObject, size_bytes_);
  if (size < head || size > file_->size() - at) damaged("a heap of texts is cut short");
  check_memory(size, subject_);
  std::vector<std::byte> heap(size);
  file_->read(heap.data(), size, at);
  for (uint64_t from = head; size - from >= head;) {
    const uint64_t name = number(heap.data() + from, 2),
                   bytes = number(heap.data() + from + kObject, size_bytes_);
    if (name == 0) break;
    if (bytes > size - from - head) damaged("a text is longer than its heap");
    held_[name] = {at + from + head, bytes};
    from += head + std::min((bytes + 7) / 8 * 8, size - from - head);
  }
  open_at_ = at;
}

// A reference has the length, the address of a heap and the number of an object there.
std::string Heaps::text(const std::byte* reference) {
  const uint64_t length = number(reference, 4), address = number(reference + 4, address_bytes_),
                 name = number(reference + 4 + address_bytes_, 4);
  if (length == 0) return "";
  uint64_t at = 0;
  if (__builtin_add_overflow(base_, address, &at)) damaged("a text is behind the file's end");
  if (at != open_at_) open(at);
  const auto held = held_.find(name);
  if (held == held_.end() || held->second.bytes < length)
    damaged("a text is not in the heap that it should be in");
  std::string text(length, '\0');
  file_->read(text.data(), length, held->second.at);
  return text.substr(0, text.find('\0'));
}

}  // namespace data
