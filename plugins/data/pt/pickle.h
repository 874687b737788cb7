// SPDX-License-Identifier: Apache-2.0
//
// Python's pickles, as far as they hold data. A class or a function that is named there is never
// looked up nor called: those that the rules name are known by what they mean, any other is an
// Error that names it.
#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace data {

struct PickledTensor {
  std::string storage;   // its name in the archive
  std::string elements;  // as NumPy names them
  int64_t element_bytes;
  int64_t offset;                    // elements before the first one
  std::vector<int64_t> dims, steps;  // in elements
};

struct Value;

struct Nothing {};  // None, and what is passed over
struct Mark {};
struct Name {
  std::string text;  // "module.name"
};
struct Storage {
  std::string name, elements;
  int64_t element_bytes;
};
struct List {
  std::vector<Value*> items;
};
struct Dictionary {
  std::vector<std::pair<Value*, Value*>> items;
};
// Of a class that the rules name.
struct Object {
  std::string kind;
  Value* attributes;  // null if it has none
};
struct Value {
  std::variant<Nothing, Mark, int64_t, std::string, Name, Storage, PickledTensor, List, Dictionary,
               Object>
      is;
};

struct PickleRules {
  std::string label;                // what errors begin with
  std::string part;                 // of what the label names: " of data.pkl"
  std::string remedy;               // and end with
  std::string instead;              // of a name that is not known: what is loaded, and what to do
  std::set<std::string> functions;  // that may be called: see Pickle
  std::set<std::string> classes;    // of objects
  std::set<std::string> constants;
};

// A pickle and its values, which live as long as it does. A call gives a dictionary of
// collections.OrderedDict, a tensor of torch._utils._rebuild_tensor_v2, of a parameter and a size
// their first argument, and nothing of other functions.
class Pickle {
 public:
  // Throws Error. Borrows `rules`.
  Pickle(const std::string& bytes, const PickleRules& rules);

  const Value& root() const { return *root_; }
  // Throws Error for what the values are not.
  [[noreturn]] void damaged(const std::string& what) const;
  template <class Is>
  const Is& as(const Value& value, const char* what) const {
    const Is* found = std::get_if<Is>(&value.is);
    if (!found) damaged(std::string("expected ") + what);
    return *found;
  }

 private:
  const PickleRules& rules_;
  std::deque<Value> values_;
  const Value* root_;
};

}  // namespace data
