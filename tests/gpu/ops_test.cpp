// SPDX-License-Identifier: Apache-2.0
//
// The cuda ops, emulated, against `reference`; and what their bits must not depend on.
#include <gtest/gtest.h>

#include "conformance/kernel/cases.h"
#include "conformance/kernel/compare.h"
#include "direct.h"
#include "emulator/block.h"
#include "sampled.h"

namespace kernel_suite {
void PrintTo(const Case& c, std::ostream* out) { *out << c.name(); }
}  // namespace kernel_suite

namespace emulated {
namespace {

using namespace kernel_suite;

class Op : public ::testing::TestWithParam<Case> {};
class Order : public Op {};
class Rows : public Op {};

TEST_P(Op, AgreesWithReference) {
  const Case& c = GetParam();
  for (bool exact : {true, false}) {
    if (exact && !c.exact) continue;
    const std::vector<Values> inputs = make_inputs(c, exact, 2);
    const RunResult got = run(c, inputs), reference = kernel_suite::run("reference", c, inputs);
    ASSERT_EQ(got.unsupported, "");
    ASSERT_EQ(trouble(got), "");
    if (exact || has_reference_bits(c))
      EXPECT_EQ(difference(got.values, reference.values), "");
    else
      EXPECT_EQ(distance(c, got.values, reference.values), "");
  }
}

TEST_P(Order, OfThreadsAlignmentAndPlaceChangeNoBit) {
  const Case& c = GetParam();
  const std::vector<Values> inputs = make_inputs(c, false, 3);
  const RunResult whole = run(c, inputs);
  ASSERT_EQ(trouble(whole), "");
  EXPECT_EQ(run(c, inputs, {}, 11).bits, whole.bits) << "in another order";
  const RunResult shifted = run(c, inputs, {.misalign = 1}, 12);
  EXPECT_EQ(trouble(shifted), "");
  EXPECT_EQ(shifted.bits, whole.bits) << "shifted by one element";
  emulator::has_warpgroups = false;
  EXPECT_EQ(run(c, inputs).bits, whole.bits) << "by warps alone, as on sm_80";
  emulator::has_warpgroups = true;
  if (whole.support.inplace == 0) return;
  const RunResult inplace = run(c, inputs, {.inplace = whole.support.inplace}, 13);
  EXPECT_EQ(trouble(inplace), "");
  EXPECT_EQ(inplace.bits, whole.bits) << "in place of input " << whole.support.inplace - 1;
}

TEST_P(Rows, AloneAreRowsOfTheBatch) {
  const Case& c = GetParam();
  const std::vector<Values> inputs = make_inputs(c, false, 3);
  const RunResult whole = run(c, inputs);
  for (const Axis& axis : c.axes)
    for (int64_t n : {1, 3, 64}) {
      std::vector<Values> some;
      for (size_t i = 0; i < inputs.size(); ++i)
        some.push_back(part(c.in[i], inputs[i], axis.in[i], axis.prefix ? 0 : 256 - n, n));
      const RunResult r = run(part(c, axis, n), some, {}, 14);
      ASSERT_EQ(trouble(r), "");
      for (size_t o = 0; o < c.out.size(); ++o)
        EXPECT_EQ(r.bits[o],
                  part(c.out[o], whole.bits[o], axis.out[o], axis.prefix ? 0 : 256 - n, n))
            << "output " << o << ", " << n << " rows";
    }
}

template <class Wanted>
std::vector<Case> cases(Wanted wanted) {
  std::vector<Case> all = all_cases();
  std::erase_if(all, [=](const Case& c) {
    return c.kind == "matmul" || is_generated(c) || is_left_to_the_core(c) || !wanted(c);
  });
  return sampled(all);
}

bool any(const Case&) { return true; }
bool has_axis(const Case& c) { return !c.axes.empty(); }
// The code for f64 and f16 is that for f32 and bf16.
bool has_own_code(const Case& c) {
  const int32_t dtype = c.out[0].dtype;
  return dtype != ORR_F64 && dtype != ORR_F16;
}

std::string name(const ::testing::TestParamInfo<Case>& info) { return info.param.name(); }

INSTANTIATE_TEST_SUITE_P(Emulated, Op, ::testing::ValuesIn(cases(any)), name);
INSTANTIATE_TEST_SUITE_P(Emulated, Order, ::testing::ValuesIn(cases(has_own_code)), name);
INSTANTIATE_TEST_SUITE_P(Emulated, Rows, ::testing::ValuesIn(cases(has_axis)), name);

}  // namespace
}  // namespace emulated
