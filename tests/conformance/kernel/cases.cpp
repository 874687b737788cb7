// SPDX-License-Identifier: Apache-2.0
#include "conformance/kernel/cases.h"

namespace kernel_suite {

std::vector<Case> stored_otherwise(const Case& sums, int32_t summed) {
  std::vector<int32_t> others;
  if (summed == ORR_F32) others = {ORR_BF16, ORR_F16};
  if (summed == ORR_BF16 || summed == ORR_F16) others = {ORR_F32};
  std::vector<Case> cases;
  for (int32_t dtype : others) {
    Case c = sums;
    c.note += std::string("_in_") + dtype_name(dtype);
    for (orr_tensor& t : c.out) t.dtype = dtype;
    if (c.kind == "scatter_add" && c.in.size() == 3) c.in[2].dtype = dtype;  // the base
    cases.push_back(c);
  }
  return cases;
}

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (auto family : {pointwise_cases, matmul_cases, matmul_pointwise_cases, pointwise_next_cases,
                      reduce_cases, norm_cases, attention_cases, cross_entropy_cases, index_cases,
                      window_cases, gather_matmul_cases})
    for (Case& c : family()) all.push_back(std::move(c));
  return all;
}

}  // namespace kernel_suite
