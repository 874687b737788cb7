// SPDX-License-Identifier: Apache-2.0
//
// Module paths, and the patterns by which options name them. A pattern is compared part by part
// with the beginning of a path: "blocks.*" matches every element of blocks, "blocks.1-6" the first
// six, "mlp*" any part that begins with mlp. Lists of patterns are texts with commas between.
#pragma once

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

namespace orr::path {

inline std::vector<std::string> cut(std::string_view text, char at) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find(at, begin), text.size());
    while (begin < end && text[begin] == ' ') ++begin;
    size_t last = end;
    while (last > begin && text[last - 1] == ' ') --last;
    if (last > begin) parts.emplace_back(text.substr(begin, last - begin));
    begin = end + 1;
  }
  return parts;
}

// The module's path as in names of parameters: without the name of the outermost module.
inline std::string inside(std::string_view region) {
  size_t dot = region.find('.');
  return dot == std::string_view::npos ? std::string() : std::string(region.substr(dot + 1));
}

inline bool whole_number(std::string_view text, long& out) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return !text.empty() && error == std::errc() && end == text.data() + text.size();
}

// Whether one part of a pattern matches one part of a path.
inline bool part_matches(std::string_view pattern, std::string_view part) {
  long first, last, at;
  size_t dash = pattern.find('-');
  if (dash != std::string_view::npos && whole_number(pattern.substr(0, dash), first) &&
      whole_number(pattern.substr(dash + 1), last))
    return whole_number(part, at) && first <= at && at <= last;
  if (pattern.empty()) return part.empty();
  if (pattern[0] != '*')
    return !part.empty() && part[0] == pattern[0] &&
           part_matches(pattern.substr(1), part.substr(1));
  for (size_t skip = 0; skip <= part.size(); ++skip)
    if (part_matches(pattern.substr(1), part.substr(skip))) return true;
  return false;
}

// The beginning of `path` that the pattern matches; "" if it does not match.
inline std::string front(std::string_view pattern, std::string_view path) {
  std::vector<std::string> want = cut(pattern, '.'), have = cut(path, '.');
  if (want.empty() || have.size() < want.size()) return "";
  std::string found;
  for (size_t i = 0; i < want.size(); ++i) {
    if (!part_matches(want[i], have[i])) return "";
    found += (i ? "." : "") + have[i];
  }
  return found;
}

}  // namespace orr::path
