// SPDX-License-Identifier: Apache-2.0
#include "npy_header.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <orrery/sdk/plugin.hpp>
#include <string_view>

#include "refuse.h"

namespace data {
namespace {

constexpr uint64_t kMostBytes = 1 << 20;
constexpr std::string_view kSpaces = " \t\r\n\f";

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kSpaces);
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}

// What is between the quotes of a text of Python's; "" for anything else.
std::string_view unquoted(std::string_view text) {
  if (text.size() < 2 || (text[0] != '\'' && text[0] != '"') || text.back() != text[0]) return "";
  const std::string_view inner = text.substr(1, text.size() - 2);
  return inner.find_first_of("\\'\"") == inner.npos ? inner : "";
}

// Takes an expression off the begin of `rest`: it ends before `end`, or before the comma or bracket
// that is in no quotes or brackets of its own.
std::string_view take(std::string_view& rest, char end) {
  size_t depth = 0, at = 0;
  char quote = 0;
  for (; at < rest.size(); ++at) {
    const char c = rest[at];
    const auto is_one_of = [&](std::string_view these) { return these.find(c) != these.npos; };
    if (quote) {
      if (c == '\\') ++at;
      if (c == quote) quote = 0;
    } else if (depth == 0 && (c == end || is_one_of(",)]}"))) {
      break;
    } else if (is_one_of("'\"")) {
      quote = c;
    } else if (is_one_of("([{")) {
      ++depth;
    } else if (is_one_of(")]}")) {
      --depth;
    }
  }
  at = std::min(at, rest.size());
  const std::string_view taken = trimmed(rest.substr(0, at));
  rest.remove_prefix(at);
  return taken;
}

class Dictionary {
 public:
  Dictionary(std::string_view text, const std::string& label) : label_(label) {
    std::string_view rest = trimmed(text);
    const auto skip = [&](char c) {
      return rest.starts_with(c) ? (rest.remove_prefix(1), true) : false;
    };
    const auto expect = [&](bool good) {
      if (!good)
        refuse(label, ": the .npy header is no Python dictionary: ", trimmed(text).substr(0, 80),
               "; save the array again");
    };
    expect(skip('{'));
    while (rest = trimmed(rest), !skip('}')) {
      const std::string_view key = unquoted(take(rest, ':'));
      expect(!key.empty() && skip(':'));
      const std::string_view value = take(rest, ',');
      expect(!value.empty() && (skip(',') || rest.starts_with('}')));
      values_[std::string(key)] = value;
    }
    expect(rest.empty());
    for (const auto& [key, value] : values_)
      if (key != "descr" && key != "fortran_order" && key != "shape")
        refuse(label, ": the .npy header has the key '", key.substr(0, 40),
               "', it is to have descr, fortran_order and shape alone; save the array again");
  }

  std::string_view operator[](const char* key) const {
    const auto found = values_.find(key);
    if (found == values_.end())
      refuse(label_, ": the .npy header lacks '", key, "'; save the array again");
    return found->second;
  }

 private:
  const std::string& label_;
  std::map<std::string, std::string_view> values_;
};

// 0 for an element that no tensor holds. ml_dtypes writes bfloat16 as "V2".
int64_t bytes_of(std::string_view elements) {
  if (elements.find_first_of("<>|=") == 0) elements.remove_prefix(1);
  if (elements == "bfloat16") return 2;
  for (const char* known :
       {"f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1", "V2"})
    if (elements == known) return elements[1] - '0';
  return 0;
}

// "(2, 3)", "(5,)" or "()"; Python 2 wrote "(2L, 3L)" too.
std::vector<int64_t> dims_in(std::string_view text, const std::string& label) {
  const auto expect = [&](bool good, const char* expected) {
    if (!good)
      refuse(label, ": the shape ", text.substr(0, 80), " is not valid: ", expected,
             " expected; save the array again");
  };
  expect(text.starts_with('(') && text.ends_with(')'), "a tuple");
  std::vector<int64_t> dims;
  std::string_view rest = trimmed(text.substr(1));
  while (rest != ")") {
    std::string_view number = take(rest, ',');
    if (number.ends_with('L')) number.remove_suffix(1);
    int64_t dim = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), dim);
    expect(error == std::errc() && end == number.data() + number.size() && dim >= 0,
           "whole numbers from 0");
    expect(dims.size() < ORR_MAX_RANK, "at most 8 dims");
    dims.push_back(dim);
    const bool more = rest.starts_with(',');
    expect(more || (rest == ")" && dims.size() > 1), "a tuple");  // "(5)" is a number
    if (more) rest = trimmed(rest.substr(1));
  }
  return dims;
}

bool bool_in(std::string_view text, const std::string& label) {
  if (text != "True" && text != "False")
    refuse(label, ": fortran_order is not a valid bool: ", text.substr(0, 40),
           "; save the array again");
  return text == "True";
}

// Moves `at` behind what is read.
std::string read_some(const Bytes& file, uint64_t bytes, uint64_t& at) {
  if (bytes > kMostBytes || bytes > file.size() - at)
    refuse(file.label(), ": the .npy header is cut short, or longer than ", kMostBytes, " bytes");
  std::string text(bytes, '\0');
  file.read(text.data(), bytes, at);
  at += bytes;
  return text;
}

std::string read_text(const Bytes& file, uint64_t& at) {
  const std::string start = read_some(file, std::min<uint64_t>(file.size(), 8), at);
  if (start.size() < 8 || start.compare(0, 6, "\x93NUMPY") != 0)
    refuse(file.label(), ": not a .npy file (its first bytes are not \\x93NUMPY)");
  if (start[6] < 1 || start[6] > 3 || start[7] != 0)
    refuse(file.label(), ": version ", int{start[6]}, ".", int{start[7]},
           " of .npy is not known; save it with numpy.save");
  const std::string size = read_some(file, start[6] == 1 ? 2 : 4, at);
  uint32_t length = 0;
  std::memcpy(&length, size.data(), size.size());
  return read_some(file, length, at);
}

}  // namespace

NpyArray npy_in(BytesPtr file) {
  NpyArray array{std::move(file), "", 0, {}};
  const std::string& label = array.bytes->label();
  const std::string text = read_text(*array.bytes, array.offset);
  const Dictionary values(text, label);
  array.dims = dims_in(values["shape"], label);
  array.in_columns = bool_in(values["fortran_order"], label);
  array.elements = unquoted(values["descr"]);
  array.element_bytes = bytes_of(array.elements);
  if (!array.element_bytes)
    refuse(label, ": elements of type ", values["descr"].substr(0, 40),
           " are not supported: save them as one of f2, f4, f8, i1..i8, u1..u8, b1 or bfloat16");
  return array;
}

NpyArray open_npy(const std::string& path) { return npy_in(Bytes::open(path)); }

}  // namespace data
