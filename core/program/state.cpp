// SPDX-License-Identifier: Apache-2.0
#include "program/state.h"

#include <cctype>

namespace orrery {

HostTensor HostTensor::make(const Type& type) {
  return {type, std::make_shared<std::vector<std::byte>>(type.bytes())};
}

bool natural_less(const std::string& a, const std::string& b) {
  size_t i = 0, j = 0;
  auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  while (i < a.size() && j < b.size()) {
    if (digit(a[i]) && digit(b[j])) {
      size_t i0 = i, j0 = j;
      while (i < a.size() && digit(a[i])) ++i;
      while (j < b.size() && digit(b[j])) ++j;
      if (i - i0 != j - j0) return i - i0 < j - j0;
      int order = a.compare(i0, i - i0, b, j0, j - j0);
      if (order) return order < 0;
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i, ++j;
    }
  }
  return a.size() - i < b.size() - j;
}

}  // namespace orrery
