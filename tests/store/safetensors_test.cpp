// SPDX-License-Identifier: Apache-2.0
//
// The reader against headers that lie, and against noise.
#include "store/safetensors.h"

#include <fcntl.h>
#include <gmock/gmock.h>

#include <random>

#include "fixture.h"
#include "store/safetensors_header.h"

namespace orrery {
namespace {

using testing::HasSubstr;

using Safetensors = StoreTest;

std::string file_bytes(const std::string& header, size_t data_bytes) {
  uint64_t length = header.size();
  std::string bytes(reinterpret_cast<const char*>(&length), sizeof length);
  return bytes + header + std::string(data_bytes, 'x');
}

std::map<std::string, HostTensor> read(const std::string& path) {
  const SafetensorsFile file(File::open(AT_FDCWD, path, "'" + path + "'", true));
  std::map<std::string, HostTensor> tensors;
  for (const SafetensorsEntry& entry : file.entries())
    tensors[entry.name] = file.read(entry, entry.type.dtype);
  return tensors;
}

struct BadHeader {
  const char* name;
  std::string header;
  uint64_t data_bytes;
  const char* message;
};

std::string tensor(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"w":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets +
         "}}";
}

const char* const kU8 = R"("U8")";
const char* const kNumbers = "is not a list of whole numbers from 0";

std::vector<BadHeader> bad_headers() {
  std::string a = R"("a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]})";
  auto b = [](const std::string& offsets) {
    return R"("b":{"dtype":"U8","shape":[4],"data_offsets":)" + offsets + "}";
  };
  std::string many_ones = "[1";
  for (int i = 1; i < 33; ++i) many_ones += ",1";
  many_ones += "]";
  std::string deep = R"({"w":)" + std::string(100000, '[');
  return {
      {"empty", "", 0, "does not begin with '{'"},
      {"leading space", " {}", 0, "does not begin with '{'"},
      {"array", "[]", 0, "does not begin with '{'"},
      {"unclosed", "{", 0, "not valid JSON at its byte"},
      {"text after", "{}x", 0, "not valid JSON at its byte"},
      {"NUL after", std::string("{}\0", 3), 0, "the header holds a NUL"},
      {"not UTF-8", "{\"\xff\":{}}", 0, "not valid JSON at its byte"},
      {"deep nesting", deep, 0, "'w' is not a JSON object"},
      {"tensor is a number", R"({"w":1})", 0, "'w' is not a JSON object"},
      {"tensor is null", R"({"w":null})", 0, "'w' is not a JSON object"},
      {"metadata is a list", R"({"__metadata__":[]})", 0, "'__metadata__' is not a JSON object"},
      {"metadata of numbers", R"({"__metadata__":{"k":1}})", 0, "'k' is not a string"},
      {"metadata nested", R"({"__metadata__":{"k":{}}})", 0, "'k' is not a string"},
      {"metadata twice", R"({"__metadata__":{},"__metadata__":{}})", 0, "is given twice"},
      {"metadata key twice", R"({"__metadata__":{"k":"","k":""}})", 0, "field 'k' is given twice"},
      {"duplicate tensor", "{" + a + "," + a + "}", 4, "tensor 'a' is given twice"},
      {"duplicate tensor escaped", "{" + a + R"(,"\u0061":{}})", 4, "tensor 'a' is given twice"},
      {"empty name", R"({"":{}})", 0, "a tensor has an empty name"},
      {"NUL in name", R"({"w\u0000":{}})", 0, "tensor 'w\\u0000': the name holds a NUL"},
      {"duplicate field", R"({"w":{"dtype":"U8","dtype":"U8"}})", 0,
       "field 'dtype' is given twice"},
      {"unknown field", R"({"w":{"strides":[1]}})", 0, "field 'strides' is not one of"},
      {"no dtype", R"({"w":{"shape":[],"data_offsets":[0,1]}})", 1, "dtype is missing"},
      {"no shape", R"({"w":{"dtype":"U8","data_offsets":[0,1]}})", 1, "shape is missing"},
      {"no offsets", R"({"w":{"dtype":"U8","shape":[]}})", 1, "data_offsets is missing"},
      {"unknown dtype", tensor(R"("F4")", "[1]", "[0,1]"), 1, "dtype 'F4' is not one of"},
      {"dtype is a number", tensor("1", "[1]", "[0,1]"), 1, "dtype is not a string"},
      {"dtype is a list", tensor("[]", "[1]", "[0,1]"), 1, "dtype is not a string"},
      {"shape is a string", tensor(kU8, "\"1\"", "[0,1]"), 1, kNumbers},
      {"shape is an object", tensor(kU8, "{}", "[0,1]"), 1, kNumbers},
      {"shape nested", tensor(kU8, "[[1]]", "[0,1]"), 1, kNumbers},
      {"negative dim", tensor(kU8, "[-1]", "[0,1]"), 1, kNumbers},
      {"real dim", tensor(kU8, "[1.0]", "[0,1]"), 1, kNumbers},
      {"infinite dim", tensor(kU8, "[1e999]", "[0,1]"), 1, "not valid JSON at its byte"},
      {"dim of 2^63", tensor(kU8, "[9223372036854775808]", "[0,1]"), 1, "shape overflows 64 bits"},
      {"33 dims", tensor(kU8, many_ones, "[0,1]"), 1, "shape has more than 8 dims"},
      {"product overflow", tensor(kU8, "[4294967296,4294967296]", "[0,0]"), 0, "overflows 64 bits"},
      {"bytes overflow", tensor(R"("F64")", "[2305843009213693952]", "[0,0]"), 0,
       "overflows 64 bits"},
      {"negative offset", tensor(kU8, "[1]", "[-1,0]"), 1, kNumbers},
      {"one offset", tensor(kU8, "[1]", "[0]"), 1, "data_offsets has 1 numbers instead of 2"},
      {"three offsets", tensor(kU8, "[1]", "[0,1,2]"), 1, "data_offsets has more than 2 numbers"},
      {"offsets backwards", tensor(kU8, "[1]", "[1,0]"), 1, "do not span the 1 bytes of u8[1]"},
      {"too short for shape", tensor(kU8, "[4]", "[0,3]"), 3, "do not span the 4 bytes of u8[4]"},
      {"too long for shape", tensor(kU8, "[4]", "[0,5]"), 5, "do not span the 4 bytes of u8[4]"},
      {"hole at the start", tensor(kU8, "[4]", "[1,5]"), 5, "byte 1 of the data, after a hole"},
      {"hole between", "{" + a + "," + b("[5,9]") + "}", 9, "after a hole from byte 4"},
      {"overlap", "{" + a + "," + b("[3,7]") + "}", 7, "inside another that ends at byte 4"},
      {"same place", "{" + a + "," + b("[0,4]") + "}", 4, "inside another that ends at byte 4"},
      {"past the end", "{" + a + "," + b("[4,8]") + "}", 7, "8 bytes of data and the file holds 7"},
      {"trailing bytes", "{" + a + "}", 5, "has trailing bytes"},
      {"no tensors but bytes", "{}", 1, "has trailing bytes"},
  };
}

