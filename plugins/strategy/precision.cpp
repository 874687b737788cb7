// SPDX-License-Identifier: Apache-2.0
//
// Mixed precision: modules compute in 16 bits, with f32 master weights, optimizer state and loss.
// Micikevicius et al., "Mixed Precision Training", ICLR 2018; Kalamkar et al., "A Study of BFLOAT16
// for Deep Learning Training", 2019, for why bf16 needs no loss scale.
#include <algorithm>
#include <set>
#include <vector>

#include <orrery/sdk/path.hpp>
#include <orrery/sdk/strategy.hpp>

namespace {

constexpr orr_option kOptions[] = {
    {"compute", ORR_ATTR_TEXT, 0, "bf16", "what modules compute in: bf16"},
    {"keep", ORR_ATTR_TEXT, 0, "", "modules that stay in f32, such as norm"},
};

orr_status* describe(void*, orr_strategy_info* out) {
  return orr::guard([&] {
    out->numeric_class = ORR_CLASS_APPROX;
    out->n_options = 2, out->options = kOptions;
    out->provides = "a compute precision", out->requires_ = "", out->conflicts = "a compute precision";
  });
}

struct Known {  // of a value
  std::string kind, region;
  int32_t dtype = 0;
};

class Chooser {
 public:
  Chooser(orr_program* program, const orr_edit* edit, std::vector<std::string> keep)
      : program_(program), edit_(edit), keep_(std::move(keep)) {
    orr::check(edit->each(program, ~0u, this, [](void* self, int32_t v, const orr_value_info* info) {
      static_cast<Chooser*>(self)->know(v, *info);
      return static_cast<orr_status*>(nullptr);
    }));
    low_.resize(known_.size());
    for (size_t v = 0; v < known_.size(); ++v) {
      low_[v] = known_[v].dtype == ORR_F32 && !kept(known_[v]) && fits(static_cast<int32_t>(v));
      if (low_[v]) orr::check(edit->compute(program, static_cast<int32_t>(v), ORR_BF16));
    }
  }

  std::string unmatched() const {
    for (const std::string& pattern : keep_)
      if (!matched_.count(pattern)) return pattern;
    return "";
  }
  bool any() const { return std::count(low_.begin(), low_.end(), true) > 0; }

 private:
  void know(int32_t v, const orr_value_info& info) {
    known_.resize(std::max(known_.size(), static_cast<size_t>(v) + 1));
    known_[static_cast<size_t>(v)] = {info.kind, info.region, info.type.dtype};
  }

  bool kept(const Known& k) {
    bool found = false;
    for (const std::string& pattern : keep_)
      if (!orr::path::front(pattern, orr::path::inside(k.region)).empty()) {
        matched_.insert(pattern);
        found = true;
      }
    return found;
  }

  // Products, attention and norms, whose kernels add in f32; and within modules what follows them.
  // The loss, sums and statistics stay in f32.
  bool fits(int32_t v) const {
    static const std::set<std::string> heavy = {"matmul", "attention", "layernorm", "rmsnorm", "softmax", "gather"};
    static const std::set<std::string> shape = {"reshape", "transpose", "split", "concat"};
    const Known& k = known_[static_cast<size_t>(v)];
    if (heavy.count(k.kind)) return true;
    if (!shape.count(k.kind) && (k.kind != "pointwise" || k.region.empty())) return false;
    std::vector<int32_t> in(static_cast<size_t>(edit_->inputs(program_, v, nullptr, 0)));
    edit_->inputs(program_, v, in.data(), static_cast<int32_t>(in.size()));
    return std::any_of(in.begin(), in.end(), [&](int32_t x) { return low_[static_cast<size_t>(x)]; });
  }

  orr_program* program_;
  const orr_edit* edit_;
  std::vector<std::string> keep_;
  std::set<std::string> matched_;
  std::vector<Known> known_;
  std::vector<bool> low_;
};

orr_status* transform_forward(void*, orr_program* program, const orr_edit* edit, const orr_options* options) {
  return orr::guard([&] {
    std::string compute = options->text(options->self, "compute", "bf16");
    if (compute == "f16")
      throw orr::Error(ORR_UNIMPLEMENTED, "compute 'f16' needs a loss scale, which there is not yet: use bf16");
    if (compute != "bf16") throw orr::Error(ORR_INVALID, "compute '" + compute + "': there is bf16");
    Chooser chooser(program, edit, orr::path::cut(options->text(options->self, "keep", ""), ','));
    if (std::string pattern = chooser.unmatched(); !pattern.empty())
      throw orr::Error(ORR_INVALID, "keep '" + pattern + "' matches no module");
    if (!chooser.any()) throw orr::Error(ORR_INVALID, "nothing in the model computes in f32");
  });
}

// All is done before differentiation.
orr_status* transform(void*, orr_program*, const orr_edit*, const orr_options*) { return nullptr; }

// Nothing travels for it; what others send of 16-bit values is theirs.
constexpr orr_strategy_api kApi = [] {
  orr_strategy_api table = orr::strategy_table(describe, transform, orr::predict_nothing);
  table.transform_forward = transform_forward;
  return table;
}();

}  // namespace

ORR_PLUGIN(ORR_KIND_STRATEGY, "precision", "0.1.0", "16-bit compute with f32 master weights",
           orr::strategy_entry<kApi>, 1, {{"strategy", 1, 1}})
