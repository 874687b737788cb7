// SPDX-License-Identifier: Apache-2.0
#include "run/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "lower/kernel_choice.h"
#include "program/op_group.h"
#include "run/runtime.h"

namespace orrery {
namespace {

// "[1,256,768]"; a ' behind it marks a transposed matrix.
std::string shape(const orr_tensor& t) {
  std::string text = to_string(Dims(t.dims, t.dims + t.rank));
  bool transposed = t.rank >= 2 && t.strides[t.rank - 2] == 1 && t.strides[t.rank - 1] != 1;
  return transposed ? text + "'" : text;
}

// The op with its shapes, and its dtype if that is not f32.
std::string label(const Launch& launch) {
  std::string text = shown_kind(launch.op);
  const int32_t dtype = (launch.in.empty() ? launch.out : launch.in)[0].dtype;
  if (dtype != ORR_F32) text += " " + std::string(dtype_name(dtype));
  if (launch.op.kind == "pointwise")
    return fmt::format("{} {} {} in, {} out, {} instructions", text, shape(launch.out[0]),
                       launch.in.size(), launch.out.size(), launch.op.expr.instrs.size());
  for (const orr_tensor& x : launch.in) text += " " + shape(x);
  return text;
}

std::string line(const std::string& name, const Profile::Row& row, double whole) {
  const auto rate = [&](double what) {
    return what > 0 ? fmt::format("{:.1f}", what / row.seconds / 1e9) : "";
  };
  return fmt::format("{:9.2f} {:5.1f} {:7} {:9.2f} {:>8} {:>8}  {}\n", row.seconds * 1e3,
                     row.seconds / whole * 100, row.calls,
                     row.seconds * 1e6 / static_cast<double>(row.calls), rate(row.cost.flops),
                     rate(row.cost.bytes), name);
}

}  // namespace

Profile& Profile::get() {
  static Profile profile;
  return profile;
}

// The row is named by the op's label, the kernel plugin that computes it, and in which way: its
// numerics id says which of its kernels ran.
Profile::Row& Profile::row(const Launch& launch) {
  const std::vector<std::string>& kernels = Runtime::get().kernels();
  return rows_[fmt::format("{}  by {} ({}, {})", label(launch),
                           kernels[static_cast<size_t>(launch.kernels)],
                           KernelChoice(kernels).best(launch).score, launch.numerics)];
}

std::string Profile::text() const {
  std::string text;
  for (const std::string& sentence : notes_) text += "profile: " + sentence + "\n";
  for (auto& [what, row] : once_)
    text += fmt::format("profile: {:9.2f} ms once: {}\n", row.seconds * 1e3, what);
  if (!programs_.calls)
    return text + "profile: no program ran twice, and first runs are not counted\n";
  std::vector<std::pair<std::string, Row>> rows;
  Row rest = programs_;
  rest.cost = {};
  for (auto& [name, row] : rows_) {
    rest.seconds -= row.seconds;
    if (row.calls) rows.emplace_back(name, row);
  }
  rows.emplace_back("between launches", rest);
  std::sort(rows.begin(), rows.end(),
            [](auto& a, auto& b) { return a.second.seconds > b.second.seconds; });
  text += fmt::format("profile: {} runs, {:.2f} ms each\n", programs_.calls,
                      programs_.seconds * 1e3 / static_cast<double>(programs_.calls));
  text += "       ms     %   calls   us/call  GFLOP/s     GB/s  op\n";
  for (auto& [name, row] : rows) text += line(name, row, programs_.seconds);
  return text;
}

}  // namespace orrery
