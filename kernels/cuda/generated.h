// SPDX-License-Identifier: Apache-2.0
//
// The functions of a generated source (pointwise_source.h), which all prepared ops of that source
// share, and how their launches are merged while a step is recorded.
#pragma once

#include <functional>
#include <string>

#include "function.h"
#include "merge.h"

namespace orr_cuda {

// Launches of ops that are no rows of neighbours are merged up to so many elements, such as the
// taps of a turned weight: what a larger one takes hides its launch, and a table is one more kernel
// to compile.
constexpr int64_t kSmall = 1 << 20;

struct Generated {
  Function single = nullptr, vector = nullptr;  // one element, or several, in a thread
  std::string table;  // the source of `many`, once there were several such ops at a time
  Function many = nullptr;
  int ops = 0;  // that are prepared

  // Those of `source`, whose functions are `name`_single and, with vectors, `name`_vector. Kept as
  // their module is. [main thread]
  static Generated& of(const std::string& source, const std::string& name, bool vectors);
  // One more op is prepared. If it is not the only one, `table_source` begins to be compiled.
  void add_op(const std::function<std::string()>& table_source);
  // Enqueues a launch, or merges it with an earlier one if the stream is recorded. `vector`: the
  // function that it takes by itself.
  void enqueue(CUstream stream, SmallLaunch& launch, bool vector, void** arguments);

 private:
  // What launches that are recorded may become one with; null: they do not. It was compiled
  // meanwhile.
  Function merged();
  std::string name_;
};

}  // namespace orr_cuda
