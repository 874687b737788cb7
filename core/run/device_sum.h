// SPDX-License-Identifier: Apache-2.0
//
// A sum over ranks that stays on the device: the core's composition of it, and the device's kernels
// that fold, each an ordinary pointwise op with the whole order of the sum as its expression.
#pragma once

#include <orrery/kernel.h>

#include <memory>
#include <string>
#include <vector>

#include "comm/composition.h"

namespace orrery {

class DeviceSum {
 public:
  // Null if `c` is not a sum, or no kernel of these plugins folds it as it lies. `c` has its
  // buffers, which may move later, but together. REQUIRES: the device is open. [main thread]
  static std::unique_ptr<DeviceSum> make(const orr_coll& c, int rank, int ranks,
                                         const std::vector<std::string>& kernels);
  ~DeviceSum();
  DeviceSum(const DeviceSum&) = delete;

  const Composition& composition() const { return composition_; }
  uint64_t scratch() const { return workspace_at_ + workspace_; }  // bytes
  // Enqueues the fold on the operation's stream. [one thread at a time]
  void fold(const SpotFold& fold, const orr_coll& c, const orr_buffer& scratch);

 private:
  // Folds `elements` of each operand; the result lies where operand `onto` lay, or elsewhere
  // (kNone).
  struct Folder {
    int64_t elements;
    int onto;
    const orr_kernel_api* api = nullptr;
    orr_kernel* kernel = nullptr;
    std::vector<orr_buffer> in{};
  };
  explicit DeviceSum(Composition composition) : composition_(std::move(composition)) {}
  Folder* find(int64_t elements, int onto);
  bool prepare(int64_t elements, int onto, const orr_coll& c,
               const std::vector<std::string>& kernels);

  Composition composition_;
  std::vector<Folder> folders_;
  uint64_t workspace_at_ = 0, workspace_ = 0;  // in the scratch, behind the composition's
};

}  // namespace orrery
