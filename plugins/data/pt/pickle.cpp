// SPDX-License-Identifier: Apache-2.0
#include "pickle.h"

#include <unordered_map>

#include "../refuse.h"
#include "elements.h"

namespace data {
namespace {

// Does what the instructions of a pickle say.
class Machine {
 public:
  Machine(const std::string& bytes, const PickleRules& rules, std::deque<Value>& values)
      : bytes_(bytes), rules_(rules), values_(values) {}

  Value& value() {
    while (true) {
      const auto code = static_cast<unsigned char>(take(1)[0]);
      if (code == '.') return *pop();
      step(code);
    }
  }

 private:
  [[noreturn]] void damaged(const std::string& what) const {
    refuse(rules_.label, ": byte ", at_, rules_.part, ": ", what, rules_.remedy);
  }

  // -- bytes and the stack
  std::string_view take(uint64_t count) {
    if (count > bytes_.size() - at_) damaged("it ends too early");
    at_ += count;
    return std::string_view(bytes_).substr(at_ - count, count);
  }
  uint64_t number(size_t count) {
    uint64_t value = 0;
    const std::string_view bytes = take(count);
    for (size_t i = count; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
    return value;
  }
  std::string line() {
    const size_t end = bytes_.find('\n', at_);
    if (end == std::string::npos) damaged("a name without an end");
    const std::string text(take(end - at_));
    take(1);
    return text;
  }
  template <class Is>
  void push(Is is) {
    stack_.push_back(&values_.emplace_back(Value{std::move(is)}));
  }
  Value* pop() {
    if (stack_.empty()) damaged("it takes what is not there");
    Value* top = stack_.back();
    stack_.pop_back();
    return top;
  }
  // What is above the last mark, which goes too.
  std::vector<Value*> pop_mark() {
    size_t from = stack_.size();
    while (from > 0 && !std::holds_alternative<Mark>(stack_[from - 1]->is)) --from;
    if (from == 0) damaged("it takes what is not there");
    std::vector<Value*> items(stack_.begin() + static_cast<ptrdiff_t>(from), stack_.end());
    stack_.resize(from - 1);
    return items;
  }
  std::vector<Value*> pop_many(size_t count) {
    std::vector<Value*> items(count);
    for (size_t i = count; i-- > 0;) items[i] = pop();
    return items;
  }
  template <class Is>
  Is& as(Value* value, const char* what) const {
    Is* found = std::get_if<Is>(&value->is);
    if (!found) damaged(std::string("expected ") + what);
    return *found;
  }
  template <class Is>
  Is& top(const char* what) {
    if (stack_.empty()) damaged("it takes what is not there");
    return as<Is>(stack_.back(), what);
  }

  // -- opcodes of protocols 2 to 4
  void step(unsigned char code) {
    if (!step_text(code) && !step_number(code) && !step_container(code) && !step_memo(code) &&
        !step_call(code)) {
      static constexpr char kDigits[] = "0123456789abcdef";
      damaged(std::string("the instruction 0x") + kDigits[code >> 4] + kDigits[code & 15] +
              " is not supported");
    }
  }
  bool step_text(unsigned char code) {
    switch (code) {
      case 'X': push(std::string(take(number(4)))); return true;
      case 0x8c: push(std::string(take(number(1)))); return true;
      case 0x8d: push(std::string(take(number(8)))); return true;
    }
    return false;
  }
  bool step_number(unsigned char code) {
    switch (code) {
      case 'N': push(Nothing{}); return true;
      case 0x88: push(int64_t{1}); return true;
      case 0x89: push(int64_t{0}); return true;
      case 'K': push(static_cast<int64_t>(number(1))); return true;
      case 'M': push(static_cast<int64_t>(number(2))); return true;
      case 'J': push(int64_t{static_cast<int32_t>(number(4))}); return true;
      case 'G': take(8), push(Nothing{}); return true;
      case 0x8a: {
        const size_t count = number(1);
        if (count > 8) return take(count), push(Nothing{}), true;
        const uint64_t value = number(count);
        const bool is_negative = count > 0 && value >> (8 * count - 1) & 1;
        push(static_cast<int64_t>(is_negative && count < 8 ? value | ~uint64_t{0} << (8 * count)
                                                           : value));
        return true;
      }
    }
    return false;
  }
  bool step_container(unsigned char code) {
    switch (code) {
      case '(': push(Mark{}); return true;
      case '}': push(Dictionary{}); return true;
      case ']':
      case ')': push(List{}); return true;
      case 't': push(List{pop_mark()}); return true;
      case 0x85:
      case 0x86:
      case 0x87: push(List{pop_many(code - 0x84u)}); return true;
      case 'a':
      case 'e': {
        auto items = code == 'a' ? pop_many(1) : pop_mark();
        List& list = top<List>("a list");
        list.items.insert(list.items.end(), items.begin(), items.end());
        return true;
      }
      case 's':
      case 'u': {
        auto items = code == 's' ? pop_many(2) : pop_mark();
        if (items.size() % 2) damaged("a key without a value");
        Dictionary& dictionary = top<Dictionary>("a dictionary");
        for (size_t i = 0; i < items.size(); i += 2)
          dictionary.items.emplace_back(items[i], items[i + 1]);
        return true;
      }
    }
    return false;
  }
  bool step_memo(unsigned char code) {
    const auto keep = [&](uint64_t place) {
      if (stack_.empty()) damaged("it takes what is not there");
      memo_[place] = stack_.back();
    };
    const auto recall = [&](uint64_t place) {
      const auto found = memo_.find(place);
      if (found == memo_.end()) damaged("it recalls what is not there");
      stack_.push_back(found->second);
    };
    switch (code) {
      case 0x80: take(1); return true;  // the protocol
      case 0x95: take(8); return true;  // how long what follows is
      case 'q': keep(number(1)); return true;
      case 'r': keep(number(4)); return true;
      case 0x94: keep(memo_.size()); return true;
      case 'h': recall(number(1)); return true;
      case 'j': recall(number(4)); return true;
    }
    return false;
  }
  bool step_call(unsigned char code) {
    switch (code) {
      case 'c': {
        const std::string module = line();
        push_name(module + "." + line());
        return true;
      }
      case 0x93: {
        const auto both = pop_many(2);
        push_name(as<std::string>(both[0], "a text") + "." + as<std::string>(both[1], "a text"));
        return true;
      }
      case 'Q': push_storage(pop()); return true;
      case 'R': {
        const auto both = pop_many(2);
        call(as<Name>(both[0], "a function").text, as<List>(both[1], "arguments").items);
        return true;
      }
      case 0x81: {
        const auto both = pop_many(2);
        push_object(as<Name>(both[0], "a class").text);
        return true;
      }
      case 'b': {
        Value* attributes = pop();
        if (stack_.empty()) damaged("it takes what is not there");
        if (auto* object = std::get_if<Object>(&stack_.back()->is))
          object->attributes = attributes;
        else  // those of a dictionary, such as the versions of layers
          top<Dictionary>("a dictionary");
        return true;
      }
    }
    return false;
  }

  // -- the names that are known
  void push_name(const std::string& name) {
    if (!rules_.functions.contains(name) && !rules_.classes.contains(name) &&
        !rules_.constants.contains(name))
      refuse(rules_.label, ": it has '", name, "', which is not loaded: ", rules_.instead);
    push(Name{name});
  }
  void push_object(const std::string& name) {
    if (!rules_.classes.contains(name)) damaged("expected a class");
    push(Object{name, nullptr});
  }
  // ("storage", class, name, device, elements)
  void push_storage(Value* id) {
    const auto& items = as<List>(id, "a storage").items;
    if (items.size() != 5 || as<std::string>(items[0], "a text") != "storage")
      damaged("expected a storage");
    const std::string& type = as<Name>(items[1], "a storage").text;
    for (const TorchElements& each : kTorchElements)
      if (type == each.storage)
        return push(Storage{as<std::string>(items[2], "a text"), each.name, each.bytes});
    damaged("expected a storage");
  }
  void call(const std::string& name, const std::vector<Value*>& arguments) {
    if (!rules_.functions.contains(name)) damaged("expected a function");
    if (name == "collections.OrderedDict") {
      if (!arguments.empty()) damaged("an OrderedDict with arguments");
      push(Dictionary{});
    } else if (name == "torch._utils._rebuild_tensor_v2") {
      push_tensor(arguments);
    } else if (name != "torch._utils._rebuild_parameter" && name != "torch.Size") {
      push(Nothing{});
    } else if (!arguments.empty()) {
      stack_.push_back(arguments[0]);
    } else {
      damaged("'" + name + "' without arguments");
    }
  }
  // (storage, offset, dims, steps, ...)
  void push_tensor(const std::vector<Value*>& arguments) {
    if (arguments.size() < 4) damaged("a tensor without dims");
    const Storage& storage = as<Storage>(arguments[0], "a storage");
    PickledTensor tensor{storage.name,
                         storage.elements,
                         storage.element_bytes,
                         as<int64_t>(arguments[1], "a number"),
                         {},
                         {}};
    for (Value* each : as<List>(arguments[2], "dims").items)
      tensor.dims.push_back(as<int64_t>(each, "a number"));
    for (Value* each : as<List>(arguments[3], "steps").items)
      tensor.steps.push_back(as<int64_t>(each, "a number"));
    if (tensor.dims.size() != tensor.steps.size()) damaged("a tensor with other dims than steps");
    push(std::move(tensor));
  }

  const std::string& bytes_;
  const PickleRules& rules_;
  std::deque<Value>& values_;
  size_t at_ = 0;
  std::vector<Value*> stack_;
  std::unordered_map<uint64_t, Value*> memo_;
};

}  // namespace

Pickle::Pickle(const std::string& bytes, const PickleRules& rules) : rules_(rules) {
  root_ = &Machine(bytes, rules, values_).value();
}

void Pickle::damaged(const std::string& what) const {
  refuse(rules_.label, ": ", what, rules_.remedy);
}

}  // namespace data
