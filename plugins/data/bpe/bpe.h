// SPDX-License-Identifier: Apache-2.0
//
// Byte-level BPE, the way of GPT-2 and its successors to make tokens of text: the text is cut
// (pretokens.h), every part of it is bytes at first, and pairs of tokens are merged in the
// order in which they were learned (Sennrich et al., ACL 2016).
#pragma once

#include <map>
#include <memory>
#include <set>

#include <orrery/sdk/tokenizer.hpp>
#include "pretokens.h"

namespace data {

struct Bpe {
  struct Merge {
    int32_t left, right, made;
    auto operator<=>(const Merge&) const = default;
  };
  std::vector<std::string> tokens;  // the bytes of each; "": no token has this id
  std::vector<Merge>
      merges;  // in the order of learning; of a pair that comes twice the last counts
  std::map<std::string, int32_t> special;  // texts that are one token whatever stands around them
  std::set<int32_t>
      literal;  // what vocab.json has as it is, not as characters that stand for bytes
  Split split = Split::gpt2;
  bool whole_first = false;  // a part of the text that is a token is not merged from its bytes
};

// Ids of tokens are below this: one that is larger would take memory out of proportion.
constexpr uint64_t kMostIds = 1 << 24;

// The token as vocab.json has it.
std::string written(const Bpe& bpe, int32_t id);

// Throws Error for a text that no special token can have: in vocab.json, where characters stand for
// bytes, one of such characters is that of other bytes.
void check_special(const std::string& text, bool in_vocab_json);

// Gives `names` the ids that they ask for; -1: that of the vocabulary, or the next free one.
// Throws Error for an id that another token has, and for one of kMostIds or more.
void add_special(Bpe& bpe, const std::map<std::string, int64_t>& names);

// REQUIRES: ids in merges and in special are those of tokens. Throws Error, which begins with
// `name`, if a byte has no token.
std::unique_ptr<orr::Tokenizer> make_tokenizer(Bpe bpe, const std::string& name);

// -- files: all throw Error that names file, line or value, and remedy ---------------------------

// vocab.json (token -> id) and merges.txt (a line for each pair, the first learned first), as GPT-2
// and Hugging Face's tokenizers have them.
Bpe read_bpe(const std::string& vocab, const std::string& merges);
void write_bpe(const Bpe& bpe, const std::string& vocab, const std::string& merges);

// tiktoken's file: a line "base64 id" for each token, ids in the order of learning.
Bpe read_tiktoken(const std::string& path);
void write_tiktoken(const Bpe& bpe, const std::string& path);

// -- training ------------------------------------------------------------------------------------

struct BpeTraining {
  int64_t vocab;              // tokens at the end, the special ones included
  int64_t min_frequency = 2;  // how often a pair must occur to be merged
  Split split = Split::gpt2;
  std::vector<std::string> special;  // get the first ids
};
// The pair that occurs most often is merged, of several the one with the smaller ids, until there
// are enough tokens: what Hugging Face's BpeTrainer does. `name` is what messages call the text.
Bpe train_bpe(const std::string& text, const std::string& name, const BpeTraining& training);

}  // namespace data
