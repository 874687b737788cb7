// SPDX-License-Identifier: Apache-2.0
#include "compute.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include <orrery/sdk/path.hpp>

#include "ops_of.h"

namespace precision {
namespace {

bool is_real(int32_t dtype) {
  return dtype == ORR_F32 || dtype == ORR_F64 || dtype == ORR_F16 || dtype == ORR_BF16;
}

// Whether a number of f32 would become infinite, or zero, in f16. bf16 has the range of f32.
bool is_lost_in_f16(double number) {
  const double size = std::abs(number);
  return std::isfinite(number) && (size >= 65520 || (size > 0 && size <= 0x1p-25));
}

// Chooses the values that are computed in 16 bits.
class Chooser {
 public:
  Chooser(const OpsOf& program, int32_t dtype, const std::vector<std::string>& keep)
      : program_(program), dtype_(dtype), keep_(keep), low_(program.dtype.size()) {
    for (size_t v = 0; v < low_.size(); ++v) {
      const Op* op = program.maker(static_cast<int32_t>(v));
      low_[v] = op && program.dtype[v] == ORR_F32 && !kept(*op) && fits(*op);
    }
  }

  const std::vector<bool>& low() const { return low_; }
  std::string unmatched() const {
    for (const std::string& pattern : keep_)
      if (!matched_.count(pattern)) return pattern;
    return "";
  }

 private:
  bool kept(const Op& op) {
    bool found = false;
    for (const std::string& pattern : keep_)
      if (!orr::path::front(pattern, orr::path::inside(op.region)).empty()) {
        matched_.insert(pattern);
        found = true;
      }
    return found || in_router(op);
  }

  // The router of a mixture of experts stays in f32, as its papers have it: 16 bits would often not
  // tell apart the experts among which it chooses.
  static bool in_router(const Op& op) {
    const std::vector<std::string> parts = orr::path::cut(orr::path::inside(op.region), '.');
    return std::find(parts.begin(), parts.end(), "router") != parts.end();
  }

  // Whether an op may compute in 16 bits: products, attention and norms, whose kernels add in f32,
  // and inside modules the pointwise ops that read such a result. The loss, sums and statistics
  // stay in f32, and so do squares, which f16 holds of numbers up to 255 only, and ops with a
  // number that f16 does not hold.
  bool fits(const Op& op) const {
    static const std::set<std::string> heavy = {
        "matmul", "gather_matmul", "attention", "layernorm", "rmsnorm", "softmax", "gather"};
    static const std::set<std::string> shape = {"reshape", "transpose", "split",        "concat",
                                                "windows", "fold",      "user_gradient"};
    if (heavy.count(op.kind)) return true;
    if (!shape.count(op.kind) && (op.kind != "pointwise" || op.region.empty())) return false;
    if (op.is_square) return false;
    if (dtype_ == ORR_F16 && std::any_of(op.numbers.begin(), op.numbers.end(), is_lost_in_f16))
      return false;
    return std::any_of(op.in.begin(), op.in.end(),
                       [&](int32_t x) { return low_[static_cast<size_t>(x)]; });
  }

  const OpsOf& program_;
  const int32_t dtype_;
  const std::vector<std::string>& keep_;
  std::set<std::string> matched_;
  std::vector<bool> low_;
};

class Caster {
 public:
  Caster(const orr::Program& p, const OpsOf& traced, const std::vector<bool>& low, int32_t dtype)
      : p_(p), traced_(traced), low_(low), dtype_(dtype) {}

  void run() {
    for (auto& [number, op] : traced_.ops) translate(number, op);
    for (size_t v = 0; v < traced_.state.size(); ++v)
      if (traced_.state[v]) widen_update(static_cast<int32_t>(v));
  }

 private:
  // Whether the op reads input v in whatever type that has now. A cast that the script wrote does,
  // and a loss over classes: it widens each logit when it reads it (orrery/ops.h), so that a copy
  // in f32 would give the same loss.
  static bool reads_as_is(const Op& op, int32_t v) {
    return op.is_cast || (op.kind == "cross_entropy" && v == op.in[0]);
  }

  // Casts what the op reads to the type that it computes in.
  void translate(int64_t number, const Op& op) {
    const bool low = low_[static_cast<size_t>(op.out[0])];
    const int32_t from = traced_.dtype[static_cast<size_t>(op.out[0])];
    for (auto at = op.in.begin(); at != op.in.end(); ++at) {
      const int32_t v = *at, was = traced_.dtype[static_cast<size_t>(v)];
      if (reads_as_is(op, v) || !is_real(was) || std::count(op.in.begin(), at, v)) continue;
      const int32_t wanted = low && was == from ? dtype_ : was;
      if (p_.type(v).dtype != wanted) p_.reread(op.out[0], v, as(v, wanted, number, op));
    }
    if (low) p_.retype(op.out[0], dtype_);
  }

  // A state keeps its type, whatever its new value is computed in.
  void widen_update(int32_t state) {
    const int32_t next = p_.updated(state), dtype = traced_.dtype[static_cast<size_t>(state)];
    if (p_.type(next).dtype == dtype) return;
    p_.beside(next, ORR_PHASE_FORWARD);
    p_.update(state, p_.cast(next, dtype));
  }

  int32_t as(int32_t v, int32_t dtype, int64_t number, const Op& reader) {
    const bool state = traced_.state[static_cast<size_t>(v)];
    auto [at, fresh] = casts_.try_emplace({v, dtype, state ? number : -1}, -1);
    if (fresh) {
      p_.beside(reader.out[0], ORR_PHASE_FORWARD);
      at->second = p_.cast(v, dtype);
    }
    return at->second;
  }

  const orr::Program& p_;
  const OpsOf& traced_;
  const std::vector<bool>& low_;
  const int32_t dtype_;
  std::map<std::tuple<int32_t, int32_t, int64_t>, int32_t> casts_;
};

}  // namespace

void compute_in(const orr::Program& p, int32_t dtype, const std::vector<std::string>& keep) {
  const OpsOf traced(p);
  const Chooser chooser(traced, dtype, keep);
  if (const std::string pattern = chooser.unmatched(); !pattern.empty())
    throw orr::Error(ORR_INVALID, "keep '" + pattern + "' matches no module");
  if (std::count(chooser.low().begin(), chooser.low().end(), true) == 0)
    throw orr::Error(ORR_INVALID, "nothing in the model computes in f32");
  Caster(p, traced, chooser.low(), dtype).run();
}

}  // namespace precision
