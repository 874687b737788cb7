// SPDX-License-Identifier: Apache-2.0
//
// Products of linear layers in eight bits: factors of forward as F8_E4M3, slopes of backward as
// F8_E5M2 (Micikevicius et al., "FP8 Formats for Deep Learning", 2022).
#pragma once

#include <string>
#include <vector>

#include <orrery/sdk/program.hpp>

namespace precision {

enum class Scaling {
  tensor,  // by the largest number that a microbatch has of a tensor now
  row,     // by that of each row of a factor
  delayed  // by the largest that the whole batch had of a tensor in the last steps
};

struct EightBits {
  Scaling scaling = Scaling::tensor;
  std::vector<std::string> except;
};

// Makes the states of delayed scaling. Must run before all edits are done.
void keep_history(const orr::Program& program, const EightBits& how);

// Lets linear layers multiply in eight bits. Must run when all other edits are done. Throws
// orr::Error if a pattern names no module, or if there is no such layer.
void multiply_in_eight_bits(const orr::Program& program, const EightBits& how);

}  // namespace precision
