// SPDX-License-Identifier: Apache-2.0
//
// A private directory with copies of the test plugins that a test may spoil.
#pragma once

#include <gtest/gtest.h>
#include <orrery/plugin.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/error.h"

namespace orrery {

class PluginDirectory : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string made = (std::filesystem::temp_directory_path() / "orrery-plugin-XXXXXX").string();
    ASSERT_NE(mkdtemp(made.data()), nullptr);
    dir_ = made;
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  // A copy of the test plugin `object` under the name `name`.
  std::filesystem::path copy(const std::string& object, const std::string& name) const {
    std::filesystem::copy_file(std::filesystem::path(TEST_PLUGINS) / object, dir_ / name);
    return dir_ / name;
  }

  static void overwrite(const std::filesystem::path& file, long offset, const std::string& bytes) {
    std::fstream out(file, std::ios::in | std::ios::out | std::ios::binary);
    out.seekp(offset);
    out.write(bytes.data(), std::streamsize(bytes.size()));
    ASSERT_TRUE(out.good());
  }

  static std::string contents(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // Where the descriptor lies in the file: the magic occurs once.
  static long descriptor_at(const std::filesystem::path& file) {
    const uint64_t magic = ORR_PLUGIN_MAGIC;
    return long(
        contents(file).find(std::string(reinterpret_cast<const char*>(&magic), sizeof magic)));
  }

  // The text of the Error that `body` throws, with its code checked.
  template <class Body>
  static std::string error_of(int code, Body&& body) {
    try {
      body();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), code) << e.what();
      return e.what();
    }
    ADD_FAILURE() << "nothing was thrown";
    return "";
  }

  std::filesystem::path dir_;
};

}  // namespace orrery
