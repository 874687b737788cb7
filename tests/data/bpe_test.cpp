// SPDX-License-Identifier: Apache-2.0
//
// Byte-level BPE against the ids of Hugging Face's tokenizers and of tiktoken (make_bpe.py), and
// damaged files.
#include <nlohmann/json.hpp>

#include "../../plugins/data/bpe/bpe.h"
#include "mutations.h"

namespace orrery {
namespace {

using namespace data;

std::unique_ptr<orr::Tokenizer> load(const std::string& vocab, const std::string& merges) {
  return make_tokenizer(read_bpe(vocab, merges), vocab);
}

TEST(Bpe, IdsAreThoseOfTokenizers) {
  const auto bpe = load(recorded("bpe/vocab.json"), recorded("bpe/merges.txt"));
  EXPECT_EQ(bpe->vocab(), 600);
  const auto cases = nlohmann::json::parse(contents(recorded("bpe/texts.json")));
  EXPECT_GT(cases.size(), 30u);
  for (const auto& each : cases) {
    const std::string text = each["text"].get<std::string>();
    const auto ids = bpe->encode(text, "t");
    EXPECT_EQ(ids, each["ids"].get<std::vector<int32_t>>()) << text;
    EXPECT_EQ(bpe->decode({ids.begin(), ids.end()}), text);
  }
}

TEST(Bpe, IdsAreThoseOfTiktoken) {
  Bpe bpe = read_tiktoken(recorded("bpe/ranks.tiktoken"));
  bpe.split = Split::gpt4;
  add_special(bpe, {{"<|endoftext|>", -1}, {"<|fim|>", 607}});
  const auto tokenizer = make_tokenizer(std::move(bpe), "ranks");
  EXPECT_EQ(tokenizer->vocab(), 608);
  const auto cases = nlohmann::json::parse(contents(recorded("bpe/gpt4.json")));
  EXPECT_GT(cases.size(), 45u);
  for (const auto& each : cases) {
    const std::string text = each["text"].get<std::string>();
    const auto ids = tokenizer->encode(text, "t");
    EXPECT_EQ(ids, each["ids"].get<std::vector<int32_t>>()) << text;
    EXPECT_EQ(tokenizer->decode({ids.begin(), ids.end()}), text);
  }
  EXPECT_EQ(refusal([&] { tokenizer->decode({605}); }), "decode: no token has the id 605");
}

TEST(Bpe, TextIsCutAsTiktokenCutsIt) {
  std::map<std::string, std::unique_ptr<orr::Tokenizer>> by_split;
  for (const char* name : {"r50k", "cl100k", "o200k"}) {
    Bpe bpe = read_tiktoken(recorded("bpe/unsplit.tiktoken"));
    bpe.split = split_by_name(name);
    by_split[name] = make_tokenizer(std::move(bpe), name);
  }
  const auto cases = nlohmann::json::parse(contents(recorded("bpe/unsplit.json")));
  EXPECT_GT(cases.size(), 200u);
  for (const auto& each : cases) {
    const std::string text = each["text"].get<std::string>();
    EXPECT_EQ(by_split.at(each["split"])->encode(text, "t"),
              each["ids"].get<std::vector<int32_t>>())
        << each["split"] << ": " << text;
  }
}

// The numbers of the vocabularies that tiktoken's package names, without special tokens.
TEST(Bpe, TheSplitIsThatOfAKnownVocabulary) {
  EXPECT_EQ(split_of_tiktoken(50256), Split::gpt2);
  EXPECT_EQ(split_of_tiktoken(50280), Split::gpt2);
  EXPECT_EQ(split_of_tiktoken(100256), Split::gpt4);
  EXPECT_EQ(split_of_tiktoken(199998), Split::o200k);
  EXPECT_EQ(split_of_tiktoken(600), std::nullopt);
}

TEST(Bpe, LearnsWhatBpeTrainerLearns) {
  const auto recorded_cases = nlohmann::json::parse(contents(recorded("bpe/trained.json")));
  const ScratchFile vocab("vocab.json"), merges("merges.txt");
  for (const auto& each : recorded_cases["cases"]) {
    const BpeTraining training{each["vocab"].get<int64_t>(), each["min_frequency"].get<int64_t>(),
                               Split::gpt2, each["special"].get<std::vector<std::string>>()};
    const Bpe bpe = train_bpe(recorded_cases["text"].get<std::string>(), "t", training);
    write_bpe(bpe, vocab.path(), merges.path());
    EXPECT_EQ(nlohmann::json::parse(contents(vocab.path())), each["tokens"]) << training.vocab;
    std::string pairs = "#version: 0.2\n";
    for (const auto& pair : each["merges"])
      pairs += pair[0].get<std::string>() + " " + pair[1].get<std::string>() + "\n";
    EXPECT_EQ(contents(merges.path()), pairs) << training.vocab;
    EXPECT_EQ(read_bpe(vocab.path(), merges.path()).merges, bpe.merges);
  }
}

TEST(Bpe, SpecialTokensAreFoundFirst) {
  Bpe bpe = read_bpe(recorded("bpe/vocab.json"), recorded("bpe/merges.txt"));
  add_special(bpe, {{"<a>", -1}, {"<a><b>", -1}, {"<b>", 700}});
  const auto tokenizer = make_tokenizer(bpe, "t");
  const auto x = tokenizer->encode("x", "t")[0];
  EXPECT_EQ(tokenizer->encode("x<a>x<a><b><b><a", "t").size(), 7u);
  EXPECT_EQ(tokenizer->encode("<a>x<a><b><b>", "t"), (std::vector<int32_t>{600, x, 601, 700}));
  EXPECT_NE(refusal([&] {
              add_special(bpe, {{"<a>", 3}});
            }).find("in the vocabulary it has 600"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              add_special(bpe, {{"<c>", 700}});
            }).find("which is that of '<b>'"),
            std::string::npos);
}

TEST(Bpe, SplitsAsGpt2Does) {
  using Pieces = std::vector<std::string_view>;
  EXPECT_EQ(pretokens(Split::gpt2, "I'll  go\n\n on", "t"),
            (Pieces{"I", "'ll", " ", " go", "\n\n", " on"}));
  EXPECT_EQ(pretokens(Split::gpt2, "a \n", "t"), (Pieces{"a", " \n"}));
  EXPECT_EQ(pretokens(Split::gpt4, "I'LL\t12345\n \n x", "t"),
            (Pieces{"I", "'LL", "\t", "123", "45", "\n \n", " x"}));
  EXPECT_EQ(pretokens(Split::gpt2, "a\nb 12x!?", "t"), (Pieces{"a", "\n", "b", " 12", "x", "!?"}));
}

TEST(Bpe, NamesWhatIsWrong) {
  const ScratchFile vocab("vocab.json"), merges("merges.txt");
  const auto refused = [&](const std::string& of_vocab, const std::string& of_merges,
                           const ScratchFile& file, const char* fragment) {
    vocab.write(of_vocab), merges.write(of_merges);
    const std::string why = refusal([&] { load(vocab.path(), merges.path()); });
    EXPECT_TRUE(why.starts_with(file.path())) << why;
    EXPECT_NE(why.find(fragment), std::string::npos) << why;
  };
  const std::string good = contents(recorded("bpe/vocab.json"));
  const std::string pairs = contents(recorded("bpe/merges.txt"));
  refused("[1]", pairs, vocab, "not a vocabulary");
  refused(R"({"a":0,"b":0})", pairs, vocab, "the id 0: ids are 0..1, each once");
  refused(R"({"a":-1})", pairs, vocab, "the id -1");
  refused(R"({"a":0})", "", vocab, "no token is byte 0 alone");
  refused(good, "#version: 0.2\nab\n", merges, "line 2: 'ab': expected two tokens");
  refused(good, "q q\n", merges, "line 1: 'q q' needs a token that");
  const auto bpe = load(recorded("bpe/vocab.json"), recorded("bpe/merges.txt"));
  EXPECT_EQ(refusal([&] { bpe->encode("a\xff", "text.txt"); }), "text.txt: byte 1 is not UTF-8");
  EXPECT_EQ(refusal([&] { bpe->decode({600}); }), "decode: token 600 is outside 0..599");
}

TEST(Bpe, MutationsAreReadOrRefused) {
  const ScratchFile file("mutated_bpe");
  const std::string vocab = recorded("bpe/vocab.json"), merges = recorded("bpe/merges.txt");
  const std::vector<std::string> pieces = {"\"", ":", "{", "}", " ", "\n", "9999999999", "\xff"};
  expect_mutations_stand(contents(vocab), file, 300, pieces, [&] { load(file.path(), merges); });
  expect_mutations_stand(contents(merges), file, 300, pieces, [&] { load(vocab, file.path()); });
}

TEST(Bpe, NamesWhatIsWrongInTiktokensFile) {
  const ScratchFile file("ranks.tiktoken");
  const std::string good = contents(recorded("bpe/ranks.tiktoken"));
  const auto refused = [&](const std::string& text, const char* fragment) {
    file.write(text);
    const std::string why =
        refusal([&] { make_tokenizer(read_tiktoken(file.path()), file.path()); });
    EXPECT_TRUE(why.starts_with(file.path())) << why;
    EXPECT_NE(why.find(fragment), std::string::npos) << why;
  };
  refused("IQ== 0\nIQ==\n", "line 2: 'IQ==': expected a token's bytes in base64");
  refused("I!== 0\n", "line 1: 'I!== 0': expected");
  refused("IQ== 0\nIg== 0\n", "line 2: the id 0: ids are 0..2, each once");
  refused("IQ== 9\n", "line 1: the id 9");
  refused("IQ== 0\n", "no token is byte 0 alone");
  expect_mutations_stand(good, file, 300, {" ", "\n", "=", "9999999999", "\xff"},
                         [&] { make_tokenizer(read_tiktoken(file.path()), file.path()); });
}

}  // namespace
}  // namespace orrery
