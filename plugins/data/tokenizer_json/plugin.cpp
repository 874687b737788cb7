// SPDX-License-Identifier: Apache-2.0
//
// The tokenizer of the file `path`. With `add_special_tokens` the ids of begin and end are added to
// those of a text, with `skip_special_tokens` special ones are left out when ids are decoded.
#include "../refuse.h"
#include "tokenizer.h"

namespace data {
namespace {

std::unique_ptr<orr::Tokenizer> make(const std::string&, const std::string&,
                                     const orr::DataOptions& options) {
  if (!options.has_text("path")) refuse("tokenizer_json: path is missing");
  return read_tokenizer_json(options.text("path", ""),
                             {options.integer("add_special_tokens", 1) != 0,
                              options.integer("skip_special_tokens", 1) != 0});
}

}  // namespace
}  // namespace data

ORR_PLUGIN(ORR_KIND_DATA, "tokenizer_json", "0.1.0", "Hugging Face's tokenizer.json",
           orr::Tokenizers<data::make>::entry, 1, {{"data", 1, 1}})
