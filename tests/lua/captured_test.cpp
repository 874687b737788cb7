// SPDX-License-Identifier: Apache-2.0
#include "lua/captured.h"

#include <gtest/gtest.h>

namespace orrery::lua {
namespace {

class CapturedTest : public testing::Test {
 protected:
  CapturedTest() { luaL_openlibs(L); }
  ~CapturedTest() override { lua_close(L); }

  // What a call of the second function that the chunk returns changes for the first.
  std::string changed(const std::string& chunk, lua_Number argument) {
    luaL_loadbuffer(L, chunk.data(), chunk.size(), "@test.lua");
    lua_call(L, 0, 2);
    Captured captured;
    EXPECT_TRUE(captured.watch(L, -2));
    captured.take(L);
    EXPECT_TRUE(captured.changes(L).empty());
    lua_pushnumber(L, argument);
    lua_call(L, 1, 0);
    std::string text;
    for (const auto& [name, change] : captured.changes(L)) text += name + " " + change;
    lua_pop(L, 1);
    return text;
  }

  lua_State* L = luaL_newstate();
};

TEST_F(CapturedTest, ANumberOfACalledFunction) {
  const std::string chunk =
      "local scale = 2\nlocal function helper() return scale end\n"
      "return function() return helper() end, function(x) scale = x end";
  EXPECT_EQ(changed(chunk, 2), "");
  EXPECT_EQ(changed(chunk, 3),
            "'scale' of the function at test.lua:2 was 2 when the step was "
            "traced and is 3 now");
}

TEST_F(CapturedTest, AFieldOfATable) {
  const std::string chunk =
      "local cfg = {a = {1, {k = 2}}, b = 'no'}\ncfg.own = cfg\n"
      "return function() return cfg end, function(x) cfg.a[2].k = x end";
  EXPECT_EQ(changed(chunk, 2), "");
  EXPECT_EQ(changed(chunk, 5),
            "'cfg.a[2].k' of the function at test.lua:3 was 2 when the step was "
            "traced and is 5 now");
}

TEST_F(CapturedTest, AFieldThatIsNew) {
  EXPECT_EQ(
      changed("local cfg = {}\nreturn function() return cfg end, function(x) cfg.k = x end", 5),
      "'cfg.k' of the function at test.lua:2 was nil when the step was traced and is 5 now");
}

TEST_F(CapturedTest, AFunctionThatIsAnother) {
  const std::string change = changed(
      "local c = {f = print}\nreturn function() return c end, function() c.f = type end", 0);
  EXPECT_NE(change.find("'c.f' of the function at test.lua:2 was a function"), std::string::npos);
}

TEST_F(CapturedTest, LargeTablesAreNotLookedAt) {
  EXPECT_EQ(changed("local t = {}\nfor i = 1, 1e4 do t[i] = i end\n"
                    "return function() return t end, function(x) t[1] = x end",
                    5),
            "");
}

}  // namespace
}  // namespace orrery::lua
