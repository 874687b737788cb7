// SPDX-License-Identifier: Apache-2.0
#include "products.h"

#include <algorithm>
#include <map>
#include <set>

#include <orrery/sdk/path.hpp>

#include "ops_of.h"

namespace precision {
namespace {

constexpr int64_t kSide = 16;

class Finder {
 public:
  Finder(const orr::Program& p, const std::vector<std::string>& except)
      : p_(p), except_(except), all_(p), leads_to_product_(all_.dtype.size()) {
    for (auto at = all_.ops.rbegin(); at != all_.ops.rend(); ++at) note_readers(at->second);
    for (auto& [number, op] : all_.ops) note_layer(op);
  }

  std::vector<LinearProduct> products() const {
    std::vector<LinearProduct> found;
    for (auto& [number, op] : all_.ops) {
      if (op.kind != "matmul") continue;
      const auto layer = layers_.find(site_of(op));
      if (layer == layers_.end() || layer->second.left_out) continue;
      LinearProduct product = read(op);
      if (!tell_slopes(product, layer->second.right_is_turned)) continue;
      found.push_back(product);
    }
    return found;
  }

  std::string unmatched() const {
    for (const std::string& pattern : except_)
      if (!matched_.count(pattern)) return pattern;
    return "";
  }

 private:
  struct Layer {
    bool left_out = false;
    bool right_is_turned = false;  // in forward
  };

  static size_t at(int32_t v) { return static_cast<size_t>(v); }

  std::string site_of(const Op& op) const {
    const orr_value_info info = p_.info(op.out[0]);
    return std::string(info.region) + " " + info.where;
  }

  // Called for the last op first: a value leads to a product if an op of forward that reads it is
  // one, or makes such a value.
  void note_readers(const Op& op) {
    if (p_.info(op.out[0]).phase != ORR_PHASE_FORWARD) return;
    const bool leads = op.kind == "matmul" || op.kind == "gather_matmul" ||
                       op.kind == "attention" ||
                       std::any_of(op.out.begin(), op.out.end(),
                                   [&](int32_t v) { return leads_to_product_[at(v)]; });
    if (leads)
      for (int32_t v : op.in) leads_to_product_[at(v)] = true;
  }

  LinearProduct read(const Op& op) const {
    LinearProduct product;
    product.out = op.out[0], product.left = op.in[0], product.right = op.in.back();
    product.site = site_of(op);
    p_.maker(op.out[0], [&](const orr_op_desc& desc) {
      for (int32_t i = 0; i < desc.n_attrs; ++i) {
        const std::string name = desc.attrs[i].name;
        if (name == "ta") product.left_is_turned = desc.attrs[i].i != 0;
        if (name == "tb") product.right_is_turned = desc.attrs[i].i != 0;
      }
    });
    return product;
  }

  // Samples first, in rows along dim 0, times one matrix for all of them.
  bool is_of_samples(const LinearProduct& product) const {
    const orr_value_info x = p_.info(product.left), w = p_.info(product.right);
    return x.batch == ORR_BATCH_SAMPLES && x.batch_dim == 0 && w.batch == ORR_BATCH_NONE &&
           w.type.rank == 2 && !product.left_is_turned && is_short(x) && is_short(w);
  }

  static bool is_short(const orr_value_info& x) { return x.type.dtype == ORR_BF16; }

  bool is_parameter(int32_t v) const {
    static const std::set<std::string> same = {"reshape", "transpose", "unshard"};
    for (const Op* op = all_.maker(v); op; op = all_.maker(v)) {
      if (!op->is_plain_cast && !same.count(op->kind)) return false;
      v = op->in[0];
    }
    return p_.info(v).role == ORR_ROLE_PARAM;
  }

  bool is_named(const std::string& region) {
    bool found = false;
    for (const std::string& pattern : except_)
      if (!orr::path::front(pattern, orr::path::inside(region)).empty())
        matched_.insert(pattern), found = true;
    const std::vector<std::string> parts = orr::path::cut(orr::path::inside(region), '.');
    return found || std::count(parts.begin(), parts.end(), "router") > 0;
  }

  void note_layer(const Op& op) {
    const bool named = is_named(op.region);
    if (op.kind != "matmul" || p_.info(op.out[0]).phase != ORR_PHASE_FORWARD) return;
    const LinearProduct product = read(op);
    const auto [layer, fresh] =
        layers_.try_emplace(product.site, Layer{false, product.right_is_turned});
    const orr_tensor w = p_.type(product.right);
    const bool fits = is_of_samples(product) && is_parameter(product.right) &&
                      w.dims[0] % kSide == 0 && w.dims[1] % kSide == 0;
    if (named || !fits || !leads_to_product_[at(product.out)] ||
        layer->second.right_is_turned != product.right_is_turned)
      layer->second.left_out = true;
  }

  // Finds which factors are slopes, by how the layer reads its matrix in forward. Returns whether
  // the product is one of the three.
  bool tell_slopes(LinearProduct& product, bool turned) const {
    if (is_of_samples(product)) {
      product.left_is_slope = product.right_is_turned != turned;
      return true;
    }
    const orr_value_info x = p_.info(product.left), y = p_.info(product.right);
    product.sums_samples = p_.info(product.out).batch == ORR_BATCH_SUM;
    product.left_is_slope = turned, product.right_is_slope = !turned;
    const auto rows = [](const orr_value_info& v) {
      return v.batch == ORR_BATCH_SAMPLES && v.batch_dim == 0 && v.type.rank == 2 && is_short(v);
    };
    return product.sums_samples && rows(x) && rows(y) && product.left_is_turned &&
           !product.right_is_turned;
  }

  const orr::Program& p_;
  const std::vector<std::string>& except_;
  const OpsOf all_;
  std::vector<bool> leads_to_product_;
  std::map<std::string, Layer> layers_;  // by site
  std::set<std::string> matched_;
};

}  // namespace

std::vector<LinearProduct> linear_products(const orr::Program& program,
                                           const std::vector<std::string>& except,
                                           std::string& unmatched) {
  const Finder finder(program, except);
  unmatched = finder.unmatched();
  return finder.products();
}

}  // namespace precision
