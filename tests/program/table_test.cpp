// SPDX-License-Identifier: Apache-2.0
//
// Prints the table op x (shape, gradient, second derivative, reference, cpu, sharding) and fails on
// every cell that is wrong and on every kind or function that has no row.
#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <set>

#include "base/error.h"
#include "program/op.h"
#include "table.h"

namespace program_test {
namespace {

using namespace orrery;

struct Column {
  const char* name;
  std::string (*check)(const Entry&);
  bool (*applies)(const Entry&);
};

bool always(const Entry&) { return true; }

const Column kColumns[] = {
    {"shape", check_shape, always},
    {"gradient", check_gradient, [](const Entry& e) { return e.gradient; }},
    {"second", check_second, [](const Entry& e) { return e.gradient; }},
    {"reference", check_reference, always},
    {"cpu", check_cpu, [](const Entry& e) { return e.cpu; }},
    {"sharding", check_sharding, [](const Entry& e) { return e.sharding; }},
};

std::string outcome(const Column& column, const Entry& e) {
  try {
    return column.check(e);
  } catch (const Error& error) {
    return error.what();
  }
}

// A cell that does not apply is checked as well: that the op really has none of it.
TEST(Table, EveryCellHolds) {
  std::printf("%-24s", "op");
  for (const Column& c : kColumns) std::printf("%-10s", c.name);
  std::printf("\n");
  std::vector<std::string> faults;
  for (const Entry& e : all_entries()) {
    std::printf("%-24s", e.name.c_str());
    for (const Column& c : kColumns) {
      std::string wrong = outcome(c, e);
      std::printf("%-10s", !wrong.empty() ? "WRONG" : c.applies(e) ? "ok" : "n.a.");
      if (!wrong.empty()) faults.push_back(e.name + ", " + c.name + ": " + wrong);
    }
    std::printf("\n");
  }
  for (const std::string& fault : faults) ADD_FAILURE() << fault;
}

// A key that is not seen may have a score whose weight would be infinite.
TEST(Table, HiddenScoresMayBeLarge) {
  int tried = 0;
  for (Entry e : all_entries()) {
    if (e.name != "attention causal") continue;
    for (In& in : {std::ref(e.in[0]), std::ref(e.in[1])}) in.lo = -60, in.hi = 60;
    EXPECT_EQ(check_second(e), "");
    ++tried;
  }
  EXPECT_EQ(tried, 1);
}

// Those that mean nothing without a batch are in whole_batch_test.cpp.
TEST(Table, EveryKindHasARow) {
  std::set<std::string> kinds = {"batch_gather", "batch_slice", "microbatch_sum", "sample_index"};
  for (const Entry& e : all_entries()) kinds.insert(e.kind);
  for (const OpDef* def : all_op_defs())
    EXPECT_TRUE(names_axis(def->kind) || kinds.count(def->kind)) << def->kind;
}

TEST(Table, EveryScalarFunctionHasARow) {
  std::set<int32_t> functions;
  for (const Entry& e : all_entries()) functions.insert(e.fn);
  int known = 0;
  for (int32_t fn = 0; fn < 256; ++fn) {
    try {
      scalar_fn(fn);
    } catch (const Error&) {
      continue;
    }
    ++known;
    EXPECT_TRUE(functions.count(fn)) << scalar_fn(fn).name;
  }
  EXPECT_GE(known, 42);
}

// An op without a bad example must be one that only gradients and lowering make.
TEST(Table, ScriptsCanMakeNoOpWithoutABadExample) {
  const std::set<std::string> internal = {
      "total",          "batch_sum",          "stop_gradient", "user_gradient",
      "softmax_grad",   "layernorm_grad",     "rmsnorm_grad",  "norm_param_grad",
      "attention_grad", "cross_entropy_grad", "unshard"};
  for (const Entry& e : all_entries()) {
    if (e.kind == "pointwise") continue;
    EXPECT_TRUE(!e.bad.empty() || internal.count(e.kind)) << e.name;
  }
}

}  // namespace

std::vector<Entry> all_entries() {
  std::vector<Entry> rows = kind_entries(), functions = function_entries();
  rows.insert(rows.end(), functions.begin(), functions.end());
  return rows;
}

}  // namespace program_test
