// SPDX-License-Identifier: Apache-2.0
//
// The files of byte-level BPEs.
#include <algorithm>
#include <charconv>
#include <fstream>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "../refuse.h"
#include "../small_text.h"
#include "base64.h"
#include "bpe.h"
#include "byte_characters.h"

namespace data {
namespace {

using Ids = std::unordered_map<std::string, int32_t>;

// `read(line, number)` for each line, which ends in LF or CR LF.
template <class Read>
void for_each_line(const std::string& text, Read&& read) {
  int64_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    if (line.ends_with('\r')) line.pop_back();
    read(line, ++number);
  }
}

// The ids by the texts of the file.
Ids read_vocab(const std::string& path, Bpe& bpe) {
  const auto json = nlohmann::json::parse(small_text(path), nullptr, false);
  if (!json.is_object() || json.empty())
    refuse(path, ": not a vocabulary: expected JSON, {\"token\": id, ...}");
  Ids ids;
  for (const auto& [token, given] : json.items()) {
    const auto id = given.is_number_unsigned() ? given.get<uint64_t>() : kMostIds;
    if (id >= kMostIds || token.empty())
      refuse(path, ": token '", token, "' has the id ", given.dump(),
             ": tokens have at least one byte, ids are whole numbers from 0 to ", kMostIds - 1);
    if (id >= bpe.tokens.size()) bpe.tokens.resize(id + 1);
    if (!bpe.tokens[id].empty())
      refuse(path, ": token '", token, "' has the id ", id, ", which is that of '",
             written(bpe, static_cast<int32_t>(id)), "'; give each its own");
    bpe.tokens[id] = bytes_of(token);
    if (!stands_for_bytes(token)) bpe.literal.insert(static_cast<int32_t>(id));
    ids[token] = static_cast<int32_t>(id);
  }
  return ids;
}

// Each way to make a token of two others, the token that was learned first before others.
std::vector<Bpe::Merge> merges_to(const std::vector<std::string>& tokens) {
  std::unordered_map<std::string_view, int32_t> ids;
  for (size_t id = 0; id < tokens.size(); ++id) ids[tokens[id]] = static_cast<int32_t>(id);
  std::vector<Bpe::Merge> merges;
  for (size_t id = 0; id < tokens.size(); ++id) {
    const std::string_view token = tokens[id];
    for (size_t at = 1; at < token.size(); ++at) {
      const auto left = ids.find(token.substr(0, at)), right = ids.find(token.substr(at));
      if (left != ids.end() && right != ids.end())
        merges.push_back({left->second, right->second, static_cast<int32_t>(id)});
    }
  }
  return merges;
}

void write(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) fail(ORR_FAILED, path, ": cannot be written");
}

}  // namespace

Bpe read_bpe(const std::string& vocab, const std::string& merges) {
  Bpe bpe;
  const Ids ids = read_vocab(vocab, bpe);
  for_each_line(small_text(merges), [&](const std::string& pair, int64_t line) {
    if (pair.empty() || (line == 1 && pair.starts_with("#version"))) return;
    const size_t blank = pair.find(' ');
    if (blank == pair.npos || pair.find(' ', blank + 1) != pair.npos)
      refuse(merges, ": line ", line, ": '", pair.substr(0, 80),
             "': expected two tokens with a blank between them");
    const auto id = [&](const std::string& token) {
      const auto found = ids.find(token);
      if (found == ids.end())
        refuse(merges, ": line ", line, ": '", pair.substr(0, 80), "' needs a token that ", vocab,
               " does not have; give the two files of one tokenizer");
      return found->second;
    };
    const std::string left = pair.substr(0, blank), right = pair.substr(blank + 1);
    bpe.merges.push_back({id(left), id(right), id(left + right)});
  });
  return bpe;
}

void write_bpe(const Bpe& bpe, const std::string& vocab, const std::string& merges) {
  nlohmann::ordered_json ids = nlohmann::ordered_json::object();
  for (size_t id = 0; id < bpe.tokens.size(); ++id)
    if (!bpe.tokens[id].empty()) ids[written(bpe, static_cast<int32_t>(id))] = id;
  std::string pairs = "#version: 0.2\n";
  for (const Bpe::Merge& merge : bpe.merges)
    pairs += written(bpe, merge.left) + " " + written(bpe, merge.right) + "\n";
  write(vocab, ids.dump());
  write(merges, pairs);
}

Bpe read_tiktoken(const std::string& path) {
  Bpe bpe;
  bpe.whole_first = true;
  const std::string text = small_text(path);
  std::unordered_map<std::string, int64_t> lines;  // of the tokens
  for_each_line(text, [&](const std::string& line, int64_t number) {
    if (line.empty()) return;
    const size_t blank = std::min(line.find(' '), line.size());
    const std::string token = from_base64(std::string_view(line).substr(0, blank));
    const char* end = line.data() + line.size();
    size_t id = 0;
    const auto [stop, error] =
        std::from_chars(line.data() + std::min(blank + 1, line.size()), end, id);
    if (token.empty() || error != std::errc() || stop != end)
      refuse(path, ": line ", number, ": '", line.substr(0, 80),
             "': expected a token's bytes in base64, a blank and its id");
    if (id >= kMostIds || (id < bpe.tokens.size() && !bpe.tokens[id].empty()))
      refuse(path, ": line ", number, ": the id ", id, ": ids are 0 to ", kMostIds - 1,
             ", each once");
    if (const auto [other, is_new] = lines.try_emplace(token, number); !is_new)
      refuse(path, ": line ", number, ": the token is that of line ", other->second,
             "; take one of them away");
    if (id >= bpe.tokens.size()) bpe.tokens.resize(id + 1);
    bpe.tokens[id] = token;
  });
  bpe.merges = merges_to(bpe.tokens);
  return bpe;
}

void write_tiktoken(const Bpe& bpe, const std::string& path) {
  std::string lines;
  for (size_t id = 0; id < bpe.tokens.size(); ++id)
    if (!bpe.tokens[id].empty() && !bpe.literal.contains(static_cast<int32_t>(id)))
      lines += to_base64(bpe.tokens[id]) + " " + std::to_string(id) + "\n";
  write(path, lines);
}

}  // namespace data
