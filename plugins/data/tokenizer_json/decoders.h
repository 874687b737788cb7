// SPDX-License-Identifier: Apache-2.0
//
// What makes a text of tokens again: one class for each "type".
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "part.h"

namespace data {

// [any thread]
class Decoder {
 public:
  virtual ~Decoder() = default;
  // Changes tokens in their order; the text is what is left, without anything between.
  virtual void apply(std::vector<std::string>& tokens) const = 0;
};

std::unique_ptr<Decoder> make_decoder(Part part, int depth = 0);
std::unique_ptr<Decoder> make_word_piece_decoder(Part& part);
std::unique_ptr<Decoder> make_byte_level_decoder(Part& part);
std::unique_ptr<Decoder> make_byte_fallback_decoder();

void replace_all(std::string& text, std::string_view wanted, std::string_view by);

}  // namespace data
