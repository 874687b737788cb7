// SPDX-License-Identifier: Apache-2.0
//
// The index of Megatron's token files: NAME.idx says how the tokens of NAME.bin are stored, and
// where its sequences lie. All numbers are little-endian.
//   "MMIDIDX\0\0", version 1 (u64), code of the dtype (u8), sequences n (u64), documents m (u64),
//   tokens of each sequence (n times i32), where each begins in NAME.bin, in bytes (n times i64),
//   the first sequence of each document (m times i64)
#pragma once

#include <optional>
#include <string>

#include "bytes.h"

namespace data {

struct MegatronTokens {
  BytesPtr bytes;  // of NAME.bin
  std::string dtype;
};

// None if the file is no such index. Throws Error for one that does not fit to its NAME.bin.
std::optional<MegatronTokens> megatron_tokens(const BytesPtr& index);

}  // namespace data
