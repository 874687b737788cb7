// SPDX-License-Identifier: Apache-2.0
//
// Samples of one size at equal distances in memory: arrays of the script, and tokens.
#pragma once

#include "data/dataset.h"
#include "store/stored.h"

namespace orrery {

// Sample i of a column begins at byte offset + i * stride. Of tokens the stride is one token, so
// that samples overlap; y is x one token later.
struct Column {
  DataField field;
  std::shared_ptr<const std::vector<std::byte>> bytes;  // elements of the field's dtype
  uint64_t offset = 0, stride = 0;
};

class Columns : public Dataset {
 public:
  // REQUIRES: the last sample of every column ends inside of its bytes.
  Columns(std::vector<Column> columns, int64_t samples, int64_t window = 0,
          std::shared_ptr<const Tokenizer> tokenizer = {});
  void read(std::span<const Pick> picks, std::span<std::byte* const> to) const override;
  bool slow() const override { return false; }

 private:
  std::vector<Column> columns_;
};

// Windows of `length` tokens of a text as fields x and y, which is x one token later. Throws Error
// if there are too few; `name` is what it calls the text.
DatasetPtr windows_of(const std::string& text, std::shared_ptr<const Tokenizer> tokenizer,
                      int64_t length, const std::string& name);

}  // namespace orrery
