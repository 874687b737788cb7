// SPDX-License-Identifier: Apache-2.0
#include "wire.h"

#include <algorithm>
#include <set>

#include "ops_of.h"

namespace precision {
namespace {

const char* name_of(int32_t dtype) {
  return dtype == ORR_BF16 ? "bf16" : dtype == ORR_F16 ? "f16" : "f32";
}

class Storer {
 public:
  Storer(const orr::Program& p, int32_t dtype) : p_(p), all_(p), dtype_(dtype) {
    for (auto& [number, op] : all_.ops)
      if (op.kind == "batch_sum") read_by_samples_.insert(op.in[0]);
  }

  void store(int32_t sum, const std::string& param) {
    static const std::set<std::string> sums = {"matmul", "reduce", "norm_param_grad", "scatter_add",
                                               "scatter_matmul"};
    const Op& op = *all_.maker(sum);
    const bool is_sum = sums.count(op.kind) && reads_samples(op);
    if (is_sum && read_by_samples_.count(sum))
      refuse(sum, param,
             "is completed here in " + std::string(name_of(p_.type(sum).dtype)) +
                 ", for samples read it, and cannot be stored as " + name_of(dtype_) +
                 ": leave the wire's dtype out, or let samples meet '" + param +
                 "' before they read the batch");
    if (is_sum) return p_.retype(sum, 0, dtype_);
    if (op.kind == "scatter_add") {
      store(op.in[1], param);
      return p_.retype(sum, 0, dtype_);
    }
    const bool view = op.kind == "reshape" || op.kind == "transpose";
    if (!op.is_plain_cast && !view && op.kind != "concat")
      refuse(sum, param,
             "comes from " + op.kind + ", which cannot store it as " + name_of(dtype_) +
                 ": leave the wire's dtype out, or keep that module in f32");
    for (int32_t part : op.in) store(part, param);
    p_.retype(sum, 0, op.is_plain_cast ? dtype_ : 0);
  }

 private:
  bool reads_samples(const Op& op) const {
    return std::any_of(op.in.begin(), op.in.end(), [&](int32_t v) {
      return all_.batch[static_cast<size_t>(v)] == ORR_BATCH_SAMPLES;
    });
  }

  [[noreturn]] void refuse(int32_t sum, const std::string& param, const std::string& why) const {
    const orr_value_info info = p_.info(sum);
    std::string at = *info.where ? std::string(info.where) + ": " : "";
    if (*info.region) at += std::string(info.region) + ": ";
    throw orr::Error(ORR_INVALID, at + "the gradient of '" + param + "' " + why);
  }

  const orr::Program& p_;
  const OpsOf all_;
  const int32_t dtype_;
  std::set<int32_t> read_by_samples_;
};

}  // namespace

void store_gradients(const orr::Program& p, int32_t dtype) {
  Storer storer(p, dtype);
  p.each(1u << ORR_ROLE_GRAD,
         [&](orr::Value v, const orr_value_info& info) { storer.store(v, info.name); });
}

}  // namespace precision
