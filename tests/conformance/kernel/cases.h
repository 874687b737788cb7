// SPDX-License-Identifier: Apache-2.0
//
// The table of cases: op x dtype x shapes, one file per family of ops.
#pragma once

#include "conformance/kernel/harness.h"

namespace kernel_suite {

inline const std::vector<int32_t> kReals = {ORR_F32, ORR_F64, ORR_BF16, ORR_F16};
inline const std::vector<int32_t> kEights = {ORR_F8_E4M3, ORR_F8_E5M2};
inline const std::vector<int32_t> kIntegers = {ORR_I32, ORR_I64};
inline const std::vector<int32_t> kAll = {ORR_F32, ORR_F64, ORR_BF16, ORR_F16,
                                          ORR_I32, ORR_I64, ORR_U8,   ORR_BOOL};

// Statistics beside a tensor of `dtype` are f32, or f64 for f64.
inline int32_t wide(int32_t dtype) { return dtype == ORR_F64 ? ORR_F64 : ORR_F32; }

inline std::string shape_note(std::initializer_list<int64_t> dims) {
  std::string note;
  for (int64_t d : dims) note += (note.empty() ? "" : "x") + std::to_string(d);
  return note;
}

// The sums of a case, whose terms are of dtype `summed`, stored in the other dtypes that they may
// be stored in (ops.h, ANOTHER DTYPE).
std::vector<Case> stored_otherwise(const Case& sums, int32_t summed);

// The two ops that a matmul_pointwise stands for.
Case matmul_of(const Case& both);
Case pointwise_of(const Case& both);
// The two ops that a pointwise_next stands for.
Case first_of(const Case& both);
Case next_of(const Case& both);

// What reduces and norms give.
std::vector<Values> reduce_oracle(const Case& c, const std::vector<Values>& x);
std::vector<Values> norm_oracle(const Case& c, const std::vector<Values>& x);

std::vector<Case> pointwise_cases();
std::vector<Case> matmul_cases();
std::vector<Case> matmul_pointwise_cases();
std::vector<Case> pointwise_next_cases();
std::vector<Case> reduce_cases();  // and argmax, topk
std::vector<Case> norm_cases();    // and softmax
std::vector<Case> attention_cases();
std::vector<Case> cross_entropy_cases();
std::vector<Case> index_cases();  // and iota, categorical
std::vector<Case> window_cases();
std::vector<Case> gather_matmul_cases();  // and scatter_matmul

std::vector<Case> all_cases();

}  // namespace kernel_suite
