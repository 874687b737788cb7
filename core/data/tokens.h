// SPDX-License-Identifier: Apache-2.0
//
// Files of token ids and nothing else, such as nanoGPT's train.bin. They are read a window at a
// time, so that they may be larger than the memory.
#pragma once

#include "data/dataset.h"
#include "store/stored.h"

namespace orrery {

// Windows of `length` tokens as x and y, of each file in turn; none reaches into the next file.
DatasetPtr token_files(const std::vector<std::string>& paths, Stored kind, int64_t length);

}  // namespace orrery
