// SPDX-License-Identifier: Apache-2.0
//
// Bad data: labels, indices and positions outside of what they point into.
#include "conformance/kernel/cases.h"
#include "conformance/kernel/compare.h"
#include "conformance/kernel_parts.h"

namespace orrery::judge {
using namespace kernel_suite;
namespace {

struct Pointer {
  const char* kind;
  size_t input;  // that points
  int weight;    // input whose zeros make it unread, -1: none
  bool row;      // whether the error names the row
  int64_t (*limit)(const Case&);
  int64_t below = -1;  // the largest that points in front
};

int64_t classes(const Case& c) { return c.in[c.kind == "cross_entropy" ? 0 : 1].dims[1]; }
int64_t table_rows(const Case& c) { return c.in[0].dims[0]; }
int64_t output_rows(const Case& c) { return c.attr("rows", 0); }
int64_t matrices(const Case& c) { return c.in[1].dims[0]; }
int64_t matrices_made(const Case& c) { return c.attr("matrices", 0); }
// The first position at which the piece does not fit.
int64_t slice_end(const Case& c) { return c.in[0].dims[1] - c.out[0].dims[1] + 1; }
int64_t update_end(const Case& c) { return c.in[0].dims[1] - c.in[1].dims[1] + 1; }

constexpr Pointer pointers[] = {{"cross_entropy", 1, 2, true, classes},
                                {"cross_entropy_grad", 2, 3, true, classes},
                                {"gather", 1, -1, true, table_rows},
                                {"scatter_add", 0, -1, true, output_rows},
                                {"slice_at", 1, -1, false, slice_end},
                                {"update_slice", 2, -1, false, update_end},
                                {"gather_matmul", 2, -1, true, matrices, -2},
                                {"scatter_matmul", 2, -1, true, matrices_made, -2}};

bool has_number(const std::string& text, int64_t n) {
  const std::string digits = std::to_string(n);
  for (size_t at = 0; (at = text.find(digits, at)) != std::string::npos; ++at) {
    const auto is_digit = [&](size_t i) {
      return i < text.size() && std::isdigit(static_cast<unsigned char>(text[i]));
    };
    if (!is_digit(at + digits.size()) && (at == 0 || !is_digit(at - 1))) return true;
  }
  return false;
}

// The last row that is read.
size_t row_of(const Pointer& p, const std::vector<Values>& inputs) {
  size_t row = inputs[p.input].size() - 1;
  while (p.weight >= 0 && row > 0 && inputs[static_cast<size_t>(p.weight)][row] == 0) --row;
  return row;
}

void judge_case(const Subject& subject, const Pointer& p, const Case& c) {
  const char* contract = "kernel.h: \"is an error that names the row and the value\"";
  const std::vector<Values> good = make_inputs(c, false, static_cast<uint32_t>(subject.seed));
  const size_t row = row_of(p, good);
  for (int64_t value : {p.limit(c), p.below}) {
    std::vector<Values> bad = good;
    bad[p.input][row] = static_cast<double>(value);
    const RunResult failed = run(subject.name(), c, bad);
    // Its own words: behind them the host names the plugin, whose path may have numbers.
    const std::string error = failed.error.substr(0, failed.error.rfind(" ["));
    const std::string what = fmt::format("{}: an error that names {}{}", c.name(), value,
                                         p.row ? fmt::format(" in row {}", row) : "");
    if (error.empty()) throw Fault(contract, what, "success");
    if (!has_number(error, std::abs(value)) ||
        (p.row && !has_number(error, static_cast<int64_t>(row))))
      throw Fault(contract, what, "'" + error + "'");
    if (failed.late && !error.starts_with(AbiOp::where))
      throw Fault("kernel.h: \"with the op's `where`\"",
                  fmt::format("{}: '{}: ...'", c.name(), AbiOp::where), "'" + error + "'");
    const RunResult after = run(subject.name(), c, good);
    if (const std::string again = trouble(after); !again.empty())
      throw Fault("device.h: event_sync, \"once\"",
                  c.name() + ": good data after bad, without error", again);
  }
}

std::function<void(const Subject&)> bad_data(const Pointer& p) {
  return [p](const Subject& subject) {
    require_device(subject);
    int judged = 0;
    for (const Case& c : all_cases()) {
      if (c.kind != p.kind || judged == 4 || elements(c.in[p.input]) == 0 ||
          !takes(kernel_of(subject), c))
        continue;
      judge_case(subject, p, c);
      ++judged;
    }
    if (judged == 0) throw Skip("it does not claim such cases");
  };
}

}  // namespace

std::vector<Test> bad_data_tests() {
  std::vector<Test> tests;
  for (const Pointer& p : pointers)
    tests.push_back({std::string("kernel.bad_data.") + p.kind, 60, bad_data(p)});
  return tests;
}

}  // namespace orrery::judge
