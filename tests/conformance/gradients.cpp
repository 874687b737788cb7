// SPDX-License-Identifier: Apache-2.0
//
// Gradient ops by central differences of the forward op's oracle, in f64: no formula of a gradient
// is trusted.
#include <cmath>

#include "conformance/kernel/cases.h"
#include "conformance/kernel/compare.h"
#include "conformance/kernel_parts.h"

namespace orrery::judge {
using namespace kernel_suite;
namespace {

// Where an input of a gradient op comes from: the gradient of the forward op's first output, one of
// its inputs, one of its outputs.
struct Source {
  enum { kGradient, kInput, kOutput } from;
  size_t at = 0;
};
constexpr auto dy = Source{Source::kGradient};
constexpr Source in(size_t at) { return {Source::kInput, at}; }
constexpr Source out(size_t at) { return {Source::kOutput, at}; }

struct Gradient {
  const char *kind, *forward;
  std::vector<Source> inputs;
  std::vector<size_t> of;  // the forward input that each output is the gradient of
  std::vector<Attr> attrs = {};
  size_t forward_inputs = 0;  // of the forward cases that it belongs to; 0: any number
};

const std::vector<Gradient>& gradients() {
  static const std::vector<Gradient> all = {
      {"softmax_grad", "softmax", {dy, out(0)}, {0}},
      {"layernorm_grad", "layernorm", {dy, in(0), in(1), out(1), out(2)}, {0}},
      {"rmsnorm_grad", "rmsnorm", {dy, in(0), in(1), out(1)}, {0}},
      {"norm_param_grad", "layernorm", {dy, in(0), out(1), out(2)}, {1, 2}},
      {"norm_param_grad", "rmsnorm", {dy, in(0), out(1)}, {1}, {integer("rms", 1)}},
      {"attention_grad", "attention", {dy, in(0), in(1), in(2), out(0), out(1)}, {0, 1, 2}, {}, 3},
      {"attention_grad",
       "attention",
       {dy, in(0), in(1), in(2), out(0), out(1), in(3), in(4), in(5)},
       {0, 1, 2},
       {},
       6},
      {"cross_entropy_grad", "cross_entropy", {dy, in(0), in(1), in(2), out(1)}, {0}}};
  return all;
}

Case gradient_case(const Gradient& g, const Case& f) {
  Case c;
  c.kind = g.kind;
  c.note = "of_" + f.note;
  for (const Source& s : g.inputs)
    c.in.push_back(s.from == Source::kInput ? f.in[s.at] : f.out[s.at]);
  for (size_t at : g.of) c.out.push_back(f.in[at]);
  c.attrs = g.attrs;
  if (f.kind == "attention") c.attrs = f.attrs;
  return c;
}

double weighted(const Case& f, const std::vector<Values>& x, const Values& weights) {
  const Values y = f.oracle(f, x)[0];
  double sum = 0;
  for (size_t i = 0; i < y.size(); ++i) sum += y[i] * weights[i];
  return sum;
}

// d weighted / d x[at].
Values differences(const Case& f, std::vector<Values> x, size_t at, const Values& weights) {
  constexpr double h = 1e-5;
  Values slopes;
  for (double& element : x[at]) {
    const double kept = element;
    element = kept + h;
    const double above = weighted(f, x, weights);
    element = kept - h;
    slopes.push_back((above - weighted(f, x, weights)) / (2 * h));
    element = kept;
  }
  return slopes;
}

void expect_slopes(const Case& c, size_t o, const Values& got, const Values& want) {
  double size = 0;
  for (double v : want) size = std::max(size, std::fabs(v));
  const double allowed = (c.out[o].dtype == ORR_F64 ? 1e-6 : 1e-3) * (size + 0.01);
  for (size_t i = 0; i < want.size(); ++i)
    if (!(std::fabs(got[i] - want[i]) <= allowed))
      throw Fault("ops.h: " + c.kind,
                  fmt::format("{}: the slope of its forward op, {:.6g}", c.name(), want[i]),
                  fmt::format("{:.6g} in element {} of output {}", got[i], i, o));
}

bool small(const Case& f) {
  int64_t n = elements(f.out[0]);
  for (const orr_tensor& t : f.in) n += elements(t);
  return n > 0 && n < 400 && (f.in[0].dtype == ORR_F64 || f.in[0].dtype == ORR_F32);
}

void compare_slopes(const Subject& subject, const Gradient& g, const Case& f, const Case& c) {
  const std::vector<Values> x = make_inputs(f, false, static_cast<uint32_t>(subject.seed));
  const std::vector<Values> y = f.oracle(f, x);
  std::vector<Values> inputs = make_inputs(c, false, static_cast<uint32_t>(subject.seed) + 1);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (g.inputs[i].from != Source::kGradient)
      inputs[i] = (g.inputs[i].from == Source::kInput ? x : y)[g.inputs[i].at];
  const RunResult r = run(subject.name(), c, inputs);
  if (!r.error.empty())
    throw Fault("ops.h: " + c.kind, c.name() + ": a launch without error", r.error);
  for (size_t o = 0; o < c.out.size(); ++o)
    expect_slopes(c, o, r.values[o], differences(f, x, g.of[o], inputs[0]));
}

std::function<void(const Subject&)> slopes(const std::string& kind) {
  return [kind](const Subject& subject) {
    require_device(subject);
    int judged = 0;
    for (const Gradient& g : gradients())
      for (const Case& f : all_cases()) {
        if (g.kind != kind || f.kind != g.forward || !small(f)) continue;
        if (g.forward_inputs && g.forward_inputs != f.in.size()) continue;
        const Case c = gradient_case(g, f);
        if (!takes(kernel_of(subject), c)) continue;
        compare_slopes(subject, g, f, c);
        ++judged;
      }
    if (judged == 0) throw Skip("it does not claim such cases");
  };
}

}  // namespace

std::vector<Test> gradient_tests() {
  std::vector<Test> tests;
  for (const char* kind : {"softmax_grad", "layernorm_grad", "rmsnorm_grad", "norm_param_grad",
                           "attention_grad", "cross_entropy_grad"})
    tests.push_back({std::string("kernel.slopes.") + kind, 120, slopes(kind)});
  return tests;
}

}  // namespace orrery::judge
