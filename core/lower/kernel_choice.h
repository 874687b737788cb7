// SPDX-License-Identifier: Apache-2.0
//
// Which kernel plugin computes a launch.
#pragma once

#include <string>
#include <vector>

#include "lower/rank_plan.h"

namespace orrery {

class KernelChoice {
 public:
  // To choose from these plugins.
  explicit KernelChoice(const std::vector<std::string>& names);

  // Sets the launch's plugin, the one with the highest score, and what it says of itself. Throws
  // Error that lists every plugin's reason if none takes it.
  orr_support choose(Launch& launch) const;
  // What the best of them says of it; score 0: none takes it.
  orr_support best(const Launch& launch) const { return find(launch).support; }
  bool takes(const Launch& launch) const { return best(launch).score > 0; }
  // The scratch that the chosen one needs, in bytes.
  uint64_t workspace_of(const Launch& launch) const;

 private:
  struct Found {
    orr_support support;
    int kernels;
    bool ignored;  // the permission: it does not take the op with it
  };
  Found find(const Launch& launch) const;
  [[noreturn]] void refuse(const Launch& launch) const;

  std::vector<std::string> names_;
  std::vector<const orr_kernel_api*> tables_;  // by name
};

}  // namespace orrery
