// SPDX-License-Identifier: Apache-2.0
//
// The generated pointwise kernels through the real NVRTC: they compile without a warning for every
// architecture that the plugin is built for. Needs no GPU.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include <orrery/sdk/plugin.hpp>

#include "compiler.h"
#include "conformance/kernel/cases.h"
#include "device/fold.h"
#include "plugin/host.h"
#include "pointwise_source.h"
#include "shared/disk_cache.h"

namespace {

using kernel_suite::Case;

// x * x summed over its rows, and (x - sum) / n, where n is one number for each row.
void add_sum_next(int32_t dtype, bool stored, std::map<std::string, std::string>& all) {
  const orr_tensor rows = kernel_suite::tensor(dtype, {130, 24});
  Case terms, next;
  terms.kind = next.kind = "pointwise";
  terms.in = terms.out = next.out = {rows}, terms.stored = {1};
  terms.instrs = {{ORR_FN_INPUT, dtype, 0, 0, 0, 0, 0}, {ORR_FN_MUL, dtype, 0, 0, 0, 0, 0}};
  next.in = {rows, kernel_suite::strided(dtype, {130, 24}, {0, 1}),
             kernel_suite::strided(dtype, {130, 24}, {1, 0})};
  for (int i = 0; i < 3; ++i) next.instrs.push_back({ORR_FN_INPUT, dtype, i, 0, 0, 0, 0});
  next.instrs.push_back({ORR_FN_SUB, dtype, 0, 1, 0, 0, 0});
  next.instrs.push_back({ORR_FN_DIV, dtype, 3, 2, 0, 0, 0});
  next.stored = {4};
  const kernel_suite::AbiOp first(terms), second(next);
  const orr_cuda::Walk walk(first.op, 24), next_walk(second.op, 24);
  const orr_cuda::SumsNext what{&second.op, &next_walk, 1, stored};
  all.try_emplace(orr_cuda::sums_source(first.op, walk,
                                        {24, 1, dtype, orr_cuda::kFoldSum, 0, true, &what, true}),
                  std::string("sum_next_") + kernel_suite::dtype_name(dtype));
}

// The sources of the suite's cases; cases of one expression and layout class share one.
std::map<std::string, std::string> sources() {
  std::map<std::string, std::string> all;
  for (const Case& c : kernel_suite::pointwise_cases()) {
    if (kernel_suite::elements(c.out[0]) == 0) continue;
    const kernel_suite::AbiOp abi(c);
    const orr_cuda::Walk walk(abi.op);
    all.try_emplace(orr_cuda::pointwise_source(abi.op, walk), c.name());
    if (walk.is_flat())
      all.try_emplace(orr_cuda::pointwise_table_source(abi.op, walk), c.name() + ", table");
  }
  for (const Case& both : kernel_suite::pointwise_next_cases()) {
    const Case c = kernel_suite::first_of(both);
    const kernel_suite::AbiOp abi(c);
    const orr_tensor& y = c.out[0];
    if (both.attrs[0].text == "reduce" && kernel_suite::elements(y) > 0)
      for (bool together : {false, true})
        all.try_emplace(orr_cuda::sums_source(
                            abi.op, orr_cuda::Walk(abi.op, y.dims[y.rank - 1]),
                            {y.dims[y.rank - 1], 1, y.dtype, orr_cuda::kFoldSum, true, together}),
                        both.name());
  }
  for (int32_t dtype : kernel_suite::kReals)
    for (bool stored : {false, true}) add_sum_next(dtype, stored, all);
  return all;
}

constexpr std::array architectures = {80, 90};

class Generated : public ::testing::TestWithParam<int> {};

TEST_P(Generated, CompileToPtx) {
  const auto all = sources();
  ASSERT_GT(all.size(), 200u);
  size_t i = 0;
  for (const auto& [source, name] : all) {
    // A sample: training on the emulated GPU compiles others. The text is the same for all
    // architectures, so that one more can change only what is the compiler's own.
    if (i++ % (GetParam() == architectures.back() ? 2 : 16)) continue;
    SCOPED_TRACE(name);
    const auto [ptx, log] = orr_cuda::compile(source, GetParam(), true);
    EXPECT_EQ(log, "");
    EXPECT_NE(ptx.find(".target sm_" + std::to_string(GetParam())), std::string::npos);
    if (name.find("_bias") != std::string::npos) {
      EXPECT_EQ(ptx.find("fma.rn.f"), ptx.npos);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, Generated, ::testing::ValuesIn(architectures));

TEST(Compiler, TellsOfErrorsAndWarnings) {
  EXPECT_NE(orr_cuda::compile("__global__ void f() { int unused; }", 90, true).log, "");
  try {
    orr_cuda::compile("__global__ void f() { missing(); }", 90, true);
    FAIL() << "an error passed";
  } catch (const std::exception& e) {
    EXPECT_NE(std::string(e.what()).find("missing"), std::string::npos) << e.what();
  }
}

// What lies under the image's key is taken, so that nothing was compiled; a damaged file is not.
TEST(Compiler, ImagesOfEarlierRunsAreUsed) {
  char folder[] = "/tmp/images.XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  setenv("XDG_CACHE_HOME", folder, 1);
  orr::host = &orrery::host_table();
  const std::string source = "extern \"C\" __global__ void f(int* x) { *x = 1; }";
  const std::string image = orr_cuda::image_of(source, 90, true);
  const std::string key = orr_cuda::image_key(source, 90, true);
  const orr_kernels::DiskCache cache("cuda");
  EXPECT_EQ(cache.kept(key), image);
  cache.keep(key, "kept");
  EXPECT_EQ(orr_cuda::image_of(source, 90, true), "kept");
  EXPECT_NE(orr_cuda::image_of(source, 80, true), "kept");
  EXPECT_NE(orr_cuda::image_of(source + "\n", 90, true), "kept");
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder))
    if (file.is_regular_file()) std::ofstream(file.path(), std::ios::app) << "x";
  EXPECT_EQ(orr_cuda::image_of(source, 90, true), image);
  EXPECT_EQ(cache.kept(key), image);
  std::filesystem::remove_all(folder);
}

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (std::getenv("ORRERY_NVRTC_LIBRARY")) return RUN_ALL_TESTS();
  std::printf("skipped: the CUDA toolkit has no libnvrtc\n");
  return 77;
}
