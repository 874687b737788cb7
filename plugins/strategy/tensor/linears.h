// SPDX-License-Identifier: Apache-2.0
//
// Finds the linear layers of a program, and pairs of them with nothing between but ops that can
// work on a part of the width. In such a pair the first layer can be cut by its outputs and the
// second by its inputs.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <orrery/sdk/strategy.hpp>

namespace tensor {

struct Known {  // the facts about one value
  int32_t role = 0, phase = 0;
  std::string kind, name, path;
  std::vector<int64_t> dims;
};

struct Linear {
  int32_t weight = 0;           // one matrix, or one for each expert of a mixture
  int outputs = 0, inputs = 0;  // dims of the weight
  std::string path;
  std::set<int32_t> biases;
};

// What a value was computed from. fixed: only constants and parameters. open: linear layers,
// through ops that can work on a part of the width. closed: anything else.
struct Source {
  enum { fixed, open, closed } kind = fixed;
  std::set<size_t> linears;
};

class Finder {
 public:
  // Both must outlive this object.
  Finder(orr_program* program, const orr_edit* edit);

  const std::vector<Linear>& linears() const { return linears_; }
  const Known& known(int32_t v) const { return known_[at(v)]; }
  // Numbers in linears(): layers that can be cut by outputs, those that can be cut by inputs, and
  // those whose outputs are the classes of the loss.
  const std::set<size_t>& columns() const { return columns_; }
  const std::set<size_t>& rows() const { return rows_; }
  const std::set<size_t>& heads() const { return heads_; }
  // Returns the parameters with `rows` rows that are read by index (embeddings).
  std::set<int32_t> tables(int64_t rows) const;

 private:
  static size_t at(int32_t v) { return static_cast<size_t>(v); }

  void know(int32_t v, const orr_value_info& info);
  std::vector<int32_t> inputs(int32_t v) const;
  std::vector<int32_t> rule(int32_t v, int32_t input) const;
  int32_t bare(int32_t v) const;
  const Source& source(int32_t v);
  Source trace(int32_t v);
  void note_biases(const std::vector<int32_t>& in, const Source& sum);
  Source product(int32_t v, const std::vector<int32_t>& in);

  orr_program* program_;
  const orr_edit* edit_;
  std::vector<Known> known_;
  std::vector<std::optional<Source>> source_;
  std::vector<Linear> linears_;
  std::set<int32_t> gathered_;
  std::set<size_t> columns_, rows_, heads_;
};

}  // namespace tensor
