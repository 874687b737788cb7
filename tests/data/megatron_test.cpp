// SPDX-License-Identifier: Apache-2.0
//
// Token files of Megatron: an index made here by the format's definition, and what is wrong with
// others.
#include <array>
#include <cstring>

#include "mutations.h"
#include "readers.h"

namespace orrery {
namespace {

template <class T>
std::string little(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

struct Corpus {
  std::string index, tokens;
};

// Sequences of these sizes; the tokens are 0, 3, 6, ...
template <class T>
Corpus corpus(uint8_t code, const std::vector<int32_t>& sizes,
              const std::vector<int64_t>& documents) {
  std::vector<int64_t> begins;
  std::vector<T> tokens;
  for (const int32_t size : sizes) {
    begins.push_back(static_cast<int64_t>(tokens.size() * sizeof(T)));
    for (int32_t i = 0; i < size; ++i) tokens.push_back(static_cast<T>(tokens.size() * 3));
  }
  const std::string magic("MMIDIDX\0\0", 9);
  return {magic + little<uint64_t>({1}) + static_cast<char>(code) +
              little<uint64_t>({sizes.size(), documents.size()}) + little(sizes) + little(begins) +
              little(documents),
          little(tokens)};
}

class Megatron : public testing::Test {
 protected:
  void write(const Corpus& corpus) const {
    index_.write(corpus.index);
    tokens_.write(corpus.tokens);
  }
  std::string refused(const std::string& index) const {
    index_.write(index);
    return refusal([&] { token_files({index_.path()}, "", 3); });
  }
  const ScratchFile index_{"corpus.idx"}, tokens_{"corpus.bin"};
};

TEST_F(Megatron, WindowsAreThoseOfAllSequences) {
  const std::vector<int32_t> sizes = {4, 1, 0, 7};
  for (const Corpus& each :
       {corpus<uint16_t>(8, sizes, {0, 2, 4}), corpus<int32_t>(4, sizes, {0, 4}),
        corpus<uint8_t>(1, sizes, {0}), corpus<int64_t>(5, sizes, {})}) {
    write(each);
    const DatasetPtr data = open_data("tokens", index_.path(), {{"length", int64_t{3}}},
                                      {{"x", ORR_I64}, {"y", ORR_I64}});
    ASSERT_EQ(data->samples(), 9);
    for (int64_t i = 0; i < 9; ++i)
      for (size_t field = 0; field < 2; ++field) {
        std::array<int64_t, 3> window{};
        std::memcpy(window.data(), read_one(*data, {i}, field).data(), sizeof window);
        const auto first = i + static_cast<int64_t>(field);
        EXPECT_EQ(window, (std::array{3 * first, 3 * first + 3, 3 * first + 6}));
      }
  }
}

TEST_F(Megatron, AModeForEachSequenceMayFollow) {
  Corpus good = corpus<uint16_t>(8, {4, 4}, {0, 2});
  good.index += std::string("\0\1", 2);
  write(good);
  EXPECT_EQ(token_files({index_.path()}, "u16", 3)->samples(), 5);
}

TEST_F(Megatron, NamesWhatIsWrong) {
  const Corpus good = corpus<uint16_t>(8, {4, 4}, {0, 2});
  write(good);
  const auto expect = [&](const std::string& index, const std::string& why) {
    EXPECT_NE(refused(index).find(why), std::string::npos) << refused(index);
  };
  const auto with = [&](size_t at, char byte) {
    std::string altered = good.index;
    altered[at] = byte;
    return altered;
  };
  expect(good.index.substr(0, 20), "the index is cut short");
  expect(with(9, 2), "the index has version 2, only 1 is known");
  expect(with(17, 6), "its dtype has the code 6");
  expect(with(17, 99), "its dtype has the code 99");
  expect(with(18, 3), "do not hold 3 sequences and 2 documents");
  expect(with(25, 127), "the index is cut short or altered");
  expect(good.index + "x", "the index is cut short or altered");
  expect(with(34, 3), "sequence 1 has 4 tokens from byte 8 on, byte 6 expected");
  expect(with(38, 5), "16 bytes, its index ");
  index_.write(good.index);
  EXPECT_NE(refusal([&] { token_files({index_.path()}, "i32", 3); }).find("its header says u16"),
            std::string::npos);
  const ScratchFile renamed("corpus.other");
  renamed.write(good.index);
  EXPECT_NE(refusal([&] { token_files({renamed.path()}, "", 3); }).find("rename it back"),
            std::string::npos);
}

TEST_F(Megatron, DamagedIndices) {
  const Corpus good = corpus<uint16_t>(8, {4, 4, 5}, {0, 2, 3});
  tokens_.write(good.tokens);
  expect_mutations_stand(good.index, index_, 600, {"x", std::string(9, '\xff')},
                         [&] { token_files({index_.path()}, "", 3); });
}

}  // namespace
}  // namespace orrery
