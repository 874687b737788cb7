// SPDX-License-Identifier: Apache-2.0
//
// A tokenizer from a file of SentencePiece (tokenizer.model, spiece.model), by its own library:
// unigram, BPE, words and characters.
#pragma once

#include <memory>
#include <orrery/sdk/tokenizer.hpp>
#include <string>

namespace data {

struct SentencePieceOptions {
  bool bos = false, eos = false;  // whether a text gets the id of its beginning, of its end
};

// Throws an Error that names the file.
std::unique_ptr<orr::Tokenizer> read_sentencepiece(const std::string& path,
                                                   const SentencePieceOptions& options);

}  // namespace data
