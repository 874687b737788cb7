// SPDX-License-Identifier: Apache-2.0
//
// The variants that were used last, by the shapes that they are for. A script whose batches have
// ever new shapes makes ever new variants; those that it has not used for long are given up, so
// that memory does not grow without end. [main thread]
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "run/variant.h"

namespace orrery {

class Recent {
 public:
  // Null if there is none. Ranks that compile together give up the same ones, because they ask for
  // the same in the same order.
  Variant* find(const std::string& key) {
    const auto found = of_.find(key);
    if (found == of_.end()) return nullptr;
    found->second.used = ++clock_;
    return found->second.variant.get();
  }
  Variant& add(const std::string& key, std::unique_ptr<Variant> variant) {
    if (of_.size() == kMost)
      of_.erase(std::ranges::min_element(of_, {}, [](auto& one) { return one.second.used; }));
    return *(of_[key] = {std::move(variant), ++clock_}).variant;
  }
  bool empty() const { return of_.empty(); }
  void clear() { of_.clear(); }

 private:
  // A variant of a GPT of 12 layers takes 6 MB.
  static constexpr size_t kMost = 128;
  struct One {
    std::unique_ptr<Variant> variant;
    int64_t used = 0;
  };
  std::map<std::string, One> of_;
  int64_t clock_ = 0;
};

}  // namespace orrery
