// SPDX-License-Identifier: Apache-2.0
//
// Models of SentencePiece against the ids and texts of its package (make_sentencepiece.py), and
// damaged files.
#include <nlohmann/json.hpp>

#include "../../plugins/data/sentencepiece/tokenizer.h"
#include "mutations.h"

namespace orrery {
namespace {

using nlohmann::json;

std::string file_of(const std::string& kind) {
  return recorded("sentencepiece/" + kind + ".model");
}

TEST(SentencePiece, IdsAndTextsAreThoseOfItsPackage) {
  const json all = json::parse(contents(recorded("sentencepiece/texts.json")));
  const auto texts = all["texts"].get<std::vector<std::string>>();
  EXPECT_GT(texts.size(), 40u);
  for (const char* kind : {"unigram", "bpe", "char", "word"}) {
    const auto made = data::read_sentencepiece(file_of(kind), {});
    for (size_t i = 0; i < texts.size(); ++i) {
      const auto ids = all["cases"][kind][i][0].get<std::vector<int32_t>>();
      EXPECT_EQ(made->encode(texts[i], "t"), ids) << kind << ": " << texts[i];
      EXPECT_EQ(made->decode({ids.begin(), ids.end()}), all["cases"][kind][i][1])
          << kind << ": " << texts[i];
    }
  }
}

TEST(SentencePiece, IdsOfBeginAndEnd) {
  const auto plain = data::read_sentencepiece(file_of("bpe"), {})->encode("a fox", "t");
  std::vector<int32_t> around = {1};
  around.insert(around.end(), plain.begin(), plain.end());
  around.push_back(2);
  EXPECT_EQ(data::read_sentencepiece(file_of("bpe"), {true, true})->encode("a fox", "t"), around);
}

void expect_refused(const std::function<void()>& call, const std::string& fragment) {
  EXPECT_NE(refusal(call).find(fragment), std::string::npos) << refusal(call);
}

TEST(SentencePiece, WhatIsWrongIsNamed) {
  expect_refused(
      [] {
        data::read_sentencepiece(file_of("char"), {true, false});
      },
      "char.model: bos: the model has no such id");
  expect_refused([] { data::read_sentencepiece("/nowhere.model", {}); },
                 "/nowhere.model: cannot be read");
  expect_refused([] { data::read_sentencepiece(recorded("sentencepiece/texts.json"), {}); },
                 "texts.json: not a model of SentencePiece");
  const auto made = data::read_sentencepiece(file_of("bpe"), {});
  expect_refused([&] { made->encode("a\xff", "corpus.txt"); }, "corpus.txt: byte 1 is not UTF-8");
  expect_refused([&] { made->decode({1, 100000}); }, "decode: token 100000 is outside 0..");
}

TEST(SentencePiece, WhatIsSavedIsTheSame) {
  const std::string folder = std::filesystem::temp_directory_path().string();
  data::read_sentencepiece(file_of("unigram"), {})->save(folder);
  EXPECT_EQ(contents(folder + "/tokenizer.model"), contents(file_of("unigram")));
  std::filesystem::remove(folder + "/tokenizer.model");
}

TEST(SentencePiece, DamagedFilesAreReadOrRefused) {
  const ScratchFile scratch("sentencepiece.model");
  for (const char* kind : {"bpe", "char", "unigram"})
    expect_mutations_stand(contents(file_of(kind)), scratch, 300, {"\n", "\x12\x7f", "<s>"}, [&] {
      const auto made = data::read_sentencepiece(scratch.path(), {});
      made->decode({0, made->vocab() - 1});
      made->encode("The quick brown fox 12", scratch.path());
    });
}

}  // namespace
}  // namespace orrery
