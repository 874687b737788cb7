// SPDX-License-Identifier: Apache-2.0
#include "models.h"

#include <nlohmann/json.hpp>

#include "../refuse.h"

namespace data {
namespace {

// Files of the first versions do not say it.
std::string type_of(Part& part) {
  if (!part.type().empty()) return part.type();
  if (part.has("merges")) return "BPE";
  if (part.has("max_input_chars_per_word")) return "WordPiece";
  return part.any("vocab").is_array() ? "Unigram" : "WordLevel";
}

std::unique_ptr<Model> made_of(Part& part) {
  const std::string type = type_of(part);
  if (type == "BPE") return make_bpe(part);
  if (type == "WordPiece") return make_word_piece(part);
  if (type == "WordLevel") return make_word_level(part);
  if (type == "Unigram") return make_unigram(part);
  part.refuse("a model '" + type + "' is not supported");
}

}  // namespace

void refuse_unknown(const std::string& where, const std::string& token) {
  refuse(where, ": the text has what no token stands for, and 'unk_token' is '", token,
         "', which is not in 'vocab'");
}

std::unique_ptr<Model> make_model(Part part) {
  auto made = made_of(part);
  part.finish();
  return made;
}

}  // namespace data
