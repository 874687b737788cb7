// SPDX-License-Identifier: Apache-2.0
//
// Runs the Lua files beside it. specs/*.lua assert for themselves and end with 0. errors/*.lua end
// with comments that say what must happen:
//   --! words      the script's arguments
//   --= 2          the exit code (1 if left out)
//   --> message    the whole of stderr, after "error: "; a line for each of its lines
#include "lua/script.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace fs = std::filesystem;

namespace orrery {
namespace {

std::vector<std::string> scripts_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(fs::path(ORRERY_TEST_DIR) / folder)) {
    if (entry.path().extension() == ".lua") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string read(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

struct Expected {
  std::vector<std::string> args;
  int code = 1;
  std::string message;
};

Expected expectation(const fs::path& path) {
  Expected expected;
  std::istringstream lines(read(path));
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("--! ", 0) == 0) {
      std::istringstream words(line.substr(4));
      for (std::string word; words >> word;) expected.args.push_back(word);
    }
    if (line.rfind("--= ", 0) == 0) expected.code = std::stoi(line.substr(4));
    if (line.rfind("--> ", 0) == 0)
      expected.message += (expected.message.empty() ? "" : "\n") + line.substr(4);
  }
  return expected;
}

class Scripts : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { before_ = fs::current_path(); }
  void TearDown() override { fs::current_path(before_); }

 private:
  fs::path before_;
};

class Specs : public Scripts {};
class Errors : public Scripts {};

std::string name_of(const testing::TestParamInfo<std::string>& info) { return info.param; }

TEST_P(Specs, EndsWithoutAnError) {
  fs::current_path(fs::path(ORRERY_TEST_DIR) / "specs");
  testing::internal::CaptureStderr();
  const int code = run_script(GetParam() + ".lua", {});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(code, 0);
}

TEST_P(Errors, SaysWhatTheScriptExpects) {
  fs::current_path(fs::path(ORRERY_TEST_DIR) / "errors");
  const Expected expected = expectation(GetParam() + ".lua");
  ASSERT_NE(expected.message, "");
  testing::internal::CaptureStderr();
  const int code = run_script(GetParam() + ".lua", expected.args);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "error: " + expected.message + "\n");
  EXPECT_EQ(code, expected.code);
}

INSTANTIATE_TEST_SUITE_P(Lua, Specs, testing::ValuesIn(scripts_in("specs")), name_of);
INSTANTIATE_TEST_SUITE_P(Lua, Errors, testing::ValuesIn(scripts_in("errors")), name_of);

TEST(Script, MissingFileIsAUsageError) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_script("nosuch.lua", {}), 2);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "error: nosuch.lua: there is no such script\n");
}

TEST(Script, BytecodeIsRefused) {
  const fs::path path = fs::temp_directory_path() / "orrery_bytecode.lua";
  std::ofstream(path) << "\x1bLua";
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_script(path.string(), {}), 1);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("binary chunk"), std::string::npos);
  fs::remove(path);
}

// A folder of modules that is gone at the end.
struct ModuleFolder {
  explicit ModuleFolder(const std::string& name) : path(fs::temp_directory_path() / name) {
    fs::remove_all(path);
    fs::create_directories(path);
  }
  ~ModuleFolder() { fs::remove_all(path); }
  void add(const std::string& file, const std::string& text) const {
    fs::create_directories((path / file).parent_path());
    std::ofstream(path / file) << text;
  }
  fs::path path;
};

TEST(Require, LooksIntoTheDirectoriesOfOrreryLuaPathInTheirOrder) {
  const ModuleFolder script("orrery_script"), first("orrery_first"), second("orrery_second");
  script.add("own.lua", "return 'script'");
  script.add(
      "main.lua",
      "for word, want in pairs {own = 'script', both = 'first', ['deep.one'] = 'second'} do\n"
      "  assert(require(word) == want, word)\nend\nrequire 'nowhere'");
  first.add("own.lua", "return 'first'");
  first.add("both.lua", "return 'first'");
  second.add("both.lua", "return 'second'");
  second.add("deep/one/init.lua", "return 'second'");
  setenv("ORRERY_LUA_PATH", (first.path.string() + ":" + second.path.string()).c_str(), 1);
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_script((script.path / "main.lua").string(), {}), 1);
  unsetenv("ORRERY_LUA_PATH");
  const std::string error = testing::internal::GetCapturedStderr();
  EXPECT_NE(error.find("main.lua:4: require: there is no module 'nowhere'; tried "),
            std::string::npos)
      << error;
  EXPECT_NE(error.find((second.path / "nowhere/init.lua").string()), std::string::npos) << error;
}

TEST(Stubs, TheCommittedOnesAreUpToDate) {
  const fs::path library = lua_library(), made = fs::temp_directory_path() / "orrery_stubs";
  run_tool("cli.stubs", {{"directory", made.string()}});
  EXPECT_TRUE(read(library / "meta/orrery.lua") == read(made / "orrery.lua"))
      << "run: build/orrery stubs scripts/meta";
  for (const std::string page : {"api.md", "from-pytorch.md"})
    EXPECT_TRUE(read(library.parent_path() / "docs" / page) == read(made / page))
        << "run: build/orrery stubs scripts/meta && mv scripts/meta/*.md docs";
  fs::remove_all(made);
}

}  // namespace
}  // namespace orrery
