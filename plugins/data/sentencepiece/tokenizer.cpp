// SPDX-License-Identifier: Apache-2.0
#include "tokenizer.h"

#include <sentencepiece_processor.h>

#include <fstream>
#include <iterator>

#include "../refuse.h"
#include "../utf8_text.h"

namespace data {
namespace {

using sentencepiece::util::Status;

class SentencePiece : public orr::Tokenizer {
 public:
  SentencePiece(const std::string& path, const SentencePieceOptions& options) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(file), {});
    if (!file && bytes.empty()) refuse(path, ": cannot be read");
    check(processor_.LoadFromSerializedProto(bytes), path + ": not a model of SentencePiece");
    if (vocab() == 0) refuse(path, ": it has no tokens");
    if (options.bos && processor_.bos_id() < 0) refuse(path, ": bos: the model has no such id");
    if (options.eos && processor_.eos_id() < 0) refuse(path, ": eos: the model has no such id");
    if (options.bos) bos_ = processor_.bos_id();
    if (options.eos) eos_ = processor_.eos_id();
  }

  int64_t vocab() const override { return processor_.GetPieceSize(); }

  std::vector<int32_t> encode(const std::string& text, const std::string& name) const override {
    check_utf8(text, name);
    std::vector<int> ids;
    check(processor_.Encode(text, &ids), name);
    if (bos_ >= 0) ids.insert(ids.begin(), bos_);
    if (eos_ >= 0) ids.push_back(eos_);
    return {ids.begin(), ids.end()};
  }

  std::string decode(const std::vector<int64_t>& ids) const override {
    std::vector<int> known;
    for (int64_t id : ids) {
      if (id < 0 || id >= vocab()) refuse("decode: token ", id, " is outside 0..", vocab() - 1);
      known.push_back(static_cast<int>(id));
    }
    std::string text;
    check(processor_.Decode(known, &text), "decode");
    return text;
  }

  void save(const std::string& directory) const override {
    const std::string path = directory + "/tokenizer.model";
    std::ofstream file(path, std::ios::binary);
    file << processor_.serialized_model_proto();
    file.close();
    if (!file) fail(ORR_FAILED, path, ": cannot be written");
  }

 private:
  static void check(const Status& status, const std::string& what) {
    if (!status.ok()) refuse(what, ": ", status.message());
  }

  sentencepiece::SentencePieceProcessor processor_;
  int bos_ = -1, eos_ = -1;  // -1: not added
};

}  // namespace

std::unique_ptr<orr::Tokenizer> read_sentencepiece(const std::string& path,
                                                   const SentencePieceOptions& options) {
  return std::make_unique<SentencePiece>(path, options);
}

}  // namespace data
