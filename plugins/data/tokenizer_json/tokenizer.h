// SPDX-License-Identifier: Apache-2.0
//
// A tokenizer as Hugging Face's tokenizers save it, tokenizer.json: added tokens, a normalizer, a
// pre-tokenizer, a model, a post-processor and a decoder, each one of a few kinds. Ids and texts
// are those of that package. A kind or a field that is not known is an Error that names it and the
// file.
#pragma once

#include <memory>
#include <string>

#include <orrery/sdk/tokenizer.hpp>

namespace data {

struct TokenizerOptions {
  bool add_special = true;   // the ids of begin and end that the post-processor adds
  bool skip_special = true;  // when ids are decoded
};

std::unique_ptr<orr::Tokenizer> read_tokenizer_json(const std::string& path,
                                                    const TokenizerOptions& options);

}  // namespace data
