// SPDX-License-Identifier: Apache-2.0
//
// What bits must not depend on: other rows of the call, threads, alignment, the output's buffer.
#include "compare.h"
#include "run/thread_pool.h"

namespace kernel_suite {
namespace {

bool any(const Case&) { return true; }
bool has_axis(const Case& c) { return !c.axes.empty(); }

class Bits : public ::testing::TestWithParam<Param> {
 protected:
  void SetUp() override {
    orrery::ThreadPool::get().configure(2);
    inputs_ = make_inputs(c_, false, 3);
    whole_ = run(plugin_, c_, inputs_);
  }
  bool unsupported() const { return !whole_.unsupported.empty(); }

  const std::string& plugin_ = GetParam().plugin;
  const Case& c_ = GetParam().c;
  std::vector<Values> inputs_;
  RunResult whole_;
};

TEST_P(Bits, IgnoreThreadsAlignmentAndPlace) {
  if (unsupported()) return;
  ASSERT_TRUE(clean(whole_));
  orrery::ThreadPool::get().configure(1);
  EXPECT_EQ(run(plugin_, c_, inputs_).bits, whole_.bits) << "on one thread";
  orrery::ThreadPool::get().configure(2);
  RunResult shifted = run(plugin_, c_, inputs_, {.misalign = 1});
  ASSERT_TRUE(clean(shifted));
  EXPECT_EQ(shifted.bits, whole_.bits) << "shifted by one element";
  if (whole_.support.inplace == 0) return;
  RunResult inplace = run(plugin_, c_, inputs_, {.inplace = whole_.support.inplace});
  ASSERT_TRUE(clean(inplace));
  EXPECT_EQ(inplace.bits, whole_.bits) << "in place of input " << whole_.support.inplace - 1;
}

INSTANTIATE_TEST_SUITE_P(All, Bits, ::testing::ValuesIn(params(host_plugins(), any)), param_name);

class Rows : public Bits {
 protected:
  void check_part(const Axis& axis, int64_t first, int64_t n) {
    std::vector<Values> some;
    for (size_t i = 0; i < inputs_.size(); ++i)
      some.push_back(part(c_.in[i], inputs_[i], axis.in[i], first, n));
    RunResult r = run(plugin_, part(c_, axis, n), some);
    ASSERT_EQ(r.unsupported, "") << n << " rows";
    ASSERT_TRUE(clean(r));
    for (size_t o = 0; o < c_.out.size(); ++o)
      EXPECT_EQ(r.bits[o], part(c_.out[o], whole_.bits[o], axis.out[o], first, n))
          << "output " << o << ", rows " << first << " .. " << first + n;
  }
};

TEST_P(Rows, AloneAreRowsOfTheBatch) {
  if (unsupported()) return;
  for (const Axis& axis : c_.axes)
    for (int64_t n : {1, 2, 3, 64, 255}) {
      check_part(axis, 0, n);
      if (!axis.prefix) check_part(axis, 256 - n, n);
    }
}

INSTANTIATE_TEST_SUITE_P(All, Rows, ::testing::ValuesIn(params(host_plugins(), has_axis)),
                         param_name);

}  // namespace
}  // namespace kernel_suite
