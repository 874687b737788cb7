// SPDX-License-Identifier: Apache-2.0
#include "edit/metric_name.h"

#include <orrery/sdk/utf8.hpp>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.h"

namespace orrery {
namespace {

constexpr size_t kMostBytes = 200;

// The keys and columns of files, and what the core itself measures (telling.cpp, vitals.cpp).
constexpr const char* kReserved[] = {
    "step",       "time",          "seconds",     "data_seconds",      "samples_per_second",
    "loss",       "grad_norm",     "mfu",         "tokens_per_second", "checkpoint_seconds",
    "bytes_sent", "learning_rate", "arena_bytes", "resident_bytes"};

// As RFC 3629 has it: the shortest form of each code point, and no surrogates.
bool is_utf8(std::string_view text) {
  constexpr std::array<char32_t, 5> least{0, 0, 0x80, 0x800, 0x10000};
  for (size_t at = 0; at < text.size();) {
    const auto [code, bytes] = orr::code_point(text, at);
    if (bytes == 0 || code < least[bytes] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
      return false;
    at += bytes;
  }
  return true;
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

}  // namespace

std::string printable(std::string_view text) {
  const bool ascii_only = !is_utf8(text);
  std::string out;
  for (char c : text)
    if (is_control(c) || (ascii_only && static_cast<unsigned char>(c) >= 0x80))
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      out += c;
  return out;
}

void check_metric_name(const std::string& name, const std::string& what) {
  const auto refuse = [&](const std::string& why) {
    fail(ORR_INVALID, "{} '{}' {}", what, printable(name.substr(0, kMostBytes)), why);
  };
  if (name.empty()) refuse("is empty: give it a name, such as \"accuracy\"");
  if (!is_utf8(name)) refuse("is not UTF-8, which files of metrics are: name it in UTF-8");
  if (name.size() > kMostBytes)
    refuse(fmt::format("... has {} bytes, {} are the most: take a shorter one", name.size(),
                       kMostBytes));
  if (std::any_of(name.begin(), name.end(), is_control))
    refuse("has a line end or another control character: leave it out");
  if (std::find(std::begin(kReserved), std::end(kReserved), name) != std::end(kReserved))
    refuse(
        fmt::format("is what files of metrics call a number of their own: take another one, "
                    "such as \"my_{}\"",
                    name));
}

}  // namespace orrery
