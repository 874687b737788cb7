// SPDX-License-Identifier: Apache-2.0
#include "eight.h"

#include <map>
#include <optional>
#include <string_view>
#include <tuple>

#include "history.h"
#include "products.h"
#include "scales.h"

namespace precision {
namespace {

// A tensor in eight bits, and what it was multiplied by.
struct Narrow {
  orr::Value bits, scale;
};

class Narrower {
 public:
  Narrower(const orr::Program& p, Scaling scaling, History* history)
      : p_(p), scaling_(scaling), history_(history) {}

  void run(const LinearProduct& product) {
    layer_ = product.site, out_ = product.out;
    p_.beside(product.out, p_.info(product.out).runs);
    if (product.sums_samples) return sum_samples(product);
    const auto last = static_cast<int32_t>(p_.dims(product.left).size()) - 1;
    const Narrow a = narrow(product.left, product.left_is_slope, last),
                 b = narrow(product.right, false, product.right_is_turned ? 1 : 0);
    multiply(product, a, {b.bits, columns(b.scale)});
  }

 private:
  void multiply(const LinearProduct& product, const Narrow& a, const Narrow& b) const {
    const int32_t dtype = p_.type(product.out).dtype;
    p_.reread(product.out, product.left, a.bits), p_.reread(product.out, product.right, b.bits);
    p_.retype(product.out, 0, dtype);
    p_.replace(product.out, unscaled(p_, product.out, {a.scale, b.scale}));
  }

  Narrow narrow(int32_t v, bool slope, int32_t summed) {
    const Over over = scaling_ == Scaling::row ? Over::rows : Over::tensor;
    const auto [known, fresh] =
        narrow_.try_emplace({v, slope, over == Over::rows ? summed : -1}, Narrow{});
    if (!fresh) return known->second;
    const Format& format = slope ? kSlopes : kFactors;
    if (history_ && p_.info(v).batch == ORR_BATCH_SAMPLES)
      return known->second = delayed(v, slope, format);
    const orr::Value scale = scale_for(p_, largest_size(p_, v, over, summed), format);
    return known->second = {narrowed(p_, v, scale, format), scale};
  }

  Narrow delayed(int32_t v, bool slope, const Format& format) {
    const Tensor tensor{layer_, slope};
    const orr::Value scale = history_->scale(tensor, format);
    if (p_.trains()) {
      p_.before(out_);  // where v is there anyway: nothing but the update reads what is observed
      history_->observe(tensor, v);
      p_.before(-1);
    }
    return {narrowed_within(p_, v, scale, format), scale};
  }

  // Scales of a matrix's rows, as those of the columns of the product.
  orr::Value columns(orr::Value scale) const {
    const std::vector<int64_t> dims = p_.dims(scale);
    return dims.empty() ? scale : p_.reshape(scale, {dims[0] * dims[1]});
  }

  // v in eight bits. What another op has only reshaped has those that it had before.
  Narrow reshaped(int32_t v, bool slope) {
    if (!is_reshaped(v)) return narrow(v, slope, -1);
    const Narrow x = reshaped(p_.inputs(v)[0], slope);
    return {p_.reshape(x.bits, p_.dims(v)), x.scale};
  }

  bool is_reshaped(int32_t v) const {
    return std::string_view(p_.info(v).kind) == "reshape" &&
           p_.info(p_.inputs(v)[0]).batch_dim == 0;
  }

  // dw. Where a scale differs from microbatch to microbatch, over which the product adds, it must
  // be divided out before: the factors are the same numbers of eight bits, as bf16. With scales of
  // rows they are those that there were.
  void sum_samples(const LinearProduct& product) {
    if (scaling_ == Scaling::row) return;
    if (history_)
      return multiply(product, reshaped(product.left, product.left_is_slope),
                      reshaped(product.right, product.right_is_slope));
    p_.reread(product.out, product.left, widened(product.left, product.left_is_slope));
    p_.reread(product.out, product.right, widened(product.right, product.right_is_slope));
  }

  // v as it is after it was in eight bits.
  orr::Value widened(int32_t v, bool slope) {
    const auto [known, fresh] = widened_.try_emplace({v, slope}, orr::Value{});
    if (!fresh) return known->second;
    orr::Value made;
    if (is_reshaped(v)) {
      made = p_.reshape(widened(p_.inputs(v)[0], slope), p_.dims(v));
    } else {
      const Narrow x = narrow(v, slope, -1);
      made = p_.cast(p_.cast(x.bits, ORR_F32) * p_.div(1.0, x.scale), p_.type(v).dtype);
    }
    return widened_[{v, slope}] = made;
  }

  const orr::Program& p_;
  const Scaling scaling_;
  History* const history_;  // null: scales are of now
  std::string layer_;       // of the product that is made now, and its result
  int32_t out_ = -1;
  std::map<std::tuple<int32_t, bool, int32_t>, Narrow> narrow_;
  std::map<std::pair<int32_t, bool>, orr::Value> widened_;
};

std::vector<LinearProduct> products_of(const orr::Program& program, const EightBits& how) {
  std::string unmatched;
  std::vector<LinearProduct> products = linear_products(program, how.except, unmatched);
  if (!unmatched.empty())
    throw orr::Error(ORR_INVALID, "except '" + unmatched + "' matches no module");
  if (products.empty())
    throw orr::Error(ORR_INVALID,
                     "no linear layer of the model has a product in bf16, with sides that are "
                     "multiples of 16, and another product behind it: use compute 'bf16'");
  return products;
}

}  // namespace

void keep_history(const orr::Program& program, const EightBits& how) {
  if (how.scaling == Scaling::delayed) History(program, products_of(program, how));
}

void multiply_in_eight_bits(const orr::Program& program, const EightBits& how) {
  const std::vector<LinearProduct> products = products_of(program, how);
  std::optional<History> history;
  if (how.scaling == Scaling::delayed) history.emplace(program, products);
  Narrower narrower(program, how.scaling, history ? &*history : nullptr);
  for (const LinearProduct& product : products) narrower.run(product);
  if (history && program.trains()) history->update();
}

}  // namespace precision
