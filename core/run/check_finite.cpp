// SPDX-License-Identifier: Apache-2.0
#include "run/check_finite.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "program/elements.h"

namespace orrery {
namespace {

bool has_infinite_constant(const Expr& expr) {
  return std::any_of(expr.instrs.begin(), expr.instrs.end(), [](const orr_instr& instr) {
    return instr.fn == ORR_FN_CONST && std::isinf(instr.imm);
  });
}

// "log" of pointwise ops, "matmul".
std::string name_of(const Op& op) {
  const bool pointwise = op.kind == "pointwise" && !op.expr.instrs.empty();
  return pointwise ? scalar_fn(op.expr.instrs.back().fn).name : op.kind;
}

const char* where_in_step(Phase phase) {
  return phase == Phase::forward    ? ""
         : phase == Phase::backward ? "the gradient, "
                                    : "the update, ";
}

}  // namespace

std::string place_of(const Op& op) {
  return op.site.prefix() + where_in_step(op.phase) + name_of(op);
}

std::vector<std::byte> elements_at(const Device& device, const orr_buffer& x,
                                   const Strided& layout) {
  const auto width = static_cast<size_t>(orr_dtype_bytes(layout.dtype));
  int64_t first = 0, last = 0;  // of the elements' places
  for (size_t d = 0; d < layout.dims.size(); ++d) {
    const int64_t reach = (layout.dims[d] - 1) * layout.strides[d];
    (reach < 0 ? first : last) += reach;
  }
  const Type type{layout.dtype, layout.dims};
  if (type.elements() == 0) return {};
  std::vector<std::byte> span(static_cast<size_t>(last - first + 1) * width);
  orr_buffer from = x;
  from.offset += static_cast<uint64_t>(first) * width, from.bytes = span.size();
  device.read(span.data(), from);
  if (layout.is_contiguous()) return span;
  std::vector<std::byte> elements(type.bytes());
  copy_box(layout.dims, static_cast<int64_t>(width),
           span.data() - first * static_cast<int64_t>(width), layout.strides, elements.data(),
           row_major(layout.dims));
  return elements;
}

std::string CheckFinite::found(const orr_buffer& x, const Strided& layout) const {
  if (!is_real(layout.dtype)) return "";
  const Type type{layout.dtype, layout.dims};
  const std::vector<std::byte> elements = elements_at(device_, x, layout);
  for (int64_t i = 0; i < type.elements(); ++i) {
    const double value =
        read_element(layout.dtype, elements.data() + i * orr_dtype_bytes(layout.dtype));
    if (std::isfinite(value) || (masks_ && !std::isnan(value))) continue;
    Dims at(layout.dims.size());
    int64_t rest = i;
    for (size_t d = at.size(); d-- > 0; rest /= layout.dims[d]) at[d] = rest % layout.dims[d] + 1;
    return fmt::format("{} at {} of {}", std::isnan(value) ? "NaN" : "infinity", to_string(at),
                       to_string(type));
  }
  return "";
}

void CheckFinite::after(const Launch& launch, const orr_buffer* at) {
  masks_ = masks_ || has_infinite_constant(launch.op.expr);
  const size_t n_in = launch.in_at.size();
  std::string made;
  for (size_t i = 0; i < launch.out_at.size() && made.empty(); ++i)
    made = found(at[n_in + i], launch.out_at[i].layout);
  if (made.empty()) return;
  std::string origin = "of finite inputs";
  for (size_t i = n_in; i-- > 0;)
    if (const std::string in = found(at[i], launch.in_at[i].layout); !in.empty()) {
      const bool named = launch.op.in.size() == n_in;
      origin = fmt::format(
          "as {} holds {}, which no op here has made",
          named ? title(plan_.local.program, launch.op.in[i]) : fmt::format("input {}", i + 1), in);
    }
  fail(ORR_FAILED, "{}: step {} on rank {} makes {}, {}", place_of(launch.op), step_, plan_.rank,
       made, origin);
}

}  // namespace orrery
