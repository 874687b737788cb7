// SPDX-License-Identifier: Apache-2.0
//
// Ops of a kernel plugin for benchmarks: buffers, a prepared kernel, and the best time of several,
// alternating between what is compared.
#pragma once

#include <orrery/kernel.h>
#include <orrery/ops.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace bench {

orr_tensor tensor(int32_t dtype, std::vector<int64_t> dims);

// One launchable op with buffers of its own; inputs are small numbers.
class Bench {
 public:
  Bench(const std::string& plugin, std::string kind, std::vector<orr_tensor> in,
        std::vector<orr_tensor> out, std::vector<orr_attr> attrs = {},
        const orr_expr* expr = nullptr);
  ~Bench();
  Bench(const Bench&) = delete;
  // Output `out` shares the memory of input `in` from now on.
  void share(int out, int in) { outputs_[size_t(out)] = inputs_[size_t(in)]; }
  template <class T>
  T* in(int i) {
    return static_cast<T*>(inputs_[size_t(i)].memory->host);
  }
  template <class T>
  T* out(int i) {
    return static_cast<T*>(outputs_[size_t(i)].memory->host);
  }
  void launch();

 private:
  orr_buffer buffer(uint64_t bytes);
  const orr_kernel_api& api_;
  orr_kernel* kernel_ = nullptr;
  std::vector<orr_memory*> memory_;
  std::vector<orr_buffer> inputs_, outputs_;
  orr_buffer workspace_{};
};

// Best seconds of each candidate over `rounds` rounds A B A B.
std::vector<double> best_of(int rounds, const std::vector<std::function<void()>>& candidates);

}  // namespace bench
