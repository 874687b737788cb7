// SPDX-License-Identifier: Apache-2.0
#include "data/joined.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace orrery {
namespace {

std::string description(const Dataset& data) {
  std::string text;
  for (const DataField& field : data.fields())
    text += (text.empty() ? "" : ", ") + field.name + " " + to_string(field.sample);
  return text;
}

bool any(const std::vector<DatasetPtr>& parts, bool (Dataset::*is)() const) {
  return std::any_of(parts.begin(), parts.end(), [&](auto& part) { return (*part.*is)(); });
}

// Whether an id is the same text to both.
bool same_tokens(const Tokenizer& a, const Tokenizer& b) {
  if (&a == &b) return true;
  bool same = a.vocab() == b.vocab();
  for (int64_t id = 0; same && id < a.vocab(); ++id) same = a.decode({id}) == b.decode({id});
  return same;
}

// Throws Error if a number of one dataset, a label or a token, is another thing to the other.
void check_meaning(const Dataset& a, const Dataset& b, const std::string& names) {
  if (!a.classes().empty() && !b.classes().empty() && a.classes() != b.classes())
    fail(ORR_INVALID, "{} have other classes: {}, and {}; number them alike before they are joined",
         names, join(a.classes(), ", "), join(b.classes(), ", "));
  if (a.tokenizer() && b.tokenizer() && !same_tokens(*a.tokenizer(), *b.tokenizer()))
    fail(ORR_INVALID, "{} have other tokens, of {} and {}; make both with one tokenizer", names,
         a.tokenizer()->vocab(), b.tokenizer()->vocab());
}

class Joined : public Dataset {
 public:
  // Part k fills lengths[k] places, from its first sample on and again.
  Joined(const std::vector<DatasetPtr>& parts, const std::vector<int64_t>& lengths)
      : parts_(parts) {
    describe_as(*parts[0]);
    samples_ = 0;
    for (int64_t length : lengths) ends_.push_back(samples_ += length);
  }

  void read(std::span<const Pick> picks, std::span<std::byte* const> to) const override {
    std::vector<std::byte*> at(to.begin(), to.end());
    for (Pick pick : picks) {
      const auto k = static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), pick.sample) -
                                         ends_.begin());
      pick.sample = (pick.sample - (k ? ends_[k - 1] : 0)) % parts_[k]->samples();
      parts_[k]->read({&pick, 1}, at);
      for (size_t f = 0; f < at.size(); ++f)
        if (at[f]) at[f] += fields_[f].sample.bytes();
    }
  }
  bool slow() const override { return any(parts_, &Dataset::slow); }
  bool main_thread() const override { return any(parts_, &Dataset::main_thread); }

 private:
  std::vector<DatasetPtr> parts_;
  std::vector<int64_t> ends_;
};

// Datasets of equally many samples as one that has the fields of all.
class Beside : public Dataset {
 public:
  explicit Beside(const std::vector<DatasetPtr>& parts) : parts_(parts) {
    samples_ = parts[0]->samples();
    for (const DatasetPtr& part : parts)
      fields_.insert(fields_.end(), part->fields().begin(), part->fields().end());
  }

  void read(std::span<const Pick> picks, std::span<std::byte* const> to) const override {
    for (const DatasetPtr& part : parts_) {
      const size_t fields = part->fields().size();
      part->read(picks, to.first(fields));
      to = to.subspan(fields);
    }
  }
  bool slow() const override { return any(parts_, &Dataset::slow); }
  bool main_thread() const override { return any(parts_, &Dataset::main_thread); }

 private:
  std::vector<DatasetPtr> parts_;
};

}  // namespace

DatasetPtr beside(const std::vector<DatasetPtr>& parts) {
  for (const DatasetPtr& part : parts)
    if (part->samples() != parts[0]->samples())
      fail(ORR_INVALID, "arrays: '{}' has {} samples and '{}' has {}", parts[0]->fields()[0].name,
           parts[0]->samples(), part->fields()[0].name, part->samples());
  return parts.size() == 1 ? parts[0] : std::make_shared<Beside>(parts);
}

DatasetPtr join(const std::vector<DatasetPtr>& parts, const std::vector<std::string>& names) {
  std::vector<int64_t> lengths;
  for (size_t k = 0; k < parts.size(); ++k) {
    const std::string first = description(*parts[0]), own = description(*parts[k]);
    if (own != first || parts[k]->window() != parts[0]->window())
      fail(ORR_INVALID, "{} has {}, {} has {}: datasets that are joined have the same fields",
           names[0], first, names[k], own);
    check_meaning(*parts[0], *parts[k], names[0] + " and " + names[k]);
    lengths.push_back(parts[k]->samples());
  }
  return parts.size() == 1 ? parts[0] : std::make_shared<Joined>(parts, lengths);
}

DatasetPtr mix(const std::vector<DatasetPtr>& parts, const std::vector<int64_t>& lengths) {
  std::vector<std::string> names;
  for (size_t k = 0; k < parts.size(); ++k) names.push_back(fmt::format("part {}", k + 1));
  join(parts, names);
  return std::make_shared<Joined>(parts, lengths);
}

}  // namespace orrery
