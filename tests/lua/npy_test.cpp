// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "base/error.h"
#include "lua/host_tensor.h"
#include "program/elements.h"

namespace orrery::lua {
namespace {

std::string temporary() {
  return (std::filesystem::temp_directory_path() / "orrery_test.npy").string();
}

TEST(Npy, ReadsBackWhatItWrote) {
  for (int32_t dtype : {ORR_F32, ORR_F64, ORR_F16, ORR_I32, ORR_I64, ORR_U8, ORR_BOOL}) {
    HostTensor x = HostTensor::make({dtype, {2, 3}});
    for (int i = 0; i < 6; ++i) {
      write_element(dtype, x.data<std::byte>() + i * orr_dtype_bytes(dtype), i % 2);
    }
    save_npy(temporary(), x);
    const HostTensor y = load_npy(temporary());
    EXPECT_EQ(y.type, x.type);
    EXPECT_EQ(*y.bytes, *x.bytes);
  }
}

TEST(Npy, DataBeginsAtAMultipleOf64) {
  save_npy(temporary(), HostTensor::make({ORR_F32, {5}}));
  EXPECT_EQ((std::filesystem::file_size(temporary()) - 20) % 64, 0u);
}

std::string refusal(const std::string& bytes) {
  std::ofstream(temporary(), std::ios::binary) << bytes;
  try {
    load_npy(temporary());
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Npy, NamesWhatIsWrong) {
  EXPECT_NE(refusal("hello, world").find("not a .npy file"), std::string::npos);
  save_npy(temporary(), HostTensor::make({ORR_F32, {100}}));
  std::ifstream file(temporary(), std::ios::binary);
  std::string bytes(200, ' ');
  file.read(bytes.data(), 200);
  EXPECT_NE(refusal(bytes).find("72 of 400 data bytes"), std::string::npos) << refusal(bytes);
}

// A header and 16 bytes of data.
std::string array(const std::string& shape, char version = 1) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }";
  header.resize(117, ' ');
  header += '\n';
  const std::string size = {static_cast<char>(header.size()), 0};
  return std::string("\x93NUMPY") + version + '\0' + size + header + std::string(16, 'x');
}

TEST(Npy, RefusesShapesThatNoMemoryHolds) {
  for (const char* shape :
       {"(2305843009213693952, 8)", "(4294967296, 4294967296, 4)", "(99999999999999999999,)",
        "(-4, -1)", "(4, x)", "(4", "4,", "(1,1,1,1,1,1,1,1,1)", "(4000000000,)", "(5,)"})
    EXPECT_NE(refusal(array(shape)), "") << shape;
  EXPECT_NE(refusal(array("(2305843009213693952, 8)")).find("overflows 64 bits"),
            std::string::npos);
  EXPECT_NE(refusal(array("(4,)", 9)).find("version 9 of .npy is not known"), std::string::npos);
  for (const char* shape : {"(4,)", "(2, 2)", "()", "(0, 5)", "(0,)", "(2,2,1)"})
    EXPECT_EQ(refusal(array(shape)), "") << shape;
}

TEST(Npy, DoesNotWaitForAPipe) {
  std::filesystem::remove(temporary());
  ASSERT_EQ(::mkfifo(temporary().c_str(), 0600), 0);
  try {
    load_npy(temporary());
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("is not a regular file"), std::string::npos) << e.what();
  }
  std::filesystem::remove(temporary());
}

// Whatever a file holds is read or refused by an Error that names it; a fault, or memory out of
// proportion, ends the test. The seed is the same every time.
TEST(Npy, MutationsAreReadOrRefused) {
  std::mt19937 random(5);
  const std::string pieces[] = {"'shape': (",
                                ")",
                                "(",
                                "-",
                                "9223372036854775807",
                                ",",
                                "'",
                                "<f8",
                                std::string(3, '\0'),
                                "\xff\xff\xff\xff"};
  int refused = 0;
  for (int round = 0; round < 1000; ++round) {
    std::string bytes = array(round % 2 ? "(2, 2)" : "(4,)", round % 5 ? 1 : 2);
    for (unsigned edits = random() % 4 + 1; edits > 0; --edits) {
      const size_t at = random() % bytes.size();
      const std::string& piece = pieces[random() % std::size(pieces)];
      switch (random() % 4) {
        case 0: bytes[at] = static_cast<char>(random()); break;
        case 1: bytes.erase(at, random() % 9); break;
        case 2: bytes.insert(at, piece); break;
        default: bytes.replace(at, std::min(piece.size(), bytes.size() - at), piece);
      }
      if (bytes.empty()) bytes = "x";
    }
    const std::string why = refusal(bytes);
    refused += !why.empty();
    EXPECT_TRUE(why.empty() || why.starts_with(temporary())) << why;
  }
  EXPECT_GT(refused, 100);
  EXPECT_LT(refused, 1000);
}

}  // namespace
}  // namespace orrery::lua
