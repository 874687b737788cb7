// SPDX-License-Identifier: Apache-2.0
//
// While the world forms, ranks call the roll in their common store: who is here? All of them hear
// the same answer, and the rank that did not come is named in it.
#pragma once

#include <cstdint>
#include <string>

#include "job/store.h"

namespace orrery {

class Rolls {
 public:
  static constexpr int rounds = 3;  // while all ranks answer: libraries take their time
  Rolls(Store& store, const World& world) : store_(store), world_(world) {}

  // False: these ranks have no common store.
  bool open();
  // Each throws Error in all ranks if one of them is not there. Collective.
  void call_first();
  void call(int round);  // 1 to rounds, at times that lie 700 ms apart at most
  // This rank has formed. Others may be forming yet, and call rolls that it will hear no more.
  void answer_later();

 private:
  void call(const std::string& roll, int64_t patience_ns);
  std::string await(const std::string& key, int64_t& left_ns);
  std::string last_words(const std::string& roll);
  void tell(const std::string& roll, const std::string& outcome);

  Store& store_;
  const World& world_;
  int given_up_ = 0;  // questions to the store, whose answers may still come
};

}  // namespace orrery
