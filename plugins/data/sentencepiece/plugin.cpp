// SPDX-License-Identifier: Apache-2.0
//
// The tokenizer of the file `path`. With `bos` and `eos` a text gets the ids of its beginning and
// its end.
#include "../refuse.h"
#include "tokenizer.h"

namespace data {
namespace {

std::unique_ptr<orr::Tokenizer> make(const std::string&, const std::string&,
                                     const orr::DataOptions& options) {
  if (!options.has_text("path")) refuse("sentencepiece: path is missing");
  return read_sentencepiece(options.text("path", ""),
                            {options.integer("bos", 0) != 0, options.integer("eos", 0) != 0});
}

}  // namespace
}  // namespace data

ORR_PLUGIN(ORR_KIND_DATA, "sentencepiece", "0.1.0", "SentencePiece's tokenizer.model",
           orr::Tokenizers<data::make>::entry, 1, {{"data", 1, 1}})
