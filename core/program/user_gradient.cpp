// SPDX-License-Identifier: Apache-2.0
#include "program/user_gradient.h"

#include <memory>
#include <utility>

namespace orrery {
namespace {

// A function with the values that it gets.
struct Bound {
  std::shared_ptr<const GradientFunction> function;
  std::shared_ptr<ValueId> y;
  std::vector<ValueId> xs;
  std::vector<ValueId> operator()(ValueId dy) const { return (*function)(dy, *y, xs); }
};

ValueId bound(Program& p, ValueId y, const std::vector<ValueId>& xs,
              const std::shared_ptr<const GradientFunction>& function) {
  const auto made = std::make_shared<ValueId>(y);
  *made = p.with_gradient(y, xs, Bound{function, made, xs});
  return *made;
}

// The function of such an op; null: it has another one.
std::shared_ptr<const GradientFunction> function_of(const Program& p, const Op& op) {
  const auto* its = p.user_gradient(attr_int(op.attrs, "index", 0)).target<Bound>();
  return its ? its->function : nullptr;
}

}  // namespace

ValueId with_gradient(Program& p, ValueId y, const std::vector<ValueId>& xs,
                      GradientFunction function) {
  return bound(p, y, xs, std::make_shared<const GradientFunction>(std::move(function)));
}

ValueId with_gradient_again(Program& p, const Op& op) {
  const auto function = function_of(p, op);
  if (!function) return kNone;
  for (const Op& known : p.ops())
    if (known.kind == op.kind && known.in == op.in && known.site.region == op.site.region &&
        function_of(p, known) == function)
      return known.out[0];
  const Site here = p.site();
  p.set_site(op.site);
  const ValueId y = bound(p, op.in[0], {op.in.begin() + 1, op.in.end()}, function);
  p.set_site(here);
  return y;
}

}  // namespace orrery
