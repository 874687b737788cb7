// SPDX-License-Identifier: Apache-2.0
//
// Byte pair encoding of characters: those of the byte level, or any, of which unknown ones become
// tokens of their bytes ("byte_fallback"), "unk_token", or nothing.
#include <nlohmann/json.hpp>

#include "../bpe/merges.h"
#include "characters.h"
#include "models.h"

namespace data {
namespace {

class ModelBpe : public Model {
 public:
  explicit ModelBpe(Part& part)
      : Model(Vocabulary::of(part)),
        where_(part.where()),
        prefix_(part.text("continuing_subword_prefix", "")),
        suffix_(part.text("end_of_word_suffix", "")),
        unknown_(part.text("unk_token", "")),
        has_unknown_(part.has("unk_token")),
        fuses_(part.flag("fuse_unk", false)),
        falls_back_(part.flag("byte_fallback", false)),
        whole_first_(part.flag("ignore_merges", false)) {
    if (part.has("dropout") && part.any("dropout") != 0.0)
      part.refuse("'dropout' makes ids by chance; set it to null");
    read_merges(part);
  }

  void encode(std::string_view text, std::vector<int32_t>& ids) const override {
    if (whole_first_)
      if (const int32_t id = vocabulary_.id(text); id >= 0) return ids.push_back(id);
    std::vector<int32_t> own;
    split(text, own);
    merges_.merge(own);
    ids.insert(ids.end(), own.begin(), own.end());
  }

 private:
  void read_merges(Part& part) {
    const nlohmann::json& list = part.any("merges");
    if (!list.is_array()) part.refuse("'merges' is not a list");
    size_t rank = 0;
    for (const nlohmann::json& each : list) {
      const auto [left, right] = pair_of(part, each);
      const std::string_view behind =
          std::string_view(right).substr(std::min(prefix_.size(), right.size()));
      const int32_t ids[] = {vocabulary_.id(left), vocabulary_.id(right),
                             vocabulary_.id(left + std::string(behind))};
      for (int32_t id : ids)
        if (id < 0)
          part.refuse("merges[" + std::to_string(rank) + "]: '" + left + "' and '" + right +
                      "': one of them, or both together, are no token of 'vocab'");
      merges_.add(ids[0], ids[1], rank++, ids[2]);
    }
  }

  // ["left", "right"], or "left right".
  static std::pair<std::string, std::string> pair_of(Part& part, const nlohmann::json& merge) {
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string())
      return {merge[0].get<std::string>(), merge[1].get<std::string>()};
    const std::string text = merge.is_string() ? merge.get<std::string>() : "";
    const size_t blank = text.find(' ');
    if (blank == text.npos || text.find(' ', blank + 1) != text.npos)
      part.refuse("'merges' has " + merge.dump(-1, ' ', false).substr(0, 80) +
                  ", expected two tokens with a blank between them");
    return {text.substr(0, blank), text.substr(blank + 1)};
  }

  // The ids of characters. Unknown ones that follow each other may become one token; where tokens
  // of bytes come between, the token for what is unknown comes behind these.
  void split(std::string_view text, std::vector<int32_t>& ids) const {
    bool waits = false;  // for the token of what is unknown
    std::string changed;
    const bool is_plain = prefix_.empty() && suffix_.empty();
    each_character(text, [&](char32_t, size_t begin, size_t end) {
      std::string_view character = text.substr(begin, end - begin);
      if (!is_plain) {
        changed = (begin ? prefix_ : "") + std::string(character);
        if (end == text.size()) changed += suffix_;
        character = changed;
      }
      if (const int32_t id = vocabulary_.id(character); id >= 0) {
        if (waits) ids.push_back(unknown());
        waits = false;
        ids.push_back(id);
      } else if (!(falls_back_ && vocabulary_.add_bytes(character, ids)) && has_unknown_) {
        if (waits && !fuses_) ids.push_back(unknown());
        waits = true;
      }
    });
    if (waits) ids.push_back(unknown());
  }

  int32_t unknown() const {
    const int32_t id = vocabulary_.id(unknown_);
    if (id < 0) refuse_unknown(where_, unknown_);
    return id;
  }

  std::string where_, prefix_, suffix_, unknown_;
  bool has_unknown_, fuses_, falls_back_, whole_first_;
  Merges merges_;
};

}  // namespace

std::unique_ptr<Model> make_bpe(Part& part) { return std::make_unique<ModelBpe>(part); }

}  // namespace data
