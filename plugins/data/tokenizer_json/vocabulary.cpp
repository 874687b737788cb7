// SPDX-License-Identifier: Apache-2.0
#include "vocabulary.h"

#include <nlohmann/json.hpp>

#include "../bpe/bpe.h"

namespace data {

Vocabulary Vocabulary::of(Part& part) {
  const nlohmann::json& given = part.any("vocab");
  if (!given.is_object()) part.refuse("'vocab' is not {\"token\": id, ...}");
  Vocabulary vocabulary;
  for (const auto& [token, id] : given.items()) {
    const bool fits = id.is_number_unsigned() && id.get<uint64_t>() < kMostIds;
    if (!fits)
      part.refuse("the token '" + token + "' has the id " + id.dump().substr(0, 40) +
                  ": ids are whole numbers from 0 to " + std::to_string(kMostIds - 1));
    vocabulary.add(part, token, id.get<int64_t>());
  }
  return vocabulary;
}

void Vocabulary::add(Part& part, const std::string& token, int64_t id) {
  if (id >= static_cast<int64_t>(kMostIds))
    part.refuse("the id " + std::to_string(id) + ": ids are below " + std::to_string(kMostIds));
  const auto place = static_cast<size_t>(id);
  if (place >= tokens_.size()) tokens_.resize(place + 1);
  if (tokens_[place])
    part.refuse("the token '" + token + "' has the id " + std::to_string(id) +
                ", which is that of '" + *tokens_[place] + "'; give each its own");
  tokens_[place] = token;
  ids_.insert_or_assign(token, static_cast<int32_t>(id));
}

int32_t Vocabulary::id(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? -1 : found->second;
}

const std::string* Vocabulary::token(int64_t id) const {
  if (id < 0 || id >= size()) return nullptr;
  const auto& found = tokens_[static_cast<size_t>(id)];
  return found ? &*found : nullptr;
}

bool Vocabulary::add_bytes(std::string_view text, std::vector<int32_t>& ids) const {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  const size_t before = ids.size();
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const char name[] = {'<', '0', 'x', kDigits[byte >> 4], kDigits[byte & 15], '>'};
    ids.push_back(id({name, sizeof name}));
    if (ids.back() >= 0) continue;
    ids.resize(before);
    return false;
  }
  return true;
}

}  // namespace data
