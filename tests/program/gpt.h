// SPDX-License-Identifier: Apache-2.0
//
// A small GPT's training step as a logical program: tied embedding, dropout, clipping, Adam. The
// modules are named as the Lua library names them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "machine.h"
#include "program/state.h"

namespace program_test {

struct GptShape {
  int64_t batch = 4, ctx = 6, dim = 8, heads = 4, layers = 2, vocab = 10;
  double dropout = 0.1, clip = 0.5;
  bool tied = true;
  bool biased = false;               // each layer learns what is added to its scores
  int64_t kv_heads = 0, window = 0;  // of attention; 0: as many as heads, none
  bool causal = true;
};

struct Gpt {
  orrery::Program program;
  std::vector<std::shared_ptr<orrery::State>> params, moments;

  std::vector<std::shared_ptr<orrery::State>> states() const;
};

Gpt make_gpt(const GptShape& shape = {});

// The batch fields of step `step`, and the weights.
Named gpt_batch(const GptShape& shape, int step);

}  // namespace program_test
