// SPDX-License-Identifier: Apache-2.0
//
// Tokens and their ids, of which some may be no token's.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "part.h"

namespace data {

class Vocabulary {
 public:
  // The field "vocab", {token: id}.
  static Vocabulary of(Part& part);

  // Throws, by `part`, for an id that is too large or that of another token.
  void add(Part& part, const std::string& token, int64_t id);
  // -1 for no token.
  int32_t id(std::string_view token) const;
  // Null for an id that is no token's.
  const std::string* token(int64_t id) const;
  int64_t size() const { return static_cast<int64_t>(tokens_.size()); }

  // The ids of "<0x00>" to "<0xFF>", which stand for the bytes of `text`; false, and nothing is
  // added, if one of them is not there.
  bool add_bytes(std::string_view text, std::vector<int32_t>& ids) const;

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> ids_;
  std::vector<std::optional<std::string>> tokens_;
};

}  // namespace data
