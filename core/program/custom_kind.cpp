// SPDX-License-Identifier: Apache-2.0
#include "program/custom_kind.h"

#include <map>
#include <memory>

namespace orrery {
namespace {

struct Row {
  CustomKind kind;
  OpDef def;
};

// Rows keep their addresses, because programs and plans on other threads read them.
std::map<std::string, std::unique_ptr<Row>>& rows() {
  static std::map<std::string, std::unique_ptr<Row>> all;
  return all;
}

const CustomKind& kind_of(const std::string& name) { return rows().at(name)->kind; }

std::vector<Type> infer(const OpArgs& args) { return kind_of(args.kind).infer(args); }

Sharding sharding(const OpArgs& args, const std::vector<Type>& out) {
  Sharding s = kind_of(args.kind).sharding(args, out);
  s.sums = kind_of(args.kind).sums;
  return s;
}

void gradient(Gradient& g, const Op& op) { kind_of(op.kind).gradient(g, op); }

Cost cost(const OpArgs& args, const std::vector<Type>& out) {
  return kind_of(args.kind).cost(args, out);
}

KernelForm form(const Op&, const std::vector<Strided>& in, const std::vector<Strided>& out) {
  return contiguous_form(in, out);
}

bool on_parts(OnParts& parts, const Op& op) { return kind_of(op.kind).on_parts(parts, op); }

constexpr PartsRule by_kind{.run = on_parts};

}  // namespace

void add_kind(CustomKind kind) {
  const std::string name = kind.name;
  auto row = std::make_unique<Row>(Row{std::move(kind), {}});
  row->def = OpDef{row->kind.name.c_str(), infer, sharding, gradient, cost, form, &by_kind}
                 .with_eight_bits(takes_eight_bits);  // or infer refuses them
  rows()[name] = std::move(row);
}

const OpDef* custom_kind(const std::string& name) {
  const auto at = rows().find(name);
  return at == rows().end() ? nullptr : &at->second->def;
}

const CustomKind* find_custom(const std::string& name) {
  const auto at = rows().find(name);
  return at == rows().end() ? nullptr : &at->second->kind;
}

}  // namespace orrery
