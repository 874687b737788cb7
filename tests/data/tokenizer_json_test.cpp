// SPDX-License-Identifier: Apache-2.0
//
// tokenizer.json against the ids and texts of Hugging Face's tokenizers (make_tokenizer_json.py),
// parts that are not supported, and damaged files.
#include <nlohmann/json.hpp>

#include "../../plugins/data/tokenizer_json/regex.h"
#include "../../plugins/data/tokenizer_json/tokenizer.h"
#include "mutations.h"

namespace orrery {
namespace {

using nlohmann::json;

const char* const kKinds[] = {"gpt2", "llama3", "llama2",   "gemma", "bert", "bert_cased",
                              "t5",   "t5_map", "t5_bytes", "mixed", "words"};

std::string file_of(const std::string& kind) {
  return recorded("tokenizer_json/" + kind + ".json");
}

std::vector<int64_t> wide(const std::vector<int32_t>& ids) { return {ids.begin(), ids.end()}; }

TEST(TokenizerJson, IdsAndTextsAreThoseOfTokenizers) {
  const json all = json::parse(contents(recorded("tokenizer_json/texts.json")));
  const auto texts = all["texts"].get<std::vector<std::string>>();
  EXPECT_GT(texts.size(), 40u);
  for (const std::string kind : kKinds) {
    const auto shown = data::read_tokenizer_json(file_of(kind), {});
    const auto plain = data::read_tokenizer_json(file_of(kind), {false, false});
    const json& cases = all["cases"][kind];
    ASSERT_EQ(cases.size(), texts.size()) << kind;
    for (size_t i = 0; i < texts.size(); ++i) {
      const auto ids = cases[i][0].get<std::vector<int32_t>>();
      const size_t of_plain = cases[i].size() > 2 ? 2 : 0;
      EXPECT_EQ(shown->encode(texts[i], "t"), ids) << kind << ": " << texts[i];
      EXPECT_EQ(shown->decode(wide(ids)), cases[i][1]) << kind << ": " << texts[i];
      EXPECT_EQ(plain->encode(texts[i], "t"), cases[i][of_plain].get<std::vector<int32_t>>())
          << kind << ": " << texts[i];
      EXPECT_EQ(plain->decode(wide(ids)), cases[i][of_plain + 1]) << kind << ": " << texts[i];
    }
  }
}

// A tokenizer of single characters whose file has this part in place of one that it has.
class Altered : public testing::Test {
 protected:
  json file_ = json::parse(R"({"version": "1.0", "added_tokens": [], "normalizer": null,
    "pre_tokenizer": null, "post_processor": null, "decoder": null,
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}})");
  const ScratchFile scratch_{"tokenizer.json"};

  std::unique_ptr<orr::Tokenizer> made() {
    scratch_.write(file_.dump());
    return data::read_tokenizer_json(scratch_.path(), {});
  }
  void expect_refused(const char* field, const char* part, const char* fragment) {
    const json before = file_;
    file_[json::json_pointer(field)] = json::parse(part);
    const std::string why = refusal([&] { made(); });
    EXPECT_TRUE(why.starts_with(scratch_.path())) << part << ": " << why;
    EXPECT_NE(why.find(fragment), std::string::npos) << part << ": " << why;
    file_ = before;
  }
};

TEST_F(Altered, IsReadAsItIs) {
  EXPECT_EQ(made()->encode("abba", "t"), (std::vector<int32_t>{2, 1, 0}));
}

TEST_F(Altered, PartsThatAreNotSupportedAreRefusedByName) {
  expect_refused("/normalizer", R"({"type": "Reverse"})",
                 "a normalizer 'Reverse' is not supported");
  expect_refused("/normalizer", R"({"type": "Sequence", "normalizers": [{"type": "Reverse"}]})",
                 "normalizer: normalizers[0]: a normalizer 'Reverse' is not supported");
  expect_refused("/pre_tokenizer", R"({"type": "UnicodeScripts"})",
                 "a pre-tokenizer 'UnicodeScripts' is not supported");
  expect_refused("/post_processor", R"({"type": "Other"})", "a post-processor 'Other'");
  expect_refused("/decoder", R"({"type": "CTC"})", "a decoder 'CTC' is not supported");
  expect_refused("/model/type", R"("Other")", "a model 'Other' is not supported");
  expect_refused("/model/dropout", "0.1", "model: 'dropout' makes ids by chance");
  expect_refused("/model/fuses", "true", "the field 'fuses' is not supported in BPE");
  expect_refused("/normalizer", R"({"type": "NFC", "form": 1})",
                 "the field 'form' is not supported in NFC");
  expect_refused("/version", R"("2.0")", "the version '2.0' is not supported");
  expect_refused("/more", "1", "the field 'more' is not supported");
}

