// SPDX-License-Identifier: Apache-2.0
//
// Delayed scaling: a tensor's scale follows from its largest sizes in the last steps, which states
// keep. So all ranks know it when a step begins, and all sizes of a step are sent at its end
// (Micikevicius et al., "FP8 Formats for Deep Learning", 2022, has the format; the delay is that of
// NVIDIA's Transformer Engine).
#pragma once

#include <map>
#include <string>
#include <vector>

#include <orrery/sdk/program.hpp>

#include "products.h"
#include "scales.h"

namespace precision {

constexpr int64_t kSteps = 16;  // that the scale looks back to

// The samples that a layer reads, or their slopes.
struct Tensor {
  std::string layer;
  bool slope = false;
  auto operator<=>(const Tensor&) const = default;
};

class History {
 public:
  // The states are made when this is first called for a program's layers, and found after that.
  History(const orr::Program& p, const std::vector<LinearProduct>& products);

  // The scale that the last steps give.
  orr::Value scale(const Tensor& tensor, const Format& format) const;
  // Notes v as what the tensor is in this step. Of a repeated call all are noted.
  void observe(const Tensor& tensor, int32_t v);
  // Lets the states hold this step's sizes as well.
  void update() const;

 private:
  const orr::Program& p_;
  std::map<Tensor, int32_t> states_;
  std::map<Tensor, std::vector<int32_t>> counts_;  // by threshold, of samples
};

}  // namespace precision
