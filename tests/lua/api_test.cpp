// SPDX-License-Identifier: Apache-2.0
#include "lua/api.h"

#include <gtest/gtest.h>

namespace orrery::lua {
namespace {

int nothing(lua_State*) { return 0; }

TEST(Api, AMethodIsReadFromItsDeclaration) {
  const Api row(
      "Tensor:cut(dim: integer, to?: any, by: number = 2, options?) -> Tensor; Cuts; so. "
      "@param to; the end @option keep: boolean = false; all; of it @option most: integer",
      nothing);
  EXPECT_EQ(row.kind, Api::method);
  EXPECT_EQ(row.owner + "|" + row.name + "|" + row.returns + "|" + row.doc,
            "Tensor|cut|orrery.Tensor|Cuts; so.");
  std::string args;
  for (const auto* list : {&row.args, &row.options})
    for (const Arg& arg : *list)
      args += fmt::format("{}:{}={}({}) ", arg.name, arg.type->name, arg.fallback.value_or("-"),
                          arg.doc);
  EXPECT_EQ(args,
            "self:Tensor=-() dim:integer=-() to:any=nil(the end) by:number=2() "
            "options:options=nil() keep:boolean=false(all; of it) most:integer=-() ");
}

TEST(Api, FunctionsFieldsAndFurtherValues) {
  const Api call("orrery.all(...) -> integer, string; All.", nothing);
  EXPECT_EQ(call.kind, Api::function);
  EXPECT_EQ(call.returns, "integer, string");
  ASSERT_EQ(call.args.size(), 1u);
  EXPECT_TRUE(call.args[0].is("rest"));
  const Api field("Tensor.shape: integer[]", nothing);
  EXPECT_EQ(field.kind, Api::field);
  EXPECT_EQ(field.owner + "|" + field.name + "|" + field.returns, "Tensor|shape|integer[]");
}

TEST(Api, UnknownTypesAndArgumentsAreDefects) {
  EXPECT_ANY_THROW(Api("orrery.f(x: integr); F.", nothing));
  EXPECT_ANY_THROW(Api("orrery.f(x: integer); F. @param y; what", nothing));
}

}  // namespace
}  // namespace orrery::lua
