// SPDX-License-Identifier: Apache-2.0
#include "tokenizer.h"

#include <nlohmann/json.hpp>

#include <fstream>

#include "../refuse.h"
#include "../small_text.h"
#include "../utf8_text.h"
#include "added_tokens.h"
#include "decoders.h"
#include "models.h"
#include "post_processors.h"
#include "pre_tokenizers.h"

namespace data {
namespace {

template <class Made, class Make>
std::unique_ptr<Made> made_if_there(Part& file, const char* field, Make&& make) {
  return file.has(field) ? make(file.part(field), 0) : nullptr;
}

// The ids of one text, of which parts that come again are looked up.
class Ids {
 public:
  explicit Ids(const Model& model) : model_(model) {}

  void add(int32_t id) { all_.push_back(id); }
  void add(std::string_view part) {
    if (part.size() > kMostBytes) return model_.encode(part, all_);
    auto [entry, is_new] = known_.try_emplace(std::string(part));
    if (is_new) model_.encode(part, entry->second);
    all_.insert(all_.end(), entry->second.begin(), entry->second.end());
  }
  std::vector<int32_t> taken() { return std::move(all_); }

 private:
  static constexpr size_t kMostBytes = 64;  // of a part that may come again

  const Model& model_;
  std::unordered_map<std::string, std::vector<int32_t>> known_;
  std::vector<int32_t> all_;
};

class TokenizerJson : public orr::Tokenizer {
 public:
  TokenizerJson(std::string bytes, Part file, const TokenizerOptions& options)
      : bytes_(std::move(bytes)),
        options_(options),
        normalizer_(made_if_there<Normalizer>(file, "normalizer", make_normalizer)),
        pre_tokenizer_(made_if_there<PreTokenizer>(file, "pre_tokenizer", make_pre_tokenizer)),
        model_(make_model(file.part("model"))),
        decoder_(made_if_there<Decoder>(file, "decoder", make_decoder)),
        added_(file, model_->vocabulary(), normalizer_.get()),
        vocab_(std::max(model_->vocabulary().size(), added_.largest() + 1)) {
    if (vocab_ == 0) file.refuse("it has no tokens");
    if (file.has("post_processor"))
      templates_ = make_templates(file.part("post_processor"), vocab_);
    for (const Template& around : templates_)
      for (const std::optional<int32_t>& id : around)
        if (id && !token_of(*id))
          file.refuse("post_processor: no token has the id " + std::to_string(*id));
    if (file.text("version", "1.0") != "1.0")
      file.refuse("the version '" + file.text("version") + "' is not supported");
    file.ignore("truncation"), file.ignore("padding");  // of batches, not of texts
    file.finish();
  }

  int64_t vocab() const override { return vocab_; }

  std::vector<int32_t> encode(const std::string& text, const std::string& name) const override {
    check_utf8(text, name);
    Ids ids(*model_);
    added_.each_part(
        text, [&](int32_t id) { ids.add(id); },
        [&](const Normal& normal) {
          const Piece whole{normal.text, normal.is_first};
          if (!pre_tokenizer_) return ids.add(whole.text);
          pre_tokenizer_->cut(whole, [&](const Piece& piece) { ids.add(piece.text); });
        });
    std::vector<int32_t> all = ids.taken();
    if (options_.add_special)
      for (const Template& around : templates_) all = with_template(around, all);
    return all;
  }

  std::string decode(const std::vector<int64_t>& ids) const override {
    std::vector<std::string> tokens;
    for (int64_t id : ids) {
      if (id < 0 || id >= vocab_) refuse("decode: token ", id, " is outside 0..", vocab_ - 1);
      const std::string* token = token_of(id);
      if (!token) refuse("decode: no token has the id ", id);
      if (!options_.skip_special || !added_.is_special(*token)) tokens.push_back(*token);
    }
    if (decoder_) decoder_->apply(tokens);
    std::string text;
    for (const std::string& token : tokens) {
      if (!decoder_ && &token != &tokens.front()) text += ' ';
      text += token;
    }
    return text;
  }

  void save(const std::string& directory) const override {
    const std::string path = directory + "/tokenizer.json";
    std::ofstream file(path, std::ios::binary);
    file << bytes_;
    file.close();
    if (!file) fail(ORR_FAILED, path, ": cannot be written");
  }

 private:
  // Null for an id that is no token's.
  const std::string* token_of(int64_t id) const {
    const std::string* added = added_.text(id);
    return added ? added : model_->vocabulary().token(id);
  }

  std::string bytes_;  // of the file
  TokenizerOptions options_;
  std::unique_ptr<Normalizer> normalizer_;       // null: none
  std::unique_ptr<PreTokenizer> pre_tokenizer_;  // null: none
  std::unique_ptr<Model> model_;
  std::unique_ptr<Decoder> decoder_;  // null: none
  AddedTokens added_;
  int64_t vocab_;
  std::vector<Template> templates_;
};

}  // namespace

std::unique_ptr<orr::Tokenizer> read_tokenizer_json(const std::string& path,
                                                    const TokenizerOptions& options) {
  std::string bytes = small_text(path);
  const auto json = nlohmann::json::parse(bytes, nullptr, false);
  if (json.is_discarded()) refuse(path, ": not JSON in UTF-8; it may be cut short");
  return std::make_unique<TokenizerJson>(std::move(bytes), Part(json, path), options);
}

}  // namespace data