TEST_F(Safetensors, NamesWhatIsWrongWithAHeader) {
  for (const BadHeader& bad : bad_headers()) {
    SCOPED_TRACE(bad.name);
    spill(path("f"), file_bytes(bad.header, bad.data_bytes));
    std::string message = error_of([&] { read(path("f")); });
    EXPECT_THAT(message, HasSubstr(bad.message));
    EXPECT_THAT(message, testing::StartsWith("'" + path("f") + "'"));
    EXPECT_THAT(message, HasSubstr("; restore the file from a copy or save it again"));
  }
}

TEST_F(Safetensors, NamesWhatIsWrongWithALength) {
  auto message = [&](const std::string& bytes) {
    spill(path("f"), bytes);
    return error_of([&] { read(path("f")); });
  };
  auto with_length = [](uint64_t length) {
    return std::string(reinterpret_cast<const char*>(&length), sizeof length) + "{}";
  };
  EXPECT_THAT(message(""), HasSubstr("is truncated: 0 bytes, fewer than the 8"));
  EXPECT_THAT(message("1234567"), HasSubstr("is truncated: 7 bytes, fewer than the 8"));
  EXPECT_THAT(message(with_length(3)), HasSubstr("the header's length is 3 and 2 bytes follow it"));
  EXPECT_THAT(message(with_length(100'000'000)), HasSubstr("is truncated"));
  EXPECT_THAT(message(with_length(100'000'001)), HasSubstr("above the limit of 100000000 bytes"));
  EXPECT_THAT(message(with_length(uint64_t{1} << 63)), HasSubstr("above the limit"));
  EXPECT_THAT(message(with_length(UINT64_MAX)), HasSubstr("above the limit"));
}

