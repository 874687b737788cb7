// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <random>
#include <set>

#include "base/error.h"
#include "program/autodiff.h"
#include "program/build.h"
#include "program/op.h"
#include "random_training.h"
#include "table.h"

namespace program_test {
namespace {

using namespace orrery;

int32_t dtype_of(int32_t dtype, int32_t real) { return dtype ? dtype : real; }

Values fill(const In& in, int32_t real, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(in.lo, in.hi);
  Values v(static_cast<size_t>(Type{ORR_F32, in.dims}.elements()));
  for (double& x : v) {
    x = uniform(random);
    if (in.fill != In::uniform) x = std::floor(x) + (in.fill == In::off_grid ? 0.3 : 0);
    if (dtype_of(in.dtype, real) == ORR_F32) x = static_cast<float>(x);
  }
  return v;
}

Named fill(const Entry& e, int32_t real) {
  Named inputs;
  for (size_t i = 0; i < e.in.size(); ++i)
    inputs[std::to_string(i)] = fill(e.in[i], real, static_cast<uint32_t>(i) + 1);
  return inputs;
}

Ids declare(Program& p, const std::vector<In>& in, int32_t real) {
  Ids ids;
  for (size_t i = 0; i < in.size(); ++i)
    ids.push_back(p.input(std::to_string(i), {dtype_of(in[i].dtype, real), in[i].dims}));
  return ids;
}

std::string out_name(size_t j) { return "out" + std::to_string(j); }

Named run(const Entry& e, const char* kernels, int32_t real) {
  Program p;
  Ids out = e.build(p, declare(p, e.in, real));
  for (size_t j = 0; j < out.size(); ++j) give(p, out_name(j), out[j]);
  return Machine(p, {kernels}).run(fill(e, real));
}

// Whether a and b are within atol + rtol * |b|; what is not finite must be alike.
bool close(double a, double b, double atol, double rtol) {
  if (!std::isfinite(b)) return std::isnan(b) ? std::isnan(a) : a == b;
  return std::abs(a - b) <= atol + rtol * std::abs(b);
}

std::string compare(const Values& got, const Values& want, double atol, double rtol) {
  if (got.size() != want.size()) return fmt::format("{} elements, not {}", got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    if (!close(got[i], want[i], atol, rtol))
      return fmt::format("element {} is {}, not {}", i, got[i], want[i]);
  return "";
}

std::string refusal(const Bad& bad) {
  Program p;
  p.set_site({"net", "model.lua:3"});
  Ids ids;
  for (size_t i = 0; i < bad.in.size(); ++i) ids.push_back(p.input(std::to_string(i), bad.in[i]));
  try {
    bad.build(p, ids);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

std::string check_shape(const Entry& e) {
  for (int32_t real : {ORR_F32, ORR_F64}) {
    Program p;
    Ids out = e.build(p, declare(p, e.in, real));
    if (out.size() != e.out.size()) return fmt::format("{} outputs", out.size());
    for (size_t j = 0; j < out.size(); ++j) {
      Type want{dtype_of(e.out[j].dtype, real), e.out[j].dims};
      if (p.type(out[j]) != want)
        return fmt::format("output {} is {}, not {}", j, to_string(p.type(out[j])),
                           to_string(want));
    }
    if (p.ops().empty() || p.ops()[static_cast<size_t>(p.value(out[0]).producer)].kind != e.kind)
      return "the example makes another op";
  }
  for (const Bad& bad : e.bad) {
    std::string error = refusal(bad);
    if (error.find("model.lua:3: net: ") != 0 || error.find(bad.error) == std::string::npos)
      return fmt::format("expected '{}', got '{}'", bad.error, error);
  }
  return "";
}

namespace {

// The sum of output 0 times the fixed weights "w"; kNone if it is not real.
ValueId weighted_loss(Program& p, const Entry& e, Ids& in) {
  in = declare(p, e.in, ORR_F64);
  ValueId y = e.build(p, in)[0];
  if (!is_real(p.type(y).dtype)) return kNone;
  ValueId w = p.input("w", {ORR_F64, p.type(y).dims});
  return build::reduce(p, "sum", p.pointwise(ORR_FN_MUL, {p.cast(y, ORR_F64), w}), {}, false);
}

// The pulled-back gradients by input name; inputs that get none are left out.
Named pulled_back(const Entry& e, Named& inputs) {
  Program p;
  Ids in, wrt;
  ValueId loss = weighted_loss(p, e, in);
  if (loss == kNone) return {};
  inputs["w"] = fill({In::uniform, p.type(p.ops().back().in[0]).dims, 0.5, 1.5}, ORR_F64, 99);
  for (ValueId v : in)
    if (is_real(p.type(v).dtype)) wrt.push_back(v);
  Ids gradients = pull_back(p, {loss}, {p.constant(1, ORR_F64)}, wrt);
  bool any = false;
  for (size_t i = 0; i < wrt.size(); ++i) {
    if (gradients[i] == kNone) continue;
    if (p.type(gradients[i]) != p.type(wrt[i]))
      fail(ORR_FAILED, "the gradient is {}", to_string(p.type(gradients[i])));
    give(p, p.value(wrt[i]).name, gradients[i]);
    any = true;
  }
  return any ? Machine(p, {"reference"}).run(inputs) : Named{};
}

}  // namespace

namespace {

// What central differences of output "loss" by the real inputs `in` say beside `gradients`, which
// leave out inputs whose slope is 0.
std::string check_slopes(const Entry& e, const Program& p, const Ids& in, Named inputs,
                         const Named& gradients) {
  Machine forward(p, {"reference"});
  for (ValueId v : in) {
    if (!is_real(p.type(v).dtype)) continue;
    Values& x = inputs[p.value(v).name];
    Values slope;
    for (double& at : x) {
      double before = at;
      at = before + e.eps;
      double above = forward.run(inputs)["loss"][0];
      at = before - e.eps;
      double below = forward.run(inputs)["loss"][0];
      at = before;
      slope.push_back((above - below) / (2 * e.eps));
    }
    auto found = gradients.find(p.value(v).name);
    Values got = found == gradients.end() ? Values(x.size(), 0) : found->second;
    if (std::string wrong = compare(got, slope, 1e-5, 1e-3); !wrong.empty())
      return fmt::format("input {}: {}", p.value(v).name, wrong);
  }
  return "";
}

// The sum of all gradients of weighted_loss, each times the fixed weights "u0", "u1", ...; kNone if
// there are none. Adds the weights to `inputs`.
ValueId sum_of_gradients(Program& p, const Entry& e, Ids& in, Named& inputs) {
  const ValueId loss = weighted_loss(p, e, in);
  if (loss == kNone) return kNone;
  inputs["w"] = fill({In::uniform, p.type(p.ops().back().in[0]).dims, 0.5, 1.5}, ORR_F64, 99);
  Ids wrt;
  for (ValueId v : in)
    if (is_real(p.type(v).dtype)) wrt.push_back(v);
  ValueId sum = kNone;
  for (ValueId g : pull_back(p, {loss}, {p.constant(1, ORR_F64)}, wrt)) {
    if (g == kNone) continue;
    const std::string name = "u" + std::to_string(inputs.size());
    inputs[name] = fill({In::uniform, p.type(g).dims, 0.5, 1.5}, ORR_F64,
                        static_cast<uint32_t>(inputs.size()));
    const ValueId u = p.input(name, {ORR_F64, p.type(g).dims});
    const ValueId term =
        build::reduce(p, "sum", p.pointwise(ORR_FN_MUL, {p.cast(g, ORR_F64), u}), {}, false);
    sum = sum == kNone ? term : p.pointwise(ORR_FN_ADD, {sum, term});
  }
  return sum;
}

}  // namespace

static std::string first_derivatives(const Entry& e) {
  Named inputs = fill(e, ORR_F64);
  Named gradients = pulled_back(e, inputs);
  if (!e.gradient) return gradients.empty() ? "" : "a gradient where none was meant";
  Program p;
  Ids in;
  p.output("loss", weighted_loss(p, e, in));
  if (std::string wrong = check_slopes(e, p, in, inputs, gradients); !wrong.empty()) return wrong;
  return gradients.empty() ? "no input has a gradient" : "";
}

static std::string second_derivatives(const Entry& e) {
  Named inputs = fill(e, ORR_F64);
  Program p;
  Ids in, wrt;
  const ValueId sum = sum_of_gradients(p, e, in, inputs);
  if (sum == kNone) return e.gradient ? "no gradient" : "";
  Program once = p;
  once.output("loss", sum);
  for (ValueId v : in)
    if (is_real(p.type(v).dtype)) wrt.push_back(v);
  Ids gradients = pull_back(p, {sum}, {p.constant(1, ORR_F64)}, wrt);
  bool any = false;
  for (size_t i = 0; i < wrt.size(); ++i)
    if (gradients[i] != kNone) give(p, p.value(wrt[i]).name, gradients[i]), any = true;
  return check_slopes(e, once, in, inputs, any ? Machine(p, {"reference"}).run(inputs) : Named{});
}

// As the entry says that it is refused, if it does.
static std::string unless_refused(const Entry& e, std::string (*check)(const Entry&),
                                  bool refused) {
  if (!refused) return check(e);
  try {
    check(e);
  } catch (const Error& error) {
    const bool meant = std::string(error.what()).find(e.refuses) != std::string::npos;
    return meant ? "" : error.what();
  }
  return "not refused";
}

std::string check_gradient(const Entry& e) {
  return unless_refused(e, first_derivatives, !e.refuses.empty() && !e.gradient);
}

std::string check_second(const Entry& e) {
  return unless_refused(e, second_derivatives, !e.refuses.empty());
}

std::string check_reference(const Entry& e) {
  Named narrow = run(e, "reference", ORR_F32), wide = run(e, "reference", ORR_F64);
  for (auto& [name, values] : narrow)
    if (std::string wrong = compare(values, wide[name], 1e-5, 1e-4); !wrong.empty())
      return fmt::format("f32 is not f64: {} {}", name, wrong);
  return "";
}

std::string check_cpu(const Entry& e) {
  if (!e.cpu) try {
      run(e, "cpu", ORR_F32);
      return "cpu has a kernel for it";
    } catch (const Error&) {
      return "";
    }
  Named got = run(e, "cpu", ORR_F32), want = run(e, "reference", ORR_F32);
  for (auto& [name, values] : got)
    if (std::string wrong = compare(values, want[name], 2e-6, 2e-5); !wrong.empty())
      return name + ": " + wrong;
  return "";
}

namespace {

// The example with factor `f` of its op as the batch of `extent` samples.
struct Batched {
  const Entry& e;
  std::vector<int> dim;  // by input: the batch dim or kNone
  int64_t extent = 1;
  Program p;
  Ids out;

  void trace() {
    p.batch_input("$batch", {ORR_F32, {extent}});
    Ids in = declare(p, e.in, ORR_F32);
    for (size_t i = 0; i < in.size(); ++i) {
      if (dim[i] == kNone) continue;
      p.mutable_value(in[i]).set_batch(Batch::sharded, dim[i]);
    }
    out = e.build(p, in);
    for (size_t j = 0; j < out.size(); ++j) give(p, out_name(j), out[j]);
  }

  Named run(int64_t first, int64_t last) const {
    Named inputs = fill(e, ORR_F32);
    for (size_t i = 0; i < e.in.size(); ++i)
      if (Values& x = inputs[std::to_string(i)]; dim[i] != kNone)
        x = part(x, e.in[i].dims, dim[i], first, last - first);
    return Machine(p, {e.cpu ? "cpu" : "reference"}, {extent, first, last, 1}).run(inputs);
  }

  Values slice(const Value& v, const Values& whole, int64_t first, int64_t last) const {
    if (v.batch() != Batch::sharded) return whole;
    int64_t rows = v.type.dims[static_cast<size_t>(v.batch_dim())] / extent;
    return part(whole, v.type.dims, v.batch_dim(), first * rows, (last - first) * rows);
  }

  bool sums_here(ValueId id) const {
    for (ValueId x : p.ops()[static_cast<size_t>(p.value(id).producer)].in)
      if (p.value(x).batch() == Batch::sharded) return true;
    return false;
  }

  std::string check_output(size_t j, int ranks, const std::vector<int64_t>& first,
                           const std::vector<Named>& parts, const Values& whole) const {
    const Value& v = p.value(out[j]);
    if (v.batch() == Batch::partial && !sums_here(out[j])) return "";  // a view of a finished total
    NodeTree tree(v.type.dtype, extent);
    for (size_t r = 0; r < parts.size(); ++r) {
      const Values& mine = parts[r].at(out_name(j));
      if (v.batch() == Batch::partial)
        tree.add(first[r], first[r + 1], mine);
      else if (mine != slice(v, whole, first[r], first[r + 1]))
        return fmt::format("output {} of rank {} of {} is no slice of the whole", j, r, ranks);
    }
    if (v.batch() == Batch::partial && tree.whole() != whole)
      return fmt::format("output {} of {} ranks does not add up to the whole", j, ranks);
    return "";
  }

  std::string check() const {
    Named whole = run(0, extent);
    for (int ranks : {2, 3}) {
      if (extent < ranks) continue;
      std::vector<int64_t> first = assign_microbatches(extent, ranks);
      std::vector<Named> parts;
      for (size_t r = 0; r + 1 < first.size(); ++r) parts.push_back(run(first[r], first[r + 1]));
      for (size_t j = 0; j < out.size(); ++j)
        if (std::string wrong = check_output(j, ranks, first, parts, whole[out_name(j)]);
            !wrong.empty())
          return wrong;
    }
    return "";
  }
};

}  // namespace

std::vector<std::vector<int>> cuts(const Entry& e) {
  if (e.like) return {{0}};
  Program p;
  Ids in = declare(p, e.in, ORR_F32);
  const Op op = p.ops()[static_cast<size_t>(p.value(e.build(p, in)[0]).producer)];
  Sharding s = op_def(op.kind).sharding(args_of(p, op), out_types(p, op));
  std::set<int> factors;
  for (auto& f : s.in) factors.insert(f.begin(), f.end());
  factors.erase(kNone);
  std::vector<std::vector<int>> found;
  for (int factor : factors) {
    std::vector<int> dim(in.size(), kNone);
    for (size_t i = 0; i < in.size(); ++i)
      for (size_t k = 0; k < op.in.size(); ++k)
        for (size_t d = 0; d < s.in[k].size() && op.in[k] == in[i]; ++d)
          if (s.in[k][d] == factor) dim[i] = static_cast<int>(d);
    found.push_back(dim);
  }
  return found;
}

std::string check_sharding(const Entry& e) {
  std::vector<std::vector<int>> all = cuts(e);
  if (!e.sharding) return all.empty() ? "" : "a dim can be cut where none was meant";
  bool any = false;
  for (const std::vector<int>& dim : all) {
    Batched b{e, dim, 1, {}, {}};
    for (size_t i = 0; i < dim.size(); ++i)
      if (dim[i] != kNone) b.extent = e.in[i].dims[static_cast<size_t>(dim[i])];
    if (b.extent < 2) continue;
    try {
      b.trace();
      any = true;
      if (std::string wrong = b.check(); !wrong.empty()) return wrong;
    } catch (const Error& error) {
      if (e.refuses_sum.empty() ||
          std::string(error.what()).find(e.refuses_sum) == std::string::npos)
        return error.what();
      any = true;
    }
  }
  return any ? "" : "no dim can be cut";
}

}  // namespace program_test
