// SPDX-License-Identifier: Apache-2.0
//
// Measures what the speed of a step depends on: each takes some milliseconds, and the best of a few
// turns counts.
#pragma once

#include "kernel.h"

namespace orr_cpu {

// While it lives, ops that this thread makes and launches use this thread alone.
class Alone {
 public:
  Alone();
  ~Alone();
  Alone(const Alone&) = delete;
};

// Products of one shape, such as a small model's.
struct Product {
  Isa isa;
  int32_t dtype;
  bool fast = false;  // numerics = "fast"
  bool cold = false;  // operands and result are in memory alone
};

// Multiply-adds per second, times two.
double rate_of(const Product& product);
// Bytes per second that are read of 64 MiB by all threads.
double read_bandwidth();

}  // namespace orr_cpu