TEST_F(Altered, NamesWhatIsWrong) {
  expect_refused("/model/merges", R"(["a c"])", "merges[0]: 'a' and 'c'");
  expect_refused("/model/merges", R"(["a b c"])", "expected two tokens with a blank between them");
  expect_refused("/model/vocab", R"({"a": 0, "b": 0})", "'b' has the id 0, which is that of 'a'");
  expect_refused("/model/vocab", R"({"a": 16777216})", "whole numbers from 0 to 16777215");
  expect_refused("/model/vocab", R"({"a": -1})", "has the id -1");
  expect_refused("/added_tokens", R"([{"id": 7, "content": "a"}])",
                 "'a' has the id 7, in the vocabulary it has 0");
  expect_refused("/added_tokens", R"([{"id": 1, "content": "<s>"}])", "which is that of 'b'");
  expect_refused("/post_processor",
                 R"({"type": "BertProcessing", "cls": ["a", 9], "sep": ["a", 0]})",
                 "has the id 9, ids are 0 to 2");
  expect_refused(
      "/pre_tokenizer",
      R"({"type": "Split", "pattern": {"Regex": "("}, "behavior": "Isolated", "invert": false})",
      "the regular expression '(': missing closing parenthesis");
  const std::string deep = std::string(R"({"type": "Sequence", "normalizers": [)");
  std::string nested = R"({"type": "NFC"})";
  for (int i = 0; i < 40; ++i) nested = deep + nested + "]}";
  expect_refused("/normalizer", nested.c_str(), "too many sequences in each other");
  scratch_.write("{\"version\": ");
  EXPECT_EQ(refusal([&] { data::read_tokenizer_json(scratch_.path(), {}); }),
            scratch_.path() + ": not JSON in UTF-8; it may be cut short");
}

// What Python takes for no text: a byte alone, longer than needed, half a pair, behind the last.
TEST_F(Altered, TextsThatAreNotUtf8AreRefused) {
  const auto tokenizer = made();
  for (const char* text : {"\xff", "\x80", "\xc0\xaf", "\xe0\x80\x80", "\xed\xa0\x80", "\xe2\x82",
                           "\xf0\x80\x80\x80", "\xf4\x90\x80\x80"})
    EXPECT_EQ(refusal([&] { tokenizer->encode(std::string("a") + text, "t.txt"); }),
              "t.txt: byte 1 is not UTF-8");
  EXPECT_EQ(refusal([&] { tokenizer->decode({3}); }), "decode: token 3 is outside 0..2");
}

TEST(TokenizerJson, ExpressionsAreThoseOfOniguruma) {
  EXPECT_EQ(data::for_pcre2(R"([^\s\w]+|\S\\s)", "t"),
            R"([^\p{White_Space}\p{Alphabetic}\p{M}\p{Nd}\p{Pc}]+|\P{White_Space}\\s)");
  for (const char* refused : {"[a[b]]", "[a&&b]", "a{2,3}+", "a{,3}", "(?m:.)", "(?s)", "(?<n>a)",
                              R"(\b)", R"(\K)", R"([\W])", "a{2}?", "{", "[]a]"})
    EXPECT_NE(refusal([&] { data::for_pcre2(refused, "t"); }).find("is not supported"),
              std::string::npos)
        << refused;
}

TEST(TokenizerJson, WhatTakesTooManyStepsIsAnError) {
  const data::Regex regex("(a+)+$", "t: pre_tokenizer");
  const std::string why =
      refusal([&] { regex.each_match(std::string(40, 'a') + "b", [](size_t, size_t) {}); });
  EXPECT_TRUE(why.starts_with("t: pre_tokenizer: the regular expression on a text: match limit"))
      << why;
}

// In steps that are the square of its length each would take minutes.
TEST(TokenizerJson, LongWordsEnd) {
  std::string word;
  for (int64_t i = 0; i < 200000; ++i) word += static_cast<char>('a' + i * i % 7 % 5);
  for (const std::string kind : kKinds)
    EXPECT_FALSE(data::read_tokenizer_json(file_of(kind), {})->encode(word, "t").empty()) << kind;
}

TEST(TokenizerJson, MutationsAreReadOrRefused) {
  const ScratchFile file("mutated_tokenizer.json");
  const std::vector<std::string> pieces = {"\"", ":",    "{",  "}",         "[",
                                           "]",  "null", "-1", "9999999999"};
  for (const std::string kind : kKinds)
    expect_mutations_stand(contents(file_of(kind)), file, 300, pieces, [&] {
      const auto tokenizer = data::read_tokenizer_json(file.path(), {});
      tokenizer->decode(wide(tokenizer->encode("The dog <s> e\u0301 12", file.path())));
    });
}

}  // namespace
}  // namespace orrery
