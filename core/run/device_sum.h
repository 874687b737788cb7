// SPDX-License-Identifier: Apache-2.0
//
// A sum over ranks that stays on the device: the core composes it of messages and of additions
// (folds). Kernels of the device compute each fold, as pointwise ops whose expressions are the
// order of the sum: one kernel, or one for each part of a large tree.
#pragma once

#include <orrery/kernel.h>

#include <memory>
#include <string>
#include <vector>

#include "comm/composition.h"
#include "run/sum_parts.h"

namespace orrery {

class DeviceSum {
 public:
  // Null if `c` is not a sum, or no kernel of these plugins computes its folds. `c` has its
  // buffers, which may later move, but only together. REQUIRES: the device is open. [main thread]
  static std::unique_ptr<DeviceSum> make(const orr_coll& c, int rank, int ranks,
                                         const std::vector<std::string>& kernels);
  ~DeviceSum();
  DeviceSum(const DeviceSum&) = delete;

  const Composition& composition() const { return composition_; }
  uint64_t scratch() const { return workspace_at_ + workspace_; }  // bytes
  // Enqueues the fold on the operation's stream. [one thread at a time]
  void fold(const SpotFold& fold, const orr_coll& c, const orr_buffer& scratch);

 private:
  // A kernel that adds `elements` elements of each operand of a part. The result overwrites input
  // `onto`, or none (kNone).
  struct Folder {
    const SumPart* part;
    int64_t elements;
    int onto;
    const orr_kernel_api* api = nullptr;
    orr_kernel* kernel = nullptr;
    std::vector<orr_buffer> in{};
  };
  explicit DeviceSum(Composition composition) : composition_(std::move(composition)) {}
  Folder* find(const SumPart& part, int64_t elements, int onto);
  bool prepare(const SumPart& part, int64_t elements, int onto, const orr_coll& c,
               const std::vector<std::string>& kernels);
  void add(const SumPart& part, const SpotFold& fold, const orr_coll& c, const orr_buffer& scratch);

  Composition composition_;
  std::vector<SumPart> parts_;
  std::vector<Folder> folders_;
  uint64_t workspace_at_ = 0, workspace_ = 0;  // in the scratch, behind the composition's part
};

}  // namespace orrery