TEST_F(Safetensors, RefusesWhatIsNotAFile) {
  EXPECT_THAT(error_of([&] { read(path("none")); }), HasSubstr("is missing"));
  EXPECT_THAT(error_of([&] { read(path(".")); }), HasSubstr("is not a regular file"));
  std::filesystem::create_symlink("loop", path("loop"));
  EXPECT_THAT(error_of([&] { read(path("loop")); }), HasSubstr("cannot be opened"));
}

// Written by hand from the specification: tensors listed out of order, spaces at the end, a scalar,
// an empty tensor between others.
TEST_F(Safetensors, ReadsAFileOfAnotherWriter) {
  std::string header = R"({"b":{"shape":[],"data_offsets":[2,4],"dtype":"BF16"},)"
                       R"("e":{"dtype":"F64","shape":[5,0],"data_offsets":[2,2]},)"
                       R"("__metadata__":{"format":"pt","by":"hand"},)"
                       R"("a":{"dtype":"U8","shape":[2,1],"data_offsets":[0,2]}}   )";
  spill(path("f"), file_bytes(header, 0) + "wxyz");
  auto tensors = read(path("f"));
  ASSERT_EQ(tensors.size(), 3u);
  EXPECT_EQ(tensors.at("a").type, (Type{ORR_U8, {2, 1}}));
  EXPECT_EQ(std::memcmp(tensors.at("a").bytes->data(), "wx", 2), 0);
  EXPECT_EQ(tensors.at("b").type, (Type{ORR_BF16, {}}));
  EXPECT_EQ(std::memcmp(tensors.at("b").bytes->data(), "yz", 2), 0);
  EXPECT_EQ(tensors.at("e").type, (Type{ORR_F64, {5, 0}}));
}

TEST_F(Safetensors, WritesAsTheSpecificationAsks) {
  File file = File::create(path("f"), "f");
  write_safetensors(file, {{"z", filled({ORR_U8, {3}}, 0)},
                           {"b", filled({ORR_F32, {}}, 1)},
                           {"a", filled({ORR_F32, {2}}, 2)}});
  file.finish();
  std::string bytes = slurp(path("f"));
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  EXPECT_EQ(length % 8, 0u);
  std::string header = bytes.substr(8, length);
  EXPECT_EQ(header.substr(0, header.find_last_not_of(' ') + 1),
            R"({"__metadata__":{"format":"pt"},)"
            R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
            R"("b":{"dtype":"F32","shape":[],"data_offsets":[8,12]},)"
            R"("z":{"dtype":"U8","shape":[3],"data_offsets":[12,15]}})");
  EXPECT_EQ(bytes.size(), 8 + length + 15);
  EXPECT_EQ(digest_of(File::open(AT_FDCWD, path("f"), "f", true)), file.digest());
}

TEST_F(Safetensors, NeverTruncatesAFile) {
  spill(path("f"), "mine");
  EXPECT_THAT(error_of([&] { File::create(path("f"), "f"); }), HasSubstr("File exists"));
  EXPECT_EQ(slurp(path("f")), "mine");
}

// Noise, and a good header with a few bytes changed. Whatever is accepted obeys the contract.
TEST(SafetensorsHeader, SurvivesNoise) {
  std::mt19937 random(7);
  const std::string good =
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
      R"("b":{"dtype":"U8","shape":[],"data_offsets":[24,25]}})";
  const std::string alphabet = "{}[]\",:0123456789-eE. \\u\xc3\xa9naFU8dtype";
  int accepted = 0, refused = 0;
  for (int i = 0; i < 100'000; ++i) {
    std::string text = good;
    if (i % 4 == 0) {
      text.assign(1 + random() % 64, '{');
      for (size_t k = 1; k < text.size(); ++k) text[k] = static_cast<char>(random());
    } else {
      for (unsigned n = random() % 4; n > 0; --n) {
        size_t at = random() % text.size();
        if (i % 4 == 1) text[at] = static_cast<char>(random());
        if (i % 4 == 2) text[at] = alphabet[random() % alphabet.size()];
        if (i % 4 == 3) text.erase(at, 1 + random() % 3);
      }
    }
    try {
      uint64_t at = 0;
      for (auto& entry : parse_safetensors_header(text, 25, "f")) {
        ASSERT_EQ(entry.begin, at);
        const int64_t bytes = stored_kind(entry.kind).bytes * entry.type.elements();
        ASSERT_EQ(static_cast<uint64_t>(bytes), entry.end - entry.begin);
        at = entry.end;
      }
      ASSERT_EQ(at, 25u);
      ++accepted;
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(refused, 50'000);
}

}  // namespace
}  // namespace orrery
