// SPDX-License-Identifier: Apache-2.0
//
// A dataset of texts in a file of HDF5, each of a fixed length or of any: one dim, which counts the
// samples. All are read when it is opened. A sample is the bytes of a text, with zeros up to the
// longest, or its number among all texts, sorted.
#pragma once

#include <string>

#include "array.h"
#include "library.h"

namespace data {

bool is_texts(hid_t set);

class Texts : public Array {
 public:
  // `classes`, if it is given, gets the texts, and samples are numbers among them. Throws Error,
  // which begins with `subject`. REQUIRES: a Turn, and is_texts(set).
  Texts(const std::string& path, const HeldSet& set, const std::string& subject,
        std::vector<std::string>* classes);
  void read(int64_t sample, std::byte* to) const override;

 private:
  std::vector<std::string> texts_;
  std::vector<int32_t> numbers_;  // of classes
};

}  // namespace data
