// SPDX-License-Identifier: Apache-2.0
//
// Byte-level BPE: with the options `vocab` and `merges` from those files, with `tiktoken` from that
// one, else learned from the text until there are `tokens`. `split` is a name of pretokens.h;
// without it vocabularies of OpenAI have theirs, those of vocab.json and learned ones GPT-2's.
// `special` is a list of {text =, id =}; without an id it has that of the vocabulary, or the next.
#include <algorithm>

#include "../refuse.h"
#include "bpe.h"

namespace data {
namespace {

std::vector<std::pair<std::string, int64_t>> special_in(const orr::DataOptions& options) {
  std::vector<std::pair<std::string, int64_t>> special;
  for (int i = 1;; ++i) {
    const std::string at = "special." + std::to_string(i) + ".";
    if (!options.has_text(at + "text")) return special;
    special.emplace_back(options.text(at + "text", ""), options.integer(at + "id", -1));
  }
}

Bpe learned(const std::string& text, const std::string& name, const orr::DataOptions& options) {
  BpeTraining training{options.integer("tokens", 512),
                       options.integer("min_frequency", 2),
                       split_by_name(options.text("split", "gpt2")),
                       {}};
  for (const auto& [special, id] : special_in(options)) {
    if (id >= 0) refuse("train_bpe: special is a list of texts: they get the first ids");
    training.special.push_back(special);
  }
  return train_bpe(text, name, training);
}

// tiktoken's file does not say where text is cut, but whose vocabulary it is can be told.
Split split_of(const Bpe& bpe, const std::string& path) {
  const auto tokens = std::ranges::count_if(bpe.tokens, [](auto& token) { return !token.empty(); });
  if (const auto split = split_of_tiktoken(tokens)) return *split;
  refuse(path, ": ", tokens,
         " tokens are none of r50k_base, p50k_base, cl100k_base and o200k_base, ",
         "and where text is cut is not in the file: write split = \"gpt2\", \"gpt4\" or \"o200k\"");
}

std::unique_ptr<orr::Tokenizer> make(const std::string& text, const std::string& name,
                                     const orr::DataOptions& options) {
  const bool has_vocab = options.has_text("vocab");
  const std::string path = options.text(has_vocab ? "vocab" : "tiktoken", "");
  if (!has_vocab && !options.has_text("tiktoken"))
    return make_tokenizer(learned(text, name, options), name);
  Bpe bpe = has_vocab ? read_bpe(path, options.text("merges", "")) : read_tiktoken(path);
  const std::string split = options.text("split", has_vocab ? "gpt2" : "");
  bpe.split = split.empty() ? split_of(bpe, path) : split_by_name(split);
  std::map<std::string, int64_t> special;
  for (const auto& [token, id] : special_in(options)) special[token] = id;
  add_special(bpe, special);
  return make_tokenizer(std::move(bpe), path);
}

}  // namespace
}  // namespace data

ORR_PLUGIN(ORR_KIND_DATA, "bpe", "0.1.0", "Byte-level BPE, from files or learned",
           orr::Tokenizers<data::make>::entry, 1, {{"data", 1, 1}})
