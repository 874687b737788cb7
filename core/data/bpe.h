// SPDX-License-Identifier: Apache-2.0
//
// Byte-level BPE, GPT-2's way to make tokens of text: the text is cut (data/gpt2_split.h), every
// part of it is bytes at first, and pairs of tokens are merged in the order of their learning.
#pragma once

#include <memory>

#include "data/tokenizer.h"

namespace orrery {

// vocab.json (token -> id) and merges.txt (a line for each pair, the first learned first), as GPT-2
// and Hugging Face's tokenizers have them. Throws Error that names file, value and remedy.
std::shared_ptr<const Tokenizer> load_bpe(const std::string& vocab, const std::string& merges);

}  // namespace orrery
