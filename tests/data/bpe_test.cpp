// SPDX-License-Identifier: Apache-2.0
//
// Byte-level BPE against the ids of Hugging Face's tokenizers (make_bpe.py), and damaged files.
#include "data/bpe.h"

#include <nlohmann/json.hpp>

#include "data/gpt2_split.h"
#include "mutations.h"

namespace orrery {
namespace {

TEST(Bpe, IdsAreThoseOfTokenizers) {
  const auto bpe = load_bpe(recorded("bpe/vocab.json"), recorded("bpe/merges.txt"));
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

TEST(Bpe, SplitsAsGpt2Does) {
  using Pieces = std::vector<std::string_view>;
  EXPECT_EQ(gpt2_split("I'll  go\n\n on", "t"), (Pieces{"I", "'ll", " ", " go", "\n\n", " on"}));
  EXPECT_EQ(gpt2_split("a \n", "t"), (Pieces{"a", " \n"}));
  EXPECT_EQ(gpt2_split("a\nb 12x!?", "t"), (Pieces{"a", "\n", "b", " 12", "x", "!?"}));
}

TEST(Bpe, NamesWhatIsWrong) {
  const ScratchFile vocab("vocab.json"), merges("merges.txt");
  const auto refused = [&](const std::string& of_vocab, const std::string& of_merges,
                           const ScratchFile& file, const char* fragment) {
    vocab.write(of_vocab), merges.write(of_merges);
    const std::string why = refusal([&] { load_bpe(vocab.path(), merges.path()); });
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
  const auto bpe = load_bpe(recorded("bpe/vocab.json"), recorded("bpe/merges.txt"));
  EXPECT_EQ(refusal([&] { bpe->encode("a\xff", "text.txt"); }), "text.txt: byte 1 is not UTF-8");
  EXPECT_EQ(refusal([&] { bpe->decode({600}); }), "decode: token 600 is outside 0..599");
}

TEST(Bpe, MutationsAreReadOrRefused) {
  const ScratchFile file("mutated_bpe");
  const std::string vocab = recorded("bpe/vocab.json"), merges = recorded("bpe/merges.txt");
  const std::vector<std::string> pieces = {"\"", ":", "{", "}", " ", "\n", "9999999999", "\xff"};
  expect_mutations_stand(contents(vocab), file, 300, pieces,
                         [&] { load_bpe(file.path(), merges); });
  expect_mutations_stand(contents(merges), file, 300, pieces,
                         [&] { load_bpe(vocab, file.path()); });
}

}  // namespace
}  // namespace orrery
