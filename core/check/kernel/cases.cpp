// SPDX-License-Identifier: Apache-2.0
#include "check/kernel/cases.h"

namespace kernel_suite {

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (auto family : {pointwise_cases, matmul_cases, reduce_cases, norm_cases, attention_cases,
                      cross_entropy_cases, index_cases})
    for (Case& c : family()) all.push_back(std::move(c));
  return all;
}

}  // namespace kernel_suite
