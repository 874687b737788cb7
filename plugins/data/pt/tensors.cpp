// SPDX-License-Identifier: Apache-2.0
#include "tensors.h"

#include <algorithm>
#include <cctype>

#include "elements.h"

namespace data {
namespace {

PickleRules rules_of(const std::string& label) {
  PickleRules rules{label,
                    " of data.pkl",
                    "; it is altered, or no file of torch.save",
                    "tensors, dictionaries, lists, numbers and texts are; save model.state_dict()",
                    {"collections.OrderedDict", "torch._utils._rebuild_tensor_v2",
                     "torch._utils._rebuild_parameter", "torch.Size"},
                    {},
                    {}};
  for (const TorchElements& each : kTorchElements) rules.constants.insert(each.storage);
  return rules;
}

class Walk {
 public:
  explicit Walk(const Pickle& pickle) : pickle_(pickle) {}

  void add(const std::string& path, const Value& value, int depth) {
    constexpr int kMostDepth = 64;
    if (depth > kMostDepth || ++steps_ > 10'000'000) pickle_.damaged("values are in each other");
    if (const auto* tensor = std::get_if<PickledTensor>(&value.is)) {
      if (!tensors.try_emplace(path, *tensor).second)
        pickle_.damaged("two tensors are called '" + path + "'");
    } else if (const auto* list = std::get_if<List>(&value.is)) {
      for (size_t i = 0; i < list->items.size(); ++i)
        add(below(path, std::to_string(i)), *list->items[i], depth + 1);
    } else if (const auto* dictionary = std::get_if<Dictionary>(&value.is)) {
      std::map<std::string, const Value*> last;  // of a key that comes twice the last counts
      for (const auto& [key, each] : dictionary->items) last[text_of(*key)] = each;
      for (const auto& [key, each] : last) add(below(path, key), *each, depth + 1);
    }
  }
  std::map<std::string, PickledTensor> tensors;

 private:
  std::string below(const std::string& path, const std::string& key) const {
    if (!is_printable(key)) pickle_.damaged("a key holds control characters");
    return path.empty() ? key : path + "." + key;
  }
  std::string text_of(const Value& key) const {
    if (const auto* text = std::get_if<std::string>(&key.is)) return *text;
    if (const auto* number = std::get_if<int64_t>(&key.is)) return std::to_string(*number);
    pickle_.damaged("a key is neither a text nor a whole number");
  }

  const Pickle& pickle_;
  int64_t steps_ = 0;
};

}  // namespace

std::map<std::string, PickledTensor> pickled_tensors(const std::string& pickle,
                                                     const std::string& label) {
  const PickleRules rules = rules_of(label);
  const Pickle read(pickle, rules);
  Walk walk(read);
  const bool is_alone = std::holds_alternative<PickledTensor>(read.root().is);
  walk.add(is_alone ? "tensor" : "", read.root(), 0);
  return std::move(walk.tensors);
}

std::variant<int64_t, std::string> pickled_value(const std::string& pickle,
                                                 const std::string& label) {
  const PickleRules rules = rules_of(label);
  const Pickle read(pickle, rules);
  if (const auto* number = std::get_if<int64_t>(&read.root().is)) return *number;
  return read.as<std::string>(read.root(), "a whole number or a text");
}

bool is_printable(const std::string& name) {
  return std::ranges::none_of(name, [](unsigned char c) { return std::iscntrl(c); });
}

}  // namespace data
