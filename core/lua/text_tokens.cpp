// SPDX-License-Identifier: Apache-2.0
//
// Text as tokens: bytes, or the distinct Unicode characters of the text itself.
#include <map>
#include <set>

#include "base/error.h"
#include "lua/dataset.h"

namespace orrery::lua {
namespace {

// The length of the UTF-8 character at `at`, 0 if it is not one.
size_t character(const std::string& text, size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  const size_t size = lead < 0x80   ? 1
                      : lead < 0xc2 ? 0
                      : lead < 0xe0 ? 2
                      : lead < 0xf0 ? 3
                      : lead < 0xf5 ? 4
                                    : 0;
  if (size == 0 || at + size > text.size()) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((static_cast<unsigned char>(text[at + i]) & 0xc0) != 0x80) return 0;
  }
  return size;
}

std::vector<std::string> characters(const std::string& text, const std::string& name) {
  std::vector<std::string> list;
  for (size_t at = 0; at < text.size();) {
    const size_t size = character(text, at);
    if (!size) {
      fail(ORR_INVALID, "{}: byte {} is not UTF-8; read it with tokens = 'bytes'", name, at);
    }
    list.push_back(text.substr(at, size));
    at += size;
  }
  return list;
}

}  // namespace

Dataset text_dataset(const std::string& text, const std::string& tokens, int64_t ctx,
                     const std::string& name) {
  if (ctx < 1) fail(ORR_INVALID, "ctx is {}, expected at least 1", ctx);
  if (text.empty()) fail(ORR_INVALID, "{}: the text is empty", name);
  std::set<std::string> symbols;
  if (tokens == "bytes") {
    for (int byte = 0; byte < 256; ++byte) symbols.emplace(1, static_cast<char>(byte));
  } else if (tokens == "chars") {
    for (std::string& symbol : characters(text, name)) symbols.insert(std::move(symbol));
  } else {
    fail(ORR_INVALID, "tokens is '{}': 'chars' or 'bytes'", tokens);
  }
  Dataset data;
  data.symbols = std::make_shared<const std::vector<std::string>>(symbols.begin(), symbols.end());
  const std::vector<int32_t> ids = encode(data, text);
  const auto count = static_cast<int64_t>(ids.size());
  if (count <= ctx) {
    fail(ORR_INVALID, "{}: the text has {} {}, ctx = {} needs at least {}", name, count, tokens,
         ctx, ctx + 1);
  }
  const auto* begin = reinterpret_cast<const std::byte*>(ids.data());
  auto bytes = std::make_shared<const std::vector<std::byte>>(begin, begin + count * 4);
  data.columns = {{"x", {ORR_I32, {ctx}}, bytes, 0, 4}, {"y", {ORR_I32, {ctx}}, bytes, 4, 4}};
  data.samples = count - ctx;
  data.window = data.overlap = ctx;
  return data;
}

std::vector<int32_t> encode(const Dataset& data, const std::string& text) {
  std::vector<int32_t> ids;
  ids.reserve(text.size());
  if (data.symbols->size() == 256 && (*data.symbols)[255] == "\xff") {
    for (char byte : text) ids.push_back(static_cast<unsigned char>(byte));
    return ids;
  }
  std::map<std::string, int32_t> index;
  for (const std::string& symbol : *data.symbols)
    index.emplace(symbol, static_cast<int32_t>(index.size()));
  for (const std::string& symbol : characters(text, "encode")) {
    const auto found = index.find(symbol);
    if (found == index.end()) {
      fail(ORR_INVALID, "encode: the character '{}' does not occur in the text of this dataset",
           symbol);
    }
    ids.push_back(found->second);
  }
  return ids;
}

std::string decode(const Dataset& data, const std::vector<int64_t>& ids) {
  std::string text;
  for (int64_t id : ids) {
    if (id < 0 || id >= static_cast<int64_t>(data.symbols->size())) {
      fail(ORR_INVALID, "decode: token {} is outside 0..{}", id, data.symbols->size() - 1);
    }
    text += (*data.symbols)[static_cast<size_t>(id)];
  }
  return text;
}

}  // namespace orrery::lua
