// SPDX-License-Identifier: Apache-2.0
//
// What makes tokens of the parts of a text: one class for each "type" of a model.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "part.h"
#include "vocabulary.h"

namespace data {

// [any thread]
class Model {
 public:
  virtual ~Model() = default;
  // Adds the ids of a part of a text. REQUIRES: it is UTF-8, and not empty.
  virtual void encode(std::string_view text, std::vector<int32_t>& ids) const = 0;
  const Vocabulary& vocabulary() const { return vocabulary_; }

 protected:
  explicit Model(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}
  Vocabulary vocabulary_;
};

// Throws an Error: a text needs the token for what is unknown, which the vocabulary does not have.
[[noreturn]] void refuse_unknown(const std::string& where, const std::string& token);

std::unique_ptr<Model> make_model(Part part);
std::unique_ptr<Model> make_bpe(Part& part);
std::unique_ptr<Model> make_word_piece(Part& part);
std::unique_ptr<Model> make_word_level(Part& part);
std::unique_ptr<Model> make_unigram(Part& part);

}  // namespace data
