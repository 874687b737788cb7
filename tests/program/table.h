// SPDX-License-Identifier: Apache-2.0
//
// The op table: for every op kind and every scalar function a small example, from which shape,
// gradient, both kernel plugins and sharding are checked.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "machine.h"

namespace program_test {

using Ids = std::vector<ValueId>;
using Build = std::function<Ids(Program&, const Ids&)>;

// How an example's input is filled; dtype 0 is the real dtype of the check at hand.
struct In {
  enum Fill { uniform, off_grid, whole } fill = uniform;  // off_grid: n + 0.3; whole: integers
  Dims dims;
  double lo = -2, hi = 2;
  int32_t dtype = 0;
};

// A call that must be refused with a message that contains `error`.
struct Bad {
  std::vector<Type> in;
  Build build;
  std::string error;
};

struct Entry {
  std::string name;  // of the row; the op kind or function, then what is special
  std::string kind;  // op kind
  int32_t fn = -1;   // scalar function, for kind pointwise
  std::vector<In> in;
  Build build;              // one op of `kind`; all its outputs
  std::vector<Type> out;    // dtype 0: the real dtype
  std::vector<Bad> bad;     // empty: made by gradients or lowering only, never from a script
  bool gradient = true;     // false: cotangents stop here, on purpose
  std::string refuses;      // error of derivatives it has not: its own, or the second ones
  double eps = 1e-6;        // step of the finite differences
  bool sharding = true;     // false: no dim can be cut
  bool cpu = true;          // false: cpu leaves it to the ops that it stands for
  bool like = false;        // the batch comes from dim 0 of input 0, which the op does not read
  std::string refuses_sum;  // error of sums over the batch that the op cannot form
};

std::vector<Entry> kind_entries();      // every kind but pointwise
std::vector<Entry> function_entries();  // pointwise: every scalar function
std::vector<Entry> all_entries();

// Each check returns "" or what is wrong.
std::string check_shape(const Entry& e);
std::string check_gradient(const Entry& e);   // finite differences in f64 on `reference`
std::string check_second(const Entry& e);     // of the gradient, in the same way
std::string check_reference(const Entry& e);  // runs in f32 and f64, all finite
std::string check_cpu(const Entry& e);        // agrees with `reference` in f32
std::string check_sharding(const Entry& e);   // 2 and 3 ranks have the bits of one

}  // namespace program_test
