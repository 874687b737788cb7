// SPDX-License-Identifier: Apache-2.0
//
// Sums and the pointwise op that reads them as one launch on the fake: which are claimed, and that
// the bits are those of the ops apart, by the reference.
#include <gtest/gtest.h>

#include <random>

#include "fake_step.h"
#include "lower/abi_op.h"
#include "lower/kernels/joined_ops.h"
#include "lower/lower.h"
#include "program/build.h"
#include "program/machine.h"

namespace {

using namespace orrery;
using fake_step::Memory;
using fake_step::Stream;
using program_test::Machine;
using program_test::Named;
using program_test::Values;

struct Sums {
  Dims dims;                // of what is summed
  int32_t dim = 0;          // over which
  int32_t dtype = ORR_F32;  // of the terms
  bool terms = true;        // are made for the sum
  bool stored = false;      // something else reads the sum, too
  bool flat = false;        // the sum is read without the dim
  Dims more = {};           // a dim in front over which the sum is repeated, too
};

// Means and what is made of them. `told`: the results are outputs; else something reads them that
// is no pointwise op, as in a step.
Program program_of(const Sums& s, bool told) {
  Program p;
  const ValueId x = p.cast(p.input("x", {ORR_F32, s.dims}), s.dtype);
  const ValueId w = p.cast(p.input("w", {ORR_F32, s.dims}), s.dtype);
  const ValueId y = s.terms ? p.pointwise(ORR_FN_MUL, {x, w}) : p.input("terms", {s.dtype, s.dims});
  ValueId sum = build::reduce(p, "sum", y, {s.dim}, !s.flat);
  const auto give = [&](const std::string& name, ValueId v) {
    v = p.cast(v, ORR_F32);
    program_test::give(p, name, told ? v : p.add1("softmax", {v}));
  };
  if (s.stored) give("sum", sum);
  Dims rows = s.flat ? Dims{s.dims[0], s.dims.back()} : s.dims;
  rows.insert(rows.begin(), s.more.begin(), s.more.end());
  const ValueId z = p.cast(p.input("z", {ORR_F32, rows}), s.dtype);
  rows.back() = 1;
  ValueId found = p.pointwise(ORR_FN_SUB, {z, sum});
  if (s.dtype == ORR_F32) found = p.pointwise(ORR_FN_DIV, {found, p.input("n", {ORR_F32, rows})});
  give("found", found);
  give("square", p.pointwise(ORR_FN_MUL, {found, found}));
  return p;
}

LocalProgram lowered(const Program& p) {
  Mesh mesh;
  LocalProgram local = localize(p, {}, mesh, {0, Microbatches{}.total}, 0);
  write_in_known_ops(local, {"cuda"});
  fuse_ops(local, mesh, {"cuda"});
  return local;
}

Named random_inputs(const Program& p) {
  Named inputs;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (const Value& v : p.values())
    if (v.producer == kNone && is_real(v.type.dtype))
      for (int64_t n = v.type.elements(); n > 0; --n) inputs[v.name].push_back(normal(random));
  return inputs;
}

// A value of a launch, `shift` elements behind an aligned address.
struct Buffer {
  Buffer(const Type& type, uint64_t shift)
      : bytes(type.bytes()),
        offset(shift * uint64_t(orr_dtype_bytes(type.dtype))),
        host(ORR_TIER_PINNED, bytes + offset),
        device(ORR_TIER_DEVICE, bytes + offset) {}
  orr_buffer at() const { return {device.memory, offset, bytes}; }
  float* floats() const { return host.floats() + offset / sizeof(float); }

