// SPDX-License-Identifier: Apache-2.0
#include "lua/upvalues.h"

#include <gtest/gtest.h>

namespace orrery::lua {
namespace {

class UpvaluesTest : public testing::Test {
 protected:
  UpvaluesTest() { luaL_openlibs(L); }
  ~UpvaluesTest() override { lua_close(L); }

  // Leaves the functions that the chunk returns in `set` and `loss`.
  void run(const char* chunk) {
    ASSERT_EQ(luaL_loadbuffer(L, chunk, std::string(chunk).size(), "@test.lua"), LUA_OK);
    lua_call(L, 0, 2);
  }

  std::string change(Upvalues& upvalues, lua_Number value) {
    lua_pushvalue(L, -1);
    lua_pushnumber(L, value);
    lua_call(L, 1, 0);
    try {
      upvalues.check(L);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  lua_State* L = luaL_newstate();
};

TEST_F(UpvaluesTest, NoticesAChangeInACalledFunction) {
  run("local scale = 2\nlocal function helper() return scale end\n"
      "return function() return helper() end, function(x) scale = x end");
  {
    Upvalues upvalues;
    upvalues.watch(L, -2);
    upvalues.take(L);
    EXPECT_EQ(change(upvalues, 2), "");
    const std::string message = change(upvalues, 3);
    EXPECT_NE(message.find("'scale' of the function at test.lua:2 was 2"), std::string::npos)
        << message;
  }
}

TEST_F(UpvaluesTest, TablesMayChange) {
  run("local t = {1}\nreturn function() return t[1] end, function(x) t[1] = x end");
  {
    Upvalues upvalues;
    upvalues.watch(L, -2);
    upvalues.take(L);
    EXPECT_EQ(change(upvalues, 5), "");
  }
}

}  // namespace
}  // namespace orrery::lua
