// SPDX-License-Identifier: Apache-2.0
#include "conformance/kernel/script_cases.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "conformance/kernel/cases.h"

namespace kernel_suite {
namespace {

using Json = nlohmann::json;

std::vector<orr_tensor> tensors_of(const Json& list) {
  std::vector<orr_tensor> all;
  for (const Json& t : list)
    all.push_back(strided(t["dtype"].get<int32_t>(), t["dims"].get<std::vector<int64_t>>(),
                          t["strides"].get<std::vector<int64_t>>()));
  return all;
}

std::vector<Attr> attrs_of(const Json& named) {
  std::vector<Attr> all;
  for (const auto& [name, value] : named.items())
    all.push_back(value.is_string()           ? text(name, value.get<std::string>())
                  : value.is_number_integer() ? integer(name, value.get<int64_t>())
                                              : real(name, value.get<double>()));
  return all;
}

std::vector<orr_instr> instrs_of(const Json& list) {
  std::vector<orr_instr> all;
  for (const Json& i : list)
    all.push_back({i[0].get<int32_t>(), i[1].get<int32_t>(), i[2].get<int32_t>(),
                   i[3].get<int32_t>(), i[4].get<int32_t>(), 0, i[5].get<double>()});
  return all;
}

// A case of the table with the same op and as many tensors.
const Case& like(const Case& c, const std::vector<Case>& table) {
  for (const Case& known : table)
    if (known.kind == c.kind &&
        (!c.instrs.empty() || (known.in.size() == c.in.size() && known.out.size() == c.out.size())))
      return known;
  orrery::fail(ORR_UNIMPLEMENTED, "the judge has no case of the op '{}' with {} inputs", c.kind,
               c.in.size());
}

// Reals are away from 0, where expressions have poles; whole numbers are seeds, steps or places
// that every shape has.
Fill of_expression(const orr_tensor& t) { return is_real(t.dtype) ? positive() : below(2); }

void fill_like(Case& c, const Case& known) {
  for (size_t i = 0; i < c.in.size(); ++i) {
    Fill fill = c.instrs.empty() && i < known.fills.size() ? known.fills[i] : Fill{};
    if (!c.instrs.empty()) fill = of_expression(c.in[i]);
    if (fill.kind == FillKind::kValues) fill = values(Values(size_t(elements(c.in[i])), 0.0));
    c.fills.push_back(fill);
  }
}

// The length of the longest sum, or more.
double depth_of(const Case& c) {
  int64_t longest = 1;
  for (const auto* all : {&c.in, &c.out})
    for (const orr_tensor& t : *all)
      for (int d = 0; d < t.rank; ++d) longest = std::max(longest, t.dims[d]);
  return 2 * double(longest);
}

}  // namespace

std::vector<ScriptCase> script_cases(const std::string& json) {
  const std::vector<Case> table = all_cases();
  std::vector<ScriptCase> cases;
  for (const Json& op : Json::parse(json)) {
    Case c;
    c.kind = op["kind"].get<std::string>();
    c.note = std::to_string(cases.size());
    c.in = tensors_of(op["in"]), c.out = tensors_of(op["out"]);
    c.attrs = attrs_of(op["attrs"]);
    if (op.contains("instrs"))
      c.instrs = instrs_of(op["instrs"]), c.stored = op["stored"].get<std::vector<int32_t>>();
    const Case& known = like(c, table);
    fill_like(c, known);
    c.derive = known.derive, c.oracle = known.oracle, c.depth = depth_of(c);
    cases.push_back({c, op["where"].get<std::string>(), op["flops"].get<double>()});
  }
  return cases;
}

}  // namespace kernel_suite
