// SPDX-License-Identifier: Apache-2.0
//
// Tokenizers that plugins make (orrery/data.h).
#pragma once

#include <memory>

#include "data/tokenizer.h"
#include "program/types.h"

namespace orrery {

// What the data plugin of this name makes, of files or, where `text` is not empty, out of it;
// `name` is what messages call the text. Throws Error for an option that it does not ask for. [main
// thread]
std::shared_ptr<const Tokenizer> plugin_tokenizer(const std::string& plugin, const Attrs& options,
                                                  const std::string& text, const std::string& name);

}  // namespace orrery
