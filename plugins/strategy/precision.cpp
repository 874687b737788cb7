// SPDX-License-Identifier: Apache-2.0
//
// Mixed precision: modules compute in 16 bits, with f32 master weights, optimizer state and loss.
// Micikevicius et al., "Mixed Precision Training", ICLR 2018; Kalamkar et al., "A Study of BFLOAT16
// for Deep Learning Training", 2019, for why bf16 needs no loss scale and f16 does.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <vector>

#include <orrery/sdk/path.hpp>
#include <orrery/sdk/strategy.hpp>

namespace {

constexpr double kLargestScale = 0x1p24, kFirstScale = 0x1p16;

constexpr orr_option kOptions[] = {
    {"compute", ORR_ATTR_TEXT, 0, "bf16", "what modules compute in: bf16, f16 or f32"},
    {"keep", ORR_ATTR_TEXT, 0, "", "modules that stay in f32, such as norm"},
    {"wire", ORR_ATTR_TEXT, 0, "", "what gradients are added and sent in: bf16, f16 or f32"},
    {"loss_scale", 0, 0, nullptr, "dynamic, or a power of two; f16: dynamic"},
    {"growth_interval", ORR_ATTR_INT, 0, "2000", "good steps before a dynamic loss scale doubles"},
};

orr_status* describe(void*, orr_strategy_info* out) {
  return orr::guard([&] {
    out->numeric_class = ORR_CLASS_APPROX;
    out->n_options = std::size(kOptions), out->options = kOptions;
    out->provides = "a compute precision", out->requires_ = "",
    out->conflicts = "a compute precision";
  });
}

[[noreturn]] void refuse(const std::string& why) { throw orr::Error(ORR_INVALID, why); }

struct Known {  // of a value
  std::string kind, region;
  int32_t dtype = 0;
};

class Chooser {
 public:
  Chooser(orr_program* program, const orr_edit* edit, int32_t dtype, std::vector<std::string> keep)
      : program_(program), edit_(edit), keep_(std::move(keep)) {
    orr::check(
        edit->each(program, ~0u, this, [](void* self, int32_t v, const orr_value_info* info) {
          static_cast<Chooser*>(self)->know(v, *info);
          return static_cast<orr_status*>(nullptr);
        }));
    low_.resize(known_.size());
    for (size_t v = 0; v < known_.size(); ++v) {
      low_[v] = known_[v].dtype == ORR_F32 && !kept(known_[v]) && fits(static_cast<int32_t>(v));
      if (low_[v]) orr::check(edit->compute(program, static_cast<int32_t>(v), dtype));
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
    static const std::set<std::string> heavy = {"matmul",  "attention", "layernorm",
                                                "rmsnorm", "softmax",   "gather"};
    static const std::set<std::string> shape = {"reshape", "transpose", "split", "concat"};
    const Known& k = known_[static_cast<size_t>(v)];
    if (heavy.count(k.kind)) return true;
    if (!shape.count(k.kind) && (k.kind != "pointwise" || k.region.empty())) return false;
    std::vector<int32_t> in(static_cast<size_t>(edit_->inputs(program_, v, nullptr, 0)));
    edit_->inputs(program_, v, in.data(), static_cast<int32_t>(in.size()));
    return std::any_of(in.begin(), in.end(),
                       [&](int32_t x) { return low_[static_cast<size_t>(x)]; });
  }

  orr_program* program_;
  const orr_edit* edit_;
  std::vector<std::string> keep_;
  std::set<std::string> matched_;
  std::vector<Known> known_;
  std::vector<bool> low_;
};

int32_t dtype_of(const char* option, const std::string& name) {
  if (name == "bf16") return ORR_BF16;
  if (name == "f16") return ORR_F16;
  if (name == "f32") return ORR_F32;
  refuse(std::string(option) + " '" + name + "': there are bf16, f16 and f32");
}

void choose_wire(orr_program* program, const orr_edit* edit, int32_t compute,
                 const std::string& name) {
  if (name.empty()) return;
  const int32_t dtype = dtype_of("wire", name);
  if (dtype != compute && dtype != ORR_F32 && compute != ORR_F32)
    refuse("wire '" + name +
           "': gradients made in the other 16-bit dtype can be sent as they are, or in f32");
  orr::check(edit->wire(program, dtype));
}

void choose(orr_program* program, const orr_edit* edit, int32_t dtype,
            const std::vector<std::string>& keep) {
  if (dtype == ORR_F32) {
    if (!keep.empty()) refuse("keep '" + keep[0] + "': with compute 'f32' all modules stay in f32");
    return;
  }
  Chooser chooser(program, edit, dtype, keep);
  if (std::string pattern = chooser.unmatched(); !pattern.empty())
    refuse("keep '" + pattern + "' matches no module");
  if (!chooser.any()) refuse("nothing in the model computes in f32");
}

// The power of two from 2^-24 to 2^24 that is nearest in logarithm.
double nearest_scale(double x) {
  if (!(x > 0)) return 1;
  return std::clamp(std::exp2(std::round(std::log2(x))), 1 / kLargestScale, kLargestScale);
}

std::string text_of(double x) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, x).ptr);
}

// The fixed scale that was asked for, 0 if it is dynamic or none.
double fixed_scale(const orr_options* options) {
  const double fixed = options->real(options->self, "loss_scale", 0);
  const std::string text = options->text(options->self, "loss_scale", "");
  if (!text.empty() && text != "dynamic")
    refuse("loss_scale '" + text + "': write \"dynamic\" or a power of two");
  const bool given = options->real(options->self, "loss_scale", 1) == fixed;
  if (given && fixed != nearest_scale(fixed))
    refuse("loss_scale " + text_of(fixed) +
           " is no power of two from 2^-24 to 2^24: the nearest is " +
           text_of(nearest_scale(fixed)));
  return fixed;
}

void scale_loss(orr_program* program, const orr_edit* edit, const orr_options* options,
                bool needed) {
  const double fixed = fixed_scale(options);
  const bool dynamic = fixed == 0 && (needed || *options->text(options->self, "loss_scale", ""));
  const int64_t interval = options->integer(options->self, "growth_interval", 0);
  if (interval && !dynamic) refuse("growth_interval is for loss_scale = \"dynamic\"");
  if (options->integer(options->self, "growth_interval", 1) < 1)
    refuse("growth_interval " + std::to_string(interval) + ": the least is 1");
  if (dynamic) orr::check(edit->loss_scale(program, kFirstScale, interval ? interval : 2000));
  if (fixed) orr::check(edit->loss_scale(program, fixed, 0));
}

orr_status* transform_forward(void*, orr_program* program, const orr_edit* edit,
                              const orr_options* options) {
  return orr::guard([&] {
    const int32_t dtype = dtype_of("compute", options->text(options->self, "compute", "bf16"));
    choose(program, edit, dtype, orr::path::cut(options->text(options->self, "keep", ""), ','));
    choose_wire(program, edit, dtype, options->text(options->self, "wire", ""));
    scale_loss(program, edit, options, dtype == ORR_F16);
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
