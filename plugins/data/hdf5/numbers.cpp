// SPDX-License-Identifier: Apache-2.0
#include "numbers.h"

#include <algorithm>

#include "../bytes.h"

namespace data {
namespace {

struct Kind {
  H5T_class_t type;
  size_t bytes;
  bool is_signed;
  const char* elements;
};
constexpr Kind kKinds[] = {
    {H5T_INTEGER, 1, true, "|i1"},  {H5T_INTEGER, 1, false, "|u1"}, {H5T_INTEGER, 2, true, "<i2"},
    {H5T_INTEGER, 2, false, "<u2"}, {H5T_INTEGER, 4, true, "<i4"},  {H5T_INTEGER, 4, false, "<u4"},
    {H5T_INTEGER, 8, true, "<i8"},  {H5T_INTEGER, 8, false, "<u8"}, {H5T_FLOAT, 2, true, "<f2"},
    {H5T_FLOAT, 4, true, "<f4"},    {H5T_FLOAT, 8, true, "<f8"}};

// The bits of the exponent in numbers of IEEE 754.
size_t exponent_bits(size_t bytes) { return bytes == 2 ? 5 : bytes == 4 ? 8 : 11; }

// The same numbers, little-endian.
HeldType little_endian(hid_t stored) {
  HeldType type(H5Tcopy(stored));
  H5Tset_order(type.get(), H5T_ORDER_LE);
  return type;
}

// h5py's booleans: FALSE and TRUE of 8 bits.
bool is_boolean(hid_t type) {
  int8_t no = 1, yes = 0;
  return H5Tget_size(type) == 1 && H5Tget_nmembers(type) == 2 &&
         H5Tenum_valueof(type, "FALSE", &no) >= 0 && H5Tenum_valueof(type, "TRUE", &yes) >= 0 &&
         no == 0 && yes == 1;
}

const char* class_name(H5T_class_t type) {
  switch (type) {
    case H5T_COMPOUND: return "compounds of several";
    case H5T_VLEN: return "lists of any length";
    case H5T_ARRAY: return "arrays";
    case H5T_ENUM: return "an enumeration";
    case H5T_REFERENCE: return "references";
    default: return "no numbers";
  }
}

}  // namespace

Numbers::Numbers(HeldSet set, std::string subject)
    : subject_(std::move(subject)), set_(std::move(set)) {
  find_elements();
  find_dims();
  chunks_.emplace(set_.get(), H5Tget_size(type_.get()), subject_);
}

void Numbers::refuse_elements(const char* what) const {
  refuse(subject_, ": its elements are ", what, ": numbers, booleans and texts are read");
}

void Numbers::find_elements() {
  const HeldType stored(H5Dget_type(set_.get()));
  const H5T_class_t type = H5Tget_class(stored.get());
  if (type == H5T_ENUM && is_boolean(stored.get())) {
    elements_ = "|b1", type_ = HeldType(H5Tcopy(stored.get()));
    return;
  }
  if (type != H5T_INTEGER && type != H5T_FLOAT) refuse_elements(class_name(type));
  const size_t bytes = H5Tget_size(stored.get());
  const bool is_signed = type == H5T_FLOAT || H5Tget_sign(stored.get()) == H5T_SGN_2;
  for (const Kind& kind : kKinds)
    if (kind.type == type && kind.bytes == bytes && kind.is_signed == is_signed)
      elements_ = kind.elements;
  size_t sign = 0, exponent = 0, exponent_size = 0, mantissa = 0, mantissa_size = 0;
  if (type == H5T_FLOAT)
    H5Tget_fields(stored.get(), &sign, &exponent, &exponent_size, &mantissa, &mantissa_size);
  if (!*elements_ || (type == H5T_FLOAT && exponent_size != exponent_bits(bytes)))
    refuse_elements("numbers of a kind that no tensor holds");
  type_ = little_endian(stored.get());
}

void Numbers::find_dims() {
  in_file_ = HeldSpace(H5Dget_space(set_.get()));
  hsize_t dims[H5S_MAX_RANK], most[H5S_MAX_RANK];  // `most`: H5S_UNLIMITED is the largest number
  const int rank = H5Sget_simple_extent_dims(in_file_.get(), dims, most);
  if (rank < 1) refuse(subject_, " is one value: the first dim of an array counts the samples");
  uint64_t bytes = H5Tget_size(type_.get());
  for (int d = 0; d < rank; ++d)
    if (dims[d] == 0 || dims[d] > std::min<hsize_t>(most[d], INT64_MAX))
      refuse(subject_, ": dim ", d, " is ", dims[d], ", of ", most[d], " at most");
  for (int d = 1; d < rank; ++d) {
    if (__builtin_mul_overflow(bytes, dims[d], &bytes)) bytes = UINT64_MAX;
    dims_.push_back(static_cast<int64_t>(dims[d]));
  }
  check_memory(bytes, subject_);
  samples_ = static_cast<int64_t>(dims[0]), bytes_ = bytes;
  dims[0] = 1;
  in_memory_ = HeldSpace(H5Screate_simple(rank, dims, nullptr));
}

void Numbers::read(int64_t sample, std::byte* to) const {
  std::vector<hsize_t> start(dims_.size() + 1), count{1};
  start[0] = static_cast<hsize_t>(sample);
  count.insert(count.end(), dims_.begin(), dims_.end());
  chunks_->check(start, count);
  if (H5Sselect_hyperslab(in_file_.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(),
                          nullptr) < 0 ||
      H5Dread(set_.get(), type_.get(), in_memory_.get(), in_file_.get(), H5P_DEFAULT, to) < 0)
    refuse(subject_, ": sample ", sample + 1, " cannot be read: ", last_error(),
           "; restore the file from a copy");
}

}  // namespace data
