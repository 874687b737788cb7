// SPDX-License-Identifier: Apache-2.0
//
// matmul_pointwise on the fake cuBLASLt: which epilogues are asked for, exactly and fast, and what
// they give. That exact ones have the bits of the two ops the judge checks for every case.
#include <gtest/gtest.h>

#include <map>

#include "conformance/kernel/cases.h"
#include "conformance/kernel/compare.h"
#include "fake_step.h"

namespace {

using namespace kernel_suite;
using fake_step::calls;

const std::vector<const char*> epilogues = {"added", "bias", "gelu", "kept", "slope"};

// How often each epilogue was asked for by fn.
template <class Fn>
std::string asked(Fn&& fn) {
  std::map<std::string, unsigned long long> before;
  const auto count = [](const char* name) {
    return calls({(std::string("epilogue ") + name).c_str()});
  };
  for (const char* name : epilogues) before[name] = count(name);
  fn();
  std::string found;
  for (const char* name : epilogues)
    if (count(name) > before[name]) found += std::string(found.empty() ? "" : " ") + name;
  return found;
}

// [1, 24, 32] x [1, 32, 40].
const char* const even = "1x24x40x32nn_";

Case with(const std::string& what, int32_t dtype, bool fast) {
  for (Case& c : matmul_pointwise_cases())
    if (c.in[0].dtype == dtype && c.out[0].dtype == dtype && c.note == what) {
      if (fast) c.attrs.push_back(text("numerics", "fast"));
      return c;
    }
  throw std::runtime_error("no such case");
}

std::string asked_for(const std::string& what, int32_t dtype, bool fast,
                      const std::string& product = even) {
  const Case c = with(product + what, dtype, fast);
  const auto inputs = make_inputs(c, false, 7);
  RunResult r;
  const std::string found = asked([&] { r = run("cuda", c, inputs); });
  if (!r.unsupported.empty()) return "refused";
  EXPECT_EQ(trouble(r), "");
  Case near = c;
  if (dtype == ORR_F32 && fast) near.depth = 1e4;  // TF32
  EXPECT_EQ(distance(near, r.values, c.oracle(c, inputs)), "") << c.name();
  return found;
}

TEST(Epilogues, ExactOnesRoundAsTwoOps) {
  EXPECT_EQ(asked_for("bias", ORR_F32, false), "bias");
  EXPECT_EQ(asked_for("added", ORR_F32, false), "added");
  for (const char* what : {"residue", "gelu", "slope", "kept", "scaled"})
    EXPECT_EQ(asked_for(what, ORR_F32, false), "refused") << what;
  for (const char* what : {"bias", "added", "gelu", "slope"})
    for (int32_t dtype : {ORR_BF16, ORR_F16, ORR_F64})
      EXPECT_EQ(asked_for(what, dtype, false), "refused") << what;
}

TEST(Epilogues, FastOnesTakeGeluAndItsSlope) {
  for (int32_t dtype : {ORR_F32, ORR_BF16, ORR_F16}) {
    EXPECT_EQ(asked_for("bias", dtype, true), "bias");
    EXPECT_EQ(asked_for("added", dtype, true), "added");
    EXPECT_EQ(asked_for("gelu", dtype, true), "bias gelu kept");
    EXPECT_EQ(asked_for("slope", dtype, true), "slope");
    EXPECT_EQ(asked_for("residue", dtype, true), "added bias");
    EXPECT_EQ(asked_for("scaled", dtype, true), "refused");
  }
}

// The launch then does the two ops.
TEST(Epilogues, ThatTheLibraryHasNotAreDoneApart) {
  for (bool fast : {false, true})
    EXPECT_EQ(asked_for("bias", ORR_F32, fast, "1x37x45x70nt_"), "") << fast;
}

}  // namespace
