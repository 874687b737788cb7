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

std::string lines_of(const nlohmann::json& lines) {
  std::string text;
  for (const auto& line : lines) text += line.get<std::string>() + "\n";
  return text;
}

// Merges out of order and twice, ranks out of order, ids with holes.
TEST(Bpe, OddFilesAreReadAsOthersReadThem) {
  const auto odd = nlohmann::json::parse(contents(recorded("bpe/odd.json")));
  const ScratchFile vocab("odd_vocab.json"), merges("odd_merges.txt"), ranks("odd.tiktoken");
  for (const auto& each : odd["cases"]) {
    std::unique_ptr<orr::Tokenizer> made;
    if (each.contains("ranks")) {
      ranks.write(lines_of(each["ranks"]));
      Bpe bpe = read_tiktoken(ranks.path());
      bpe.split = Split::gpt4;
      made = make_tokenizer(std::move(bpe), "t");
    } else {
      vocab.write(each["vocab"].dump()), merges.write(lines_of(each["merges"]));
      made = load(vocab.path(), merges.path());
    }
    EXPECT_GT(made->vocab(), 1700);
    for (size_t i = 0; i < odd["texts"].size(); ++i)
      EXPECT_EQ(made->encode(odd["texts"][i].get<std::string>(), "t"),
                each["ids"][i].get<std::vector<int32_t>>())
          << odd["texts"][i];
  }
}

class SavedBpe : public testing::Test {
 protected:
  SavedBpe() { std::filesystem::create_directory(folder_); }
  ~SavedBpe() override { std::filesystem::remove_all(folder_); }

  std::string random_text(size_t most) {
    static const std::vector<std::string> pieces = {"a",      "b",  "ab", " ", "  ", "\n", "é",
                                                    "\u0120", "日", "#",  "1", "'s", "<|", "\""};
    std::string text;
    for (size_t n = random_() % (most + 1); n > 0; --n) text += pieces[random_() % pieces.size()];
    return text;
  }
  std::vector<std::string> random_specials() {
    std::vector<std::string> all;
    for (size_t n = random_() % 4; n > 0; --n) {
      const std::string text = random_text(3);
      const auto refuses = [&] { train_bpe("a", "t", {300, 1, Split::gpt2, {text}}); };
      if (refusal(refuses).empty() && std::ranges::find(all, text) == all.end())
        all.push_back(text);
    }
    return all;
  }
  // Saves, reads again and compares the ids of texts.
  void expect_round_trip(const Bpe& bpe, bool is_tiktoken) {
    const auto before = make_tokenizer(bpe, "t");
    before->save(folder_);
    Bpe read = is_tiktoken ? read_tiktoken(folder_ + "/ranks.tiktoken")
                           : read_bpe(folder_ + "/vocab.json", folder_ + "/merges.txt");
    read.split = bpe.split;
    add_special(read, {bpe.special.begin(), bpe.special.end()});
    const auto after = make_tokenizer(std::move(read), "t");
    EXPECT_EQ(after->vocab(), before->vocab());
    for (int i = 0; i < 20; ++i) {
      const std::string text = random_text(30);
      const auto ids = before->encode(text, "t");
      EXPECT_EQ(after->encode(text, "t"), ids) << text;
      EXPECT_EQ(after->decode({ids.begin(), ids.end()}), text);
    }
  }

  const std::string folder_ = std::filesystem::temp_directory_path() / "orrery_saved_bpe";
  std::mt19937 random_{7};
};

TEST_F(SavedBpe, EveryKindIsReadAgain) {
  for (int round = 0; round < 60; ++round) {
    const Split split = std::vector{Split::gpt2, Split::gpt4, Split::o200k}[random_() % 3];
    const auto specials = random_specials();
    Bpe bpe = train_bpe(random_text(400), "t",
                        {260 + static_cast<int64_t>(random_() % 60), 1, split, specials});
    expect_round_trip(bpe, false);
    for (const std::string& text : random_specials())
      refusal([&] {  // of an id that is taken, or of a token that has another
        add_special(bpe,
                    {{text, random_() % 2 ? -1 : 400 + static_cast<int64_t>(random_() % 900)}});
      });
    expect_round_trip(bpe, false);
    Bpe ranks = read_tiktoken(recorded("bpe/unsplit.tiktoken"));
    ranks.split = split;
    for (const std::string& text : random_specials()) add_special(ranks, {{text, -1}});
    expect_round_trip(ranks, true);
  }
}

TEST(Bpe, RefusesSpecialTokensThatNoFileCanHold) {
  const auto refused = [](const char* text) {
    return refusal([&] { train_bpe("abc", "t", {300, 1, Split::gpt2, {text}}); });
  };
  EXPECT_NE(refused("é").find("'é' is what vocab.json has for other bytes"), std::string::npos);
  EXPECT_NE(refused("\xff").find("is not UTF-8"), std::string::npos);
  EXPECT_NE(refused("").find("at least one byte"), std::string::npos);
  Bpe bpe = read_bpe(recorded("bpe/vocab.json"), recorded("bpe/merges.txt"));
  EXPECT_NE(refusal([&] {
              add_special(bpe, {{"é", -1}});
            }).find("is what vocab.json has for other bytes"),
            std::string::npos);
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
  refused(R"({"a":0,"b":0})", pairs, vocab, "the id 0, which is that of 'a'");
  refused(R"({"a":-1})", pairs, vocab, "the id -1");
  refused(R"({"a":16777216})", pairs, vocab, "whole numbers from 0 to 16777215");
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
  refused("IQ== 0\nIg== 0\n", "line 2: the id 0: ids are 0 to 16777215, each once");
  refused("IQ== 0\nIg== 1\nIQ== 2\n", "line 3: the token is that of line 1");
  refused("IQ== 16777216\n", "line 1: the id 16777216");
  refused("IQ== 0\n", "no token is byte 0 alone");
  expect_mutations_stand(good, file, 300, {" ", "\n", "=", "9999999999", "\xff"},
                         [&] { make_tokenizer(read_tiktoken(file.path()), file.path()); });
}

}  // namespace
}  // namespace orrery
