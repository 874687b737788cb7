// SPDX-License-Identifier: Apache-2.0
#include "plan/time.h"

#include <fmt/format.h>

#include <algorithm>

namespace orrery {
namespace {

std::string duration(double seconds) {
  return seconds < 1 ? fmt::format("{:.4g} ms", seconds * 1e3) : fmt::format("{:.4g} s", seconds);
}

// The number of tokens in a batch: the elements of the first batch field that has an integer for
// each position of each sample.
int64_t tokens(const Program& p) {
  for (const Value& v : p.values()) {
    const bool whole = v.type.dtype == ORR_I32 || v.type.dtype == ORR_I64;
    if (v.role == Role::batch && whole && v.type.dims.size() == 2) return v.type.elements();
  }
  return 0;
}

}  // namespace

std::string step_text(const Program& logical, double step, const Machine& machine) {
  std::string rate =
      fmt::format("{:.4g} samples", static_cast<double>(logical.batch_size()) / step);
  if (int64_t n = tokens(logical))
    rate += fmt::format(" or {:.4g} tokens", static_cast<double>(n) / step);
  return fmt::format("  step    {}: {} a second on the machine {}\n", duration(step), rate,
                     machine.name == "assumed"
                         ? "assumed (one core a rank; --machine FILE gives another)"
                         : machine.name);
}

std::string figures_text(const Figures& figures, double seconds) {
  return fmt::format(
      "  mfu     {:.3g} %: {:.4g} model FLOP/s, of the products that one process computes\n"
      "  binds   {}\n",
      100 * figures.mfu, figures.model_flops / seconds, advice(figures));
}

std::string spent_text(const PlannedRanks& kind, const Mesh& mesh) {
  const Spent& spent = kind.spent;
  auto share = [&](double part) { return 100 * std::max(part, 0.0) / spent.step; };
  std::string text =
      fmt::format("  time    {:.1f} % compute, {:.1f} % exposed communication, {:.1f} % idle\n",
                  share(spent.compute), share(spent.exposed), share(spent.idle()));
  std::string waits;
  for (const TimePart& part : time_parts(kind, mesh)) {
    if (kind.compute.contains(part.what) || part.share < 5e-4) continue;
    waits += fmt::format("{}{:.1f} % {}{}", waits.empty() ? "  waits   " : ", ", 100 * part.share,
                         part.what, part.axis.empty() ? "" : " on " + part.axis);
  }
  return waits.empty() ? text : text + waits + "\n";
}

}  // namespace orrery
