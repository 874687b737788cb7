// SPDX-License-Identifier: Apache-2.0
//
// Chooses the kernel plugin that computes a launch.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "lower/abi_op.h"
#include "lower/rank_plan.h"

namespace orrery {

// What a plugin answers. Score 0 if it does not say that it takes what not all kernels know of the
// op (kernel.h, ORR_TAKES_...).
orr_support answer_of(const orr_kernel_api& api, const orr_op& op);

class KernelChoice {
 public:
  // `names`: the plugins to choose from.
  explicit KernelChoice(const std::vector<std::string>& names);

  // Chooses the plugin with the highest score, and sets Launch::kernels, numerics and capturable.
  // Throws Error with the reason of each plugin if none takes the launch.
  orr_support choose(Launch& launch) const;
  // The answer of the plugin with the highest score; score 0: none takes the launch.
  orr_support best(const Launch& launch) const { return find(launch).support; }
  bool takes(const Launch& launch) const { return best(launch).score > 0; }
  // The bytes of scratch memory that the chosen plugin needs.
  uint64_t workspace_of(const Launch& launch) const;

 private:
  struct Found {
    orr_support support;
    int kernels;
    bool ignored;  // the plugin takes the op only without its attribute "numerics" (orrery/ops.h)
  };
  Found find(const Launch& launch) const;
  Found ask_all(const Launch& launch, const AbiOp& op) const;
  [[noreturn]] void refuse(const Launch& launch) const;

  std::vector<std::string> names_;
  std::vector<const orr_kernel_api*> tables_;  // by name
  // Answers, by all that plugins were asked: layers are alike, and asking takes long.
  mutable std::unordered_map<std::string, Found> known_;
};

}  // namespace orrery
