// SPDX-License-Identifier: Apache-2.0
//
// The elements that PyTorch's tensors have, as its storages, its dtypes and NumPy name them.
#pragma once

#include <cstdint>

namespace data {

struct TorchElements {
  const char *storage, *dtype, *name;
  int64_t bytes;
};
constexpr TorchElements kTorchElements[] = {
    {"torch.FloatStorage", "torch.float32", "<f4", 4},
    {"torch.DoubleStorage", "torch.float64", "<f8", 8},
    {"torch.HalfStorage", "torch.float16", "<f2", 2},
    {"torch.BFloat16Storage", "torch.bfloat16", "bfloat16", 2},
    {"torch.LongStorage", "torch.int64", "<i8", 8},
    {"torch.IntStorage", "torch.int32", "<i4", 4},
    {"torch.ShortStorage", "torch.int16", "<i2", 2},
    {"torch.CharStorage", "torch.int8", "|i1", 1},
    {"torch.ByteStorage", "torch.uint8", "|u1", 1},
    {"torch.BoolStorage", "torch.bool", "|b1", 1}};

}  // namespace data
