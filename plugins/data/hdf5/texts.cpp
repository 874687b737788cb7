// SPDX-License-Identifier: Apache-2.0
#include "texts.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include "chunks.h"
#include "heap.h"

namespace data {
namespace {

constexpr hsize_t kRows = 1024;  // are read at once

// A text of a fixed length without what fills it up.
std::string_view unpadded(std::string_view text, H5T_str_t padding) {
  if (padding == H5T_STR_NULLTERM) return text.substr(0, text.find('\0'));
  const size_t last = text.find_last_not_of(padding == H5T_STR_SPACEPAD ? ' ' : '\0');
  return text.substr(0, last + 1);
}

class Reader {
 public:
  Reader(const std::string& path, hid_t set, const std::string& subject)
      : path_(path),
        set_(set),
        subject_(subject),
        type_(H5Dget_type(set)),
        in_file_(H5Dget_space(set)),
        any_length_(H5Tis_variable_str(type_.get()) > 0),
        bytes_(H5Tget_size(type_.get())),
        padding_(H5Tget_strpad(type_.get())) {
    hsize_t dims[H5S_MAX_RANK];
    const int rank = H5Sget_simple_extent_dims(in_file_.get(), dims, nullptr);
    if (rank != 1)
      refuse(subject_, ": its texts have ", rank < 0 ? 0 : rank,
             " dims: those with one, which counts the samples, are read");
    if (dims[0] == 0 || dims[0] > INT32_MAX)
      refuse(subject_, ": dim 0 is ", dims[0], "; give from 1 to ", INT32_MAX, " texts");
    samples_ = dims[0];
  }

  std::vector<std::string> all() {
    std::vector<std::string> texts;
    std::optional<Heaps> heaps;
    if (any_length_) heaps.emplace(path_, HeldFile(H5Iget_file_id(set_)).get(), subject_);
    Chunks chunks(set_, heaps ? heaps->reference_bytes() : bytes_, subject_);
    for (hsize_t from = 0; from < samples_; from += kRows) {
      const hsize_t count = std::min(kRows, samples_ - from);
      chunks.check({from}, {count});
      const HeldSpace some(H5Screate_simple(1, &count, nullptr));
      H5Sselect_hyperslab(in_file_.get(), H5S_SELECT_SET, &from, nullptr, &count, nullptr);
      if (heaps)
        add_any(texts, *heaps, some.get(), count);
      else
        add_fixed(texts, some.get(), count);
      check_memory(total_, subject_);
    }
    return texts;
  }

 private:
  void get(hid_t type, hid_t some, hsize_t first, void* to) {
    if (H5Dread(set_, type, some, in_file_.get(), H5P_DEFAULT, to) < 0)
      refuse(subject_, ": texts from sample ", first + 1, " on cannot be read: ", last_error(),
             "; restore the file from a copy");
  }
  void add(std::vector<std::string>& texts, std::string_view text) {
    total_ += text.size() + sizeof(std::string);
    texts.emplace_back(text);
  }
  void add_any(std::vector<std::string>& texts, Heaps& heaps, hid_t some, hsize_t count) {
    const size_t bytes = heaps.reference_bytes();
    std::vector<std::byte> references(bytes * count);
    get(heaps.reference(), some, texts.size(), references.data());
    for (hsize_t i = 0; i < count; ++i) add(texts, heaps.text(references.data() + i * bytes));
  }
  void add_fixed(std::vector<std::string>& texts, hid_t some, hsize_t count) {
    size_t bytes = 0;
    if (__builtin_mul_overflow(bytes_, static_cast<size_t>(count), &bytes)) bytes = SIZE_MAX;
    check_memory(bytes, subject_);
    std::vector<char> read(bytes);
    get(type_.get(), some, texts.size(), read.data());
    for (hsize_t i = 0; i < count; ++i)
      add(texts, unpadded({read.data() + i * bytes_, bytes_}, padding_));
  }

  const std::string& path_;
  const hid_t set_;
  const std::string& subject_;
  const HeldType type_;
  const HeldSpace in_file_;
  const bool any_length_;
  const size_t bytes_;
  const H5T_str_t padding_;
  hsize_t samples_ = 0;
  uint64_t total_ = 0;
};

}  // namespace

bool is_texts(hid_t set) {
  const HeldType type(H5Dget_type(set));
  return H5Tget_class(type.get()) == H5T_STRING;
}

Texts::Texts(const std::string& path, const HeldSet& set, const std::string& subject,
             std::vector<std::string>* classes)
    : texts_(Reader(path, set.get(), subject).all()) {
  samples_ = static_cast<int64_t>(texts_.size());
  if (!classes) {
    size_t longest = 1;
    for (const std::string& text : texts_) longest = std::max(longest, text.size());
    elements_ = "|u1", dims_ = {static_cast<int64_t>(longest)}, bytes_ = longest;
    return;
  }
  std::vector<std::string> names = texts_;
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  for (const std::string& text : texts_)
    numbers_.push_back(
        static_cast<int32_t>(std::lower_bound(names.begin(), names.end(), text) - names.begin()));
  *classes = std::move(names);
  texts_.clear();
  elements_ = "<i4", bytes_ = sizeof(int32_t);
}

void Texts::read(int64_t sample, std::byte* to) const {
  const auto i = static_cast<size_t>(sample);
  if (!numbers_.empty()) {
    std::memcpy(to, &numbers_[i], sizeof numbers_[i]);
    return;
  }
  std::memcpy(to, texts_[i].data(), texts_[i].size());
  std::memset(to + texts_[i].size(), 0, bytes_ - texts_[i].size());
}

}  // namespace data
