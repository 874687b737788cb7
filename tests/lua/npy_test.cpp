// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
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

}  // namespace
}  // namespace orrery::lua
