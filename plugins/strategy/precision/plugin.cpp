// SPDX-License-Identifier: Apache-2.0
//
// Mixed precision: modules compute in 16 bits, with f32 master weights, optimizer state and loss.
// Micikevicius et al., "Mixed Precision Training", ICLR 2018. Why bf16 needs no loss scale and f16
// does: Kalamkar et al., "A Study of BFLOAT16 for Deep Learning Training", 2019. Linear layers may
// multiply in 8 bits (eight.h).
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include <orrery/sdk/path.hpp>
#include <orrery/sdk/strategy.hpp>

#include "compute.h"
#include "eight.h"
#include "loss_scale.h"
#include "wire.h"

namespace {

using precision::kLargestScale;
constexpr double kFirstScale = 0x1p16;

constexpr orr_option kOptions[] = {
    {"compute", ORR_ATTR_TEXT, 0, "bf16", "what modules compute in: bf16, f16, f32, or fp8"},
    {"keep", ORR_ATTR_TEXT, 0, "", "modules that stay in f32, such as norm"},
    {"scale", ORR_ATTR_TEXT, 0, "tensor", "fp8: what has a scale: tensor, row or delayed"},
    {"except", ORR_ATTR_TEXT, 0, "", "fp8: modules whose products stay in bf16"},
    {"wire", ORR_ATTR_TEXT, 0, "", "what gradients are added and sent in: bf16, f16 or f32"},
    {"loss_scale", 0, 0, nullptr, "dynamic, or a power of two; f16: dynamic"},
    {"growth_interval", ORR_ATTR_INT, 0, "2000", "good steps before a dynamic loss scale doubles"},
};
constexpr const char* kChoices[std::size(kOptions)] = {
    "bf16,f16,f32,fp8", nullptr, "tensor,row,delayed", nullptr, "bf16,f16,f32", nullptr, nullptr};

orr_status* describe(void*, orr_strategy_info* out) {
  return orr::guard([&] {
    out->numeric_class = ORR_CLASS_APPROX;
    out->n_options = std::size(kOptions), out->options = kOptions;
    orr::tell_choices(out, kChoices);
    out->provides = "a compute precision", out->requires_ = "",
    out->conflicts = "a compute precision";
  });
}

[[noreturn]] void refuse(const std::string& why) { throw orr::Error(ORR_INVALID, why); }

int32_t dtype_of(const std::string& name) {
  if (name == "bf16") return ORR_BF16;
  if (name == "f16") return ORR_F16;
  if (name == "f32") return ORR_F32;
  return 0;
}

// bf16 with the products of linear layers in eight bits.
constexpr const char* kEight = "fp8";

int32_t compute_of(const std::string& name) {
  return name == kEight ? int32_t{ORR_BF16} : dtype_of(name);
}

// The options of the stack's entry, read.
struct Asked {
  int32_t compute = ORR_F32;
  std::vector<std::string> keep;
  int32_t wire = 0;  // the type in which gradients travel; 0: the type they are computed in
  precision::LossScale scale;
  std::optional<precision::EightBits> eight;
};

int32_t wire_of(int32_t compute, const std::string& name) {
  if (name.empty()) return 0;
  const int32_t dtype = dtype_of(name);
  if (dtype != compute && dtype != ORR_F32 && compute != ORR_F32)
    refuse("wire '" + name +
           "': gradients made in the other 16-bit dtype can be sent as they are, or in f32");
  return dtype;
}

// Returns the power of two from 2^-24 to 2^24 whose logarithm is nearest to that of x.
double nearest_scale(double x) {
  if (!(x > 0)) return 1;
  return std::clamp(std::exp2(std::round(std::log2(x))), 1 / kLargestScale, kLargestScale);
}

std::string text_of(double x) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, x).ptr);
}

// Returns the fixed scale that the options ask for; 0 if they ask for a dynamic one or none.
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

precision::LossScale scale_of(const orr_options* options, bool needed) {
  const double fixed = fixed_scale(options);
  const bool dynamic = fixed == 0 && (needed || *options->text(options->self, "loss_scale", ""));
  const int64_t interval = options->integer(options->self, "growth_interval", 0);
  if (interval && !dynamic) refuse("growth_interval is for loss_scale = \"dynamic\"");
  if (options->integer(options->self, "growth_interval", 1) < 1)
    refuse("growth_interval " + std::to_string(interval) + ": the least is 1");
  if (dynamic) return {kFirstScale, interval ? interval : 2000};
  return {fixed, 0};
}

precision::EightBits eight_of(const orr_options* options) {
  using precision::Scaling;
  const std::string scale = options->text(options->self, "scale", "tensor");
  const std::map<std::string, Scaling> known = {
      {"tensor", Scaling::tensor}, {"row", Scaling::row}, {"delayed", Scaling::delayed}};
  return {known.at(scale), orr::path::cut(options->text(options->self, "except", ""), ',')};
}

void refuse_eight(const orr_options* options, const std::string& compute) {
  for (const char* option : {"scale", "except"})
    if (*options->text(options->self, option, ""))
      refuse(std::string(option) + " is for compute = \"fp8\", and not for '" + compute + "'");
}

Asked asked(const orr_options* options) {
  Asked a;
  const std::string compute = options->text(options->self, "compute", "bf16");
  a.compute = compute_of(compute);
  if (compute == kEight)
    a.eight = eight_of(options);
  else
    refuse_eight(options, compute);
  a.keep = orr::path::cut(options->text(options->self, "keep", ""), ',');
  if (a.compute == ORR_F32 && !a.keep.empty())
    refuse("keep '" + a.keep[0] + "': with compute 'f32' all modules stay in f32");
  a.wire = wire_of(a.compute, options->text(options->self, "wire", ""));
  a.scale = scale_of(options, a.compute == ORR_F16);
  return a;
}

orr_status* transform_forward(void*, orr_program* program, const orr_edit* edit,
                              const orr_options* options) {
  return orr::guard([&] {
    const orr::Program p(program, edit);
    const Asked a = asked(options);
    if (a.compute != ORR_F32) precision::compute_in(p, a.compute, a.keep);
    if (a.scale.initial > 0 && p.trains()) precision::scale_loss(p, a.scale);
  });
}

orr_status* transform(void*, orr_program* program, const orr_edit* edit,
                      const orr_options* options) {
  return orr::guard([&] {
    const orr::Program p(program, edit);
    const Asked a = asked(options);
    if (a.wire) precision::store_gradients(p, a.wire);
    if (a.scale.initial > 0 && p.trains()) precision::guard_updates(p, a.scale);
    if (a.eight) precision::keep_history(p, *a.eight);
    if (a.eight)
      p.at_last([how = *a.eight](const orr::Program& all) {
        precision::multiply_in_eight_bits(all, how);
      });
  });
}

// This strategy sends nothing itself. Bytes of 16-bit values that other strategies send are counted
// by those.
constexpr orr_strategy_api kApi = [] {
  orr_strategy_api table = orr::strategy_table(describe, transform, orr::predict_nothing);
  table.transform_forward = transform_forward;
  return table;
}();

}  // namespace

ORR_PLUGIN(ORR_KIND_STRATEGY, "precision", "0.1.0", "16-bit compute with f32 master weights",
           orr::strategy_entry<kApi>, 1, {{"strategy", 1, 1}})
