// SPDX-License-Identifier: Apache-2.0
//
// Kernel plugins under test: a case is an op with its shapes, how to fill its inputs, and what its
// outputs should be; `run` prepares and launches it on one plugin in guarded memory.
#pragma once

#include <orrery/kernel.h>
#include <orrery/ops.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace kernel_suite {

// The logical elements of a tensor, row-major. f64 holds every value of the cases exactly.
using Values = std::vector<double>;

struct Attr {
  std::string name;
  int32_t type;
  int64_t i = 0;
  double f = 0;
  std::string text = {};
  std::vector<int64_t> list = {};
};
inline Attr integer(std::string name, int64_t i) { return {std::move(name), ORR_ATTR_INT, i}; }
inline Attr real(std::string name, double f) { return {std::move(name), ORR_ATTR_REAL, 0, f}; }
inline Attr text(std::string name, std::string t) {
  return {std::move(name), ORR_ATTR_TEXT, 0, 0, std::move(t)};
}

inline Attr list(std::string name, std::vector<int64_t> l) {
  return {std::move(name), ORR_ATTR_INTS, 0, 0, {}, std::move(l)};
}

// How an input is filled. `kIntegers` are small integers, `kNormal` reals; in an exact run reals of
// every kind become small integers. `kBelow` are integers in [0, limit), `kBelowExtent` such as
// point into dim `dim` of the case's tensor number `tensor`, outputs counted behind inputs.
enum class FillKind { kNormal, kPositive, kIntegers, kBelow, kBelowExtent, kValues };
struct Fill {
  FillKind kind = FillKind::kNormal;
  int64_t limit = 0;
  Values values = {};
  size_t tensor = 0, dim = 0;
};
inline Fill normal() { return {}; }
inline Fill positive() { return {FillKind::kPositive}; }
inline Fill integers() { return {FillKind::kIntegers}; }
inline Fill below(int64_t limit) { return {FillKind::kBelow, limit}; }
inline Fill below_extent(size_t tensor, size_t dim) {
  return {FillKind::kBelowExtent, 0, {}, tensor, dim};
}
inline Fill values(Values v) { return {FillKind::kValues, 0, std::move(v)}; }

// A direction along which a part of the inputs gives a part of the outputs, bit for bit. One dim
// per tensor, or -1 where the tensor does not change. `prefix`: only parts that begin at 0.
struct Axis {
  std::vector<int> in, out;
  bool prefix = false;
};

struct Case {
  std::string kind;
  std::string note;  // makes the name unique
  std::vector<orr_tensor> in, out;
  std::vector<Attr> attrs = {};
  std::vector<orr_instr> instrs = {};
  std::vector<int32_t> stored = {};  // registers of a pointwise op's outputs
  std::vector<Fill> fills = {};
  // Changes filled inputs so that they fit together (an lse that belongs to its logits).
  std::function<void(const Case&, std::vector<Values>&)> derive = {};
  // What the outputs are, computed in f64 without regard to order or speed.
  std::function<std::vector<Values>(const Case&, const std::vector<Values>&)> oracle = {};
  bool exact = false;  // small integers in give integers out, without rounding before the store
  double depth = 1;    // length of the longest sum, for tolerances
  std::vector<Axis> axes = {};
  std::vector<int> leaf_in = {};  // dim that leaves cut, per input; empty: the op has no leaves

  std::string name() const;  // letters, digits and _
  int64_t attr(const std::string& name, int64_t fallback) const;
  double real_attr(const std::string& name, double fallback) const;
};

const char* dtype_name(int32_t dtype);
bool is_real(int32_t dtype);
orr_tensor tensor(int32_t dtype, std::vector<int64_t> dims);
orr_tensor strided(int32_t dtype, std::vector<int64_t> dims, std::vector<int64_t> strides);
int64_t elements(const orr_tensor& t);
// The value after it was stored as `dtype`.
double rounded(int32_t dtype, double value);

// Inputs for a case; equal seeds give equal inputs.
std::vector<Values> make_inputs(const Case& c, bool exact, uint32_t seed);

// The ABI's view of a case. REQUIRES: outlived by the case; stays where it is.
struct AbiOp {
  static constexpr const char* where = "a test";  // the op's
  explicit AbiOp(const Case& c);
  AbiOp(const AbiOp&) = delete;
  std::vector<orr_attr> attrs;
  orr_expr expr{};
  orr_op op{};
};

// What the plugin says to the case, as the core takes it.
orr_support ask(const orr_kernel_api& api, const Case& c);

struct RunOptions {
  int64_t misalign = 0;   // elements
  int32_t inplace = 0;    // as orr_support.inplace
  bool recorded = false;  // where device and kernel can: as a graph
};

struct RunResult {
  std::string unsupported;  // the plugin's reason, or ""
  std::string error;        // the launch's, or ""
  bool late = false;        // it came from event_sync
  std::string damage;       // what was written outside of the outputs, or ""
  orr_support support{};
  std::vector<Values> values;
  std::vector<std::vector<uint8_t>> bits;  // of the logical elements of each output
};
// On the device of the plugin's kernels.
RunResult run(const std::string& plugin, const Case& c, const std::vector<Values>& inputs,
              const RunOptions& options = {});

// Names of the kernel plugins that work on the device "host" here.
std::vector<std::string> host_plugins();

// The part [first, first + n) of a case along an axis, contiguous, and of its inputs or outputs.
Case part(const Case& c, const Axis& axis, int64_t n);
Values part(const orr_tensor& t, const Values& v, int dim, int64_t first, int64_t n);
std::vector<uint8_t> part(const orr_tensor& t, const std::vector<uint8_t>& bits, int dim,
                          int64_t first, int64_t n);

}  // namespace kernel_suite
