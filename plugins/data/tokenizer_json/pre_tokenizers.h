// SPDX-License-Identifier: Apache-2.0
//
// What cuts a text into the parts that the model makes tokens of: one class for each "type".
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "part.h"

namespace data {

struct Piece {
  std::string_view text;
  bool is_first;  // it begins with the first character of what was encoded
};
using GivePiece = std::function<void(const Piece&)>;

// [any thread]
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // Gives parts that are not empty, whose texts live for the call. REQUIRES: the text is UTF-8.
  virtual void cut(const Piece& piece, const GivePiece& give) const = 0;
};

std::unique_ptr<PreTokenizer> make_pre_tokenizer(Part part, int depth = 0);
std::unique_ptr<PreTokenizer> make_byte_level(Part& part);
std::unique_ptr<PreTokenizer> make_metaspace(Part& part);

}  // namespace data
