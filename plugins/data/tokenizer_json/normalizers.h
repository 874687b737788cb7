// SPDX-License-Identifier: Apache-2.0
//
// What changes a text before it is cut: one class for each "type" of a normalizer.
#pragma once

#include <memory>
#include <string>

#include "part.h"

namespace data {

struct Normal {
  std::string text;
  // Whether the first character is made of the first one of what was encoded, and not of one
  // behind.
  bool is_first;
};

// [any thread]
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // REQUIRES: the text is UTF-8, and not empty.
  virtual void apply(Normal& normal) const = 0;
};

std::unique_ptr<Normalizer> make_normalizer(Part part, int depth = 0);
std::unique_ptr<Normalizer> make_bert_normalizer(Part& part);
std::unique_ptr<Normalizer> make_precompiled(Part& part);

}  // namespace data
