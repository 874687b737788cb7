// SPDX-License-Identifier: Apache-2.0
//
// Text as the ids of tokens, and back. [any thread]
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace orrery {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual int64_t vocab() const = 0;  // ids are 0..vocab()-1
  // `name` is what messages call the text. Throws Error for text that it cannot express.
  virtual std::vector<int32_t> encode(const std::string& text, const std::string& name) const = 0;
  // Throws Error for an id outside of the vocabulary.
  virtual std::string decode(const std::vector<int64_t>& ids) const = 0;
  // Writes files into a directory that there is. Throws Error where it has none to write.
  virtual void save(const std::string& directory) const = 0;
};

}  // namespace orrery
