// SPDX-License-Identifier: Apache-2.0
//
// Writes Python's pickles, instruction by instruction. Values are left on the stack of whoever
// reads them, and containers take them from there.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace data {

class PickleWriter {
 public:
  PickleWriter() : bytes_("\x80\x02") {}

  void none() { bytes_ += 'N'; }
  void no() { bytes_ += '\x89'; }  // False
  void number(int64_t value);
  // A text, or a class or function by its name, "torch.distributed.X"; one that comes again is
  // recalled.
  void text(const std::string& text);
  void name(const std::string& module, const std::string& name);

  void begin() { bytes_ += '('; }  // what `tuple` and `set_items` take begins here
  void tuple() { bytes_ += 't'; }
  void empty_tuple() { bytes_ += ')'; }
  void empty_list() { bytes_ += ']'; }
  void empty_dictionary() { bytes_ += '}'; }
  void append() { bytes_ += 'a'; }     // one value to a list
  void set_items() { bytes_ += 'u'; }  // keys and values, to a dictionary

  void call() { bytes_ += 'R'; }        // a function, with a tuple of arguments
  void object() { bytes_ += ")\x81"; }  // of a class
  void build() { bytes_ += 'b'; }       // gives an object its attributes
  void storage() { bytes_ += 'Q'; }     // by a tuple that tells it

  // (n, n, ...), and the same as torch.Size.
  void numbers(const std::vector<int64_t>& values);
  void size(const std::vector<int64_t>& values);

  std::string bytes() const { return bytes_ + '.'; }

 private:
  void little_endian(uint64_t value, size_t count);
  bool recall(const std::string& what);

  std::string bytes_;
  std::map<std::string, uint32_t> memo_;
};

}  // namespace data
