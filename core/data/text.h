// SPDX-License-Identifier: Apache-2.0
//
// Text as tokens: bytes, or the distinct Unicode characters of the text itself.
#pragma once

#include "data/dataset.h"

namespace orrery {

// `kind` is "bytes", or "chars": the characters (Unicode code points) that occur in the text.
std::shared_ptr<const Tokenizer> text_tokenizer(const std::string& kind, const std::string& text,
                                                const std::string& name);
// Windows of `ctx` tokens as x and y; `name` is what messages call the text.
DatasetPtr text_dataset(const std::string& text, std::shared_ptr<const Tokenizer> tokenizer,
                        int64_t ctx, const std::string& name);

}  // namespace orrery
