// SPDX-License-Identifier: Apache-2.0
//
// The products of linear layers, forward and backward, which eight bits are for.
#pragma once

#include <string>
#include <vector>

#include <orrery/sdk/program.hpp>

namespace precision {

// y = x w, dx = dy w^T (where dy stands in the place of x), or dw of x and dy. Inputs of the op
// that makes `out` are `left` and `right` in this order.
struct LinearProduct {
  int32_t out = -1, left = -1, right = -1;
  bool left_is_turned = false, right_is_turned = false;
  bool sums_samples = false;  // dw
  bool left_is_slope = false, right_is_slope = false;
  std::string site;  // the layer: its module's path and the script's line
};

// Returns them in the order of the program. A linear layer multiplies samples by a matrix that is a
// parameter, in bf16, with both sides a multiple of 16, as matrix units of eight bits want it. Left
// out are the modules that `except` names, those of the name `router`, and each layer from which no
// other product follows: it makes the results, such as logits. `unmatched` becomes the first
// pattern that names no module.
std::vector<LinearProduct> linear_products(const orr::Program& program,
                                           const std::vector<std::string>& except,
                                           std::string& unmatched);

}  // namespace precision
