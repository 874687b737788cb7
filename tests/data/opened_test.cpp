// SPDX-License-Identifier: Apache-2.0
//
// What the core makes of a plugin's dataset: options, dtypes, elements, files packed by gzip.
#include <zlib.h>

#include <array>
#include <cstring>
#include <memory>

#include "data/made_tokenizer.h"
#include "mutations.h"
#include "plugin/registry.h"
#include "readers.h"
#include "store/stored.h"

namespace orrery {
namespace {

std::string packed(const std::string& bytes) {
  const ScratchFile file("packed.gz");
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> to(gzopen(file.path().c_str(), "wb"), gzclose);
  EXPECT_EQ(gzwrite(to.get(), bytes.data(), static_cast<unsigned>(bytes.size())),
            static_cast<int>(bytes.size()));
  EXPECT_EQ(gzflush(to.get(), Z_FINISH), Z_OK);
  return contents(file.path());
}

// Field 0 of all samples.
std::string all_of(const DatasetPtr& data) {
  std::vector<Pick> picks;
  for (int64_t i = 0; i < data->samples(); ++i) picks.push_back({i});
  std::string bytes(picks.size() * data->fields()[0].sample.bytes(), '\0');
  std::vector<std::byte*> to(data->fields().size());
  to[0] = reinterpret_cast<std::byte*>(bytes.data());
  data->read(picks, to);
  return bytes;
}

template <class T>
std::string as_bytes(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// Those of idx were packed by Python (make.py).
TEST(Opened, PackedFilesAreThoseUnpacked) {
  const ScratchFile records("records.gz");
  const DatasetPtr data = idx_files(recorded("images.idx.gz"), recorded("labels.idx.gz"), ORR_F32);
  EXPECT_EQ(all_of(data),
            all_of(idx_files(recorded("images.idx"), recorded("labels.idx"), ORR_F32)));
  EXPECT_FALSE(data->slow());
  records.write(packed(contents(recorded("cifar10.bin"))));
  EXPECT_EQ(all_of(cifar_files({records.path()}, 10, ORR_U8)),
            all_of(cifar_files({recorded("cifar10.bin")}, 10, ORR_U8)));
  records.write(packed(contents(recorded("tokens.bin"))));
  EXPECT_EQ(all_of(token_files({records.path()}, "u16", 3)),
            all_of(token_files({recorded("tokens.bin")}, "u16", 3)));
  records.write(packed("a,b\n1,2\n"));
  EXPECT_EQ(all_of(csv_file(records.path(), {{"x", {"b"}}})), as_bytes(2.0f));
}

// The first tokens of a file may be the bytes with which gzip's files begin.
TEST(Opened, TokensThatLookPackedAreTokens) {
  const ScratchFile file("begins_as_gzip.bin");
  file.write("\x1f\x8b\x01\x02\x03\x04");
  EXPECT_EQ(all_of(token_files({file.path()}, "u16", 2)).substr(0, 8),
            as_bytes(0x8b1f) + as_bytes(0x0201));
}

// gzip's files may be joined by cat.
TEST(Opened, SeveralPackedFilesInOneAreReadInTurn) {
  const ScratchFile file("two.gz");
  const std::string whole = contents(recorded("cifar10.bin"));
  file.write(packed(whole.substr(0, 1000)) + packed(whole.substr(1000)));
  EXPECT_EQ(all_of(cifar_files({file.path()}, 10, ORR_U8)),
            all_of(cifar_files({recorded("cifar10.bin")}, 10, ORR_U8)));
}

TEST(Opened, PackedFilesThatAreDamagedAreRefused) {
  const ScratchFile file("damaged.gz");
  const std::string whole = packed(contents(recorded("cifar10.bin")));
  const auto refused = [&](const std::string& bytes, const std::string& why) {
    file.write(bytes);
    EXPECT_EQ(refusal([&] { cifar_files({file.path()}, 10, ORR_U8); }).find(file.path() + why), 0u);
  };
  for (const size_t kept : {size_t{2}, size_t{12}, whole.size() / 2, whole.size() - 1})
    refused(whole.substr(0, kept), ": the packed file is cut short");
  refused(whole + "x", ": the packed file is");
  std::string altered = whole;
  altered[whole.size() - 6] ^= 1;  // of the checksum
  refused(altered, ": the packed file is altered (incorrect data check)");
}

TEST(Opened, MutationsOfPackedFilesAreRefused) {
  const ScratchFile file("mutated.gz");
  expect_mutations_stand(packed(contents(recorded("cifar10.bin"))), file, 900, {"x", "\xff\xff"},
                         [&] { all_of(cifar_files({file.path()}, 10, ORR_U8)); });
}

// More samples than are read at once, forwards and backwards, of elements that become others.
TEST(Opened, LongReadsAreThoseOfSingleSamples) {
  const DatasetPtr data = cifar_files({recorded("cifar10.bin")}, 10, ORR_F32);
  const size_t bytes = data->fields()[0].sample.bytes();
  const std::string each = all_of(data);
  std::vector<Pick> picks;
  for (int64_t i = 0; i < 300; ++i) picks.push_back({i * i % 3 % 2});
  std::vector<std::byte> x(picks.size() * bytes);
  std::vector<int32_t> y(picks.size());
  data->read(picks, std::vector{x.data(), reinterpret_cast<std::byte*>(y.data())});
  for (size_t i = 0; i < picks.size(); ++i) {
    const auto sample = static_cast<size_t>(picks[i].sample);
    ASSERT_EQ(std::memcmp(x.data() + i * bytes, each.data() + sample * bytes, bytes), 0) << i;
    EXPECT_EQ(y[i], sample ? 9 : 3);
  }
}

// Numbers that would be infinite in the dtype that is asked for.
TEST(Opened, NumbersThatADtypeDoesNotHoldAreRefused) {
  const ScratchFile file("large.csv");
  file.write("a,b,c\n65519,1e39,3.4e38\n65520,1,2\n");
  const auto why = [&](const std::string& column, const std::string& dtype) {
    return refusal([&] { all_of(csv_file(file.path(), {{"x", {column}, false, dtype}})); });
  };
  EXPECT_EQ(why("a", "bf16"), "");
  EXPECT_EQ(why("a", "f16"),
            file.path() + ": the value 65520 does not fit into f16; ask for a wider dtype");
  EXPECT_EQ(why("b", "f64"), "");
  EXPECT_EQ(why("b", "bf16"),
            file.path() + ": the value 1e+39 does not fit into bf16; ask for a wider dtype");
  EXPECT_EQ(why("c", "f32"), "");
  EXPECT_EQ(why("c", "bf16"),
            file.path() + ": the value 3.4e+38 does not fit into bf16; ask for a wider dtype");
}

TEST(Opened, FractionsAreNoWholeNumbers) {
  const auto as = [](float value, int32_t dtype) {
    std::array<std::byte, 8> to{};
    return refusal([&] {
      convert_elements({Stored::f32}, reinterpret_cast<const std::byte*>(&value), 1, dtype,
                       to.data(), "labels.npy");
    });
  };
  EXPECT_EQ(as(2, ORR_I32), "");
  EXPECT_EQ(as(1.5f, ORR_I32),
            "labels.npy: the value 1.5 does not fit into i32; ask for a wider dtype");
  EXPECT_EQ(as(-0.5f, ORR_U8),
            "labels.npy: the value -0.5 does not fit into u8; ask for a wider dtype");
}

TEST(Opened, OptionsThatNobodyAsksForAreRefused) {
  const std::string path = recorded("tokens.bin");
  const auto why = [&](const Attrs& options, const std::map<std::string, int32_t>& dtypes = {}) {
    return refusal([&] { open_data("tokens", path, options, dtypes); });
  };
  EXPECT_EQ(why({{"length", int64_t{3}}}), "");
  EXPECT_EQ(why({{"length", int64_t{3}}, {"dtypo", "u16"}}),
            "tokens: unknown option 'dtypo' (did you mean 'dtype'?); it has dtype, length, more.1");
  EXPECT_EQ(why({{"length", int64_t{3}}, {"dtype", int64_t{16}}}),
            "tokens: option 'dtype' must be a string");
  EXPECT_EQ(why({{"length", "3"}}), "tokens: option 'length' must be a whole number");
  EXPECT_EQ(why({{"length", int64_t{3}}}, {{"z", ORR_I32}}),
            path + ": dtypes: there is no field 'z'; the dataset has x, y");
}

TEST(Opened, WhatAPluginSaysIsLookedAt) {
  Registry::get().add(LYING);
  const auto why = [](const std::string& lie) {
    return refusal([&] { open_data("lying", "a file", {{"lie", lie}}, {}); });
  };
  EXPECT_EQ(why(""), "");
  EXPECT_EQ(why("nothing"), "data 'lying': open gave no dataset");
  EXPECT_EQ(why("fields"), "data 'lying': 0 fields, 3 samples, a window of 0, 0 classes");
  EXPECT_EQ(why("samples"), "data 'lying': 1 fields, 0 samples, a window of 0, 0 classes");
  EXPECT_EQ(why("window"), "data 'lying': 1 fields, 3 samples, a window of -1, 0 classes");
  EXPECT_EQ(why("too many"),
            "data 'lying': 1 fields, 9223372036854775807 samples, a window of 0, 0 classes");
  EXPECT_EQ(why("elements"), "data 'lying': field 0 has the name 'x', elements '<q4' and 1 dims");
  EXPECT_EQ(why("name"), "data 'lying': field 0 has the name '', elements '<f4' and 1 dims");
  EXPECT_EQ(why("line end"), "data 'lying': field 0 has the name 'x\n', elements '<f4' and 1 dims");
  EXPECT_EQ(why("twice"), "data 'lying': two fields are named 'x'");
  EXPECT_EQ(why("dims"), "data 'lying': [-2] are no dims of a sample");
  EXPECT_EQ(why("overflow"), "data 'lying': [1099511627776,1099511627776] are no dims of a sample");
  EXPECT_EQ(why("dtype"), "data 'lying': field 'x' has dtype 99");
  const DatasetPtr data = open_data("lying", "a file", {}, {});
  EXPECT_EQ(refusal([&] { all_of(data); }), "lying: there is nothing to read");
  EXPECT_EQ(refusal([&] {
              all_of(open_data("lying", "a file", {{"lie", "more"}}, {}));
            }),
            "data 'lying': a file: field 'x' was written beyond the f32[2] of 3 samples");
  const auto tokenizer = plugin_tokenizer("lying", {}, "", "");
  EXPECT_EQ(tokenizer->encode("a", "t"), (std::vector<int32_t>{0, 1, 1}));
  EXPECT_EQ(refusal([&] { tokenizer->encode("ab", "t"); }),
            "the tokenizer gives the id 2, outside 0..1");
}

TEST(Opened, AFormatWithoutPluginIsNamed) {
  const std::string why = refusal([] { open_data("records", "a.bin", {}, {}); });
  for (const char* part : {"no plugin provides data 'records'; found: ", "tokens", "; looked for ",
                           "looked for orrery-data-records.so in /", "ORRERY_PLUGIN_PATH"})
    EXPECT_NE(why.find(part), std::string::npos) << why;
}

}  // namespace
}  // namespace orrery