  uint64_t bytes, offset;
  Memory host, device;
};

// What a launch of the op makes.
std::vector<Values> run(const LocalProgram& local, const Op& op, const Named& inputs,
                        uint64_t shift) {
  const orr_kernel_api& api = Registry::get().kernel("cuda");
  const auto contiguous = [&](const std::vector<ValueId>& values) {
    std::vector<Strided> all;
    for (ValueId v : values) all.push_back(Strided::contiguous(local.program.type(v)));
    return all;
  };
  Launch launch;
  EXPECT_GT(
      score_as_it_is(KernelChoice({"cuda"}), op, contiguous(op.in), contiguous(op.out), launch), 0);
  const AbiOp abi(launch);
  std::vector<std::unique_ptr<Buffer>> in, out;
  const Stream stream;
  for (ValueId v : op.in) {
    const Value& value = local.program.value(v);
    in.push_back(std::make_unique<Buffer>(value.type, shift));
    const Values& given = inputs.at(value.name);
    std::copy(given.begin(), given.end(), in.back()->floats());
    stream.copy(in.back()->device, in.back()->host);
  }
  for (ValueId v : op.out) out.push_back(std::make_unique<Buffer>(local.program.type(v), shift));
  std::vector<orr_buffer> from, to;
  for (const auto& b : in) from.push_back(b->at());
  for (const auto& b : out) to.push_back(b->at());
  orr_kernel_size size{};
  orr_kernel* kernel = nullptr;
  check(api.measure(api.self, abi.get(), &size));
  EXPECT_EQ(size.workspace, 0u);
  check(api.prepare(api.self, abi.get(), &kernel));
  check(api.launch(kernel, stream.stream, from.data(), to.data(), nullptr));
  std::vector<Values> found;
  for (const auto& b : out) stream.copy(b->host, b->device);
  stream.finish();
  for (const auto& b : out) found.emplace_back(b->floats(), b->floats() + b->bytes / sizeof(float));
  api.release(api.self, kernel);
  return found;
}

// The op that has become of the sums and what reads them.
const Op* claimed(const LocalProgram& local) {
  for (const Op& op : local.program.ops())
    if (op.group && op.group->ops.back().kind == "pointwise") return &op;
  return nullptr;
}

void expect_reference(const Sums& s) {
  SCOPED_TRACE(to_string(s.dims) + " over " + std::to_string(s.dim) + " in " +
               std::to_string(s.dtype));
  fake_step::device();
  const Program told = program_of(s, true);
  const Named inputs = random_inputs(told),
              wanted = Machine(told, {"reference"}, {}, false).run(inputs);
  const LocalProgram local = lowered(program_of(s, false));
  const Op* op = claimed(local);
  ASSERT_NE(op, nullptr);
  for (uint64_t shift : {0, 1}) {
    std::vector<Values> found = run(local, *op, inputs, shift), all;
    for (const auto& [name, values] : wanted) all.push_back(values);
    std::sort(found.begin(), found.end()), std::sort(all.begin(), all.end());
    EXPECT_EQ(found, all);
  }
}

TEST(FakeSumNext, RowsOfTheWholeReadTheirSum) {
  for (int32_t dtype : {ORR_F32, ORR_BF16, ORR_F16})
    for (const Dims& dims : {Dims{2, 8}, {64, 5}, {65, 24}, {130, 520}, {2048, 12}})
      expect_reference({.dims = dims, .dtype = dtype});
}

TEST(FakeSumNext, OfEachSampleAlone) {
  for (int32_t dtype : {ORR_F32, ORR_BF16}) {
    expect_reference({.dims = {3, 70, 24}, .dim = 1, .dtype = dtype});
    expect_reference({.dims = {3, 70, 24}, .dim = 1, .dtype = dtype, .flat = true});
    expect_reference({.dims = {300, 9, 8}, .dim = 1, .dtype = dtype});
  }
}

TEST(FakeSumNext, OfWhatIsThere) {
  expect_reference({.dims = {65, 24}, .terms = false});
  expect_reference({.dims = {3, 70, 24}, .dim = 1, .terms = false});
}

TEST(FakeSumNext, TheSumIsStoredIfOthersReadIt) {
  for (bool flat : {true, false})
    for (bool terms : {true, false})
      expect_reference(
          {.dims = {3, 65, 24}, .dim = 1, .terms = terms, .stored = true, .flat = flat});
}

TEST(FakeSumNext, LongSumsAndOtherRepeatsAreLaunchesOfTheirOwn) {
  for (const Sums& s : {Sums{.dims = {2049, 12}}, Sums{.dims = {65, 1}},
                        Sums{.dims = {3, 70, 24}, .dim = 1, .flat = true, .more = {5}}})
    EXPECT_EQ(claimed(lowered(program_of(s, false))), nullptr) << to_string(s.dims);
}

}  // namespace
