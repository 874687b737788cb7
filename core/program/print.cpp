// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "program/op.h"
#include "program/program.h"

namespace orrery {
namespace {

std::string attr_string(const Attr& attr) {
  if (auto* i = std::get_if<int64_t>(&attr)) return std::to_string(*i);
  if (auto* f = std::get_if<double>(&attr)) return fmt::format("{}", *f);
  if (auto* s = std::get_if<std::string>(&attr)) return "\"" + *s + "\"";
  return to_string(std::get<Dims>(attr));
}

std::string value_string(const Program& p, ValueId id) {
  const Value& v = p.value(id);
  std::string text = fmt::format("%{}:{}", id, to_string(v.type));
  if (v.batch() == Batch::sharded) text += fmt::format("@{}", v.batch_dim() + 1);
  if (v.batch() == Batch::partial) text += "@sum";
  if (v.batch() == Batch::mean) text += "@mean";
  return text;
}

}  // namespace

std::string title(const Program& p, ValueId value) {
  const Value& v = p.value(value);
  if (!v.name.empty() || v.producer == kNone) return "'" + v.name + "'";
  const Op& op = p.ops()[static_cast<size_t>(v.producer)];
  return fmt::format("the {} {} of {}{}", op.kind, to_string(v.type.dims), op.site.line,
                     op.site.region.empty() ? "" : " (" + op.site.region + ")");
}

std::string to_string(const Program& p) {
  static constexpr const char* kRoles[] = {"activation", "param",  "grad",  "state",      "input",
                                           "loss",       "scalar", "batch", "whole_batch"};
  static constexpr const char* kPhases[] = {"forward", "backward", "update"};
  std::string text;
  for (size_t i = 0; i < p.values().size(); ++i) {
    const Value& v = p.values()[i];
    if (v.producer == kNone)
      text += fmt::format("{} = {} \"{}\"\n", value_string(p, static_cast<ValueId>(i)),
                          kRoles[static_cast<int>(v.role)], v.name);
  }
  int phase = -1;
  for (const Op& op : p.ops()) {
    if (static_cast<int>(op.phase) != phase) {
      phase = static_cast<int>(op.phase);
      text += fmt::format("-- {}\n", kPhases[phase]);
    }
    for (size_t j = 0; j < op.out.size(); ++j) text += (j ? ", " : "") + value_string(p, op.out[j]);
    text += " = " + op.kind;
    for (ValueId v : op.in) text += fmt::format(" %{}", v);
    for (auto& [name, attr] : op.attrs) text += fmt::format(" {}={}", name, attr_string(attr));
    if (!op.expr.instrs.empty()) text += " {" + to_string(op.expr) + "}";
    if (!op.site.region.empty()) text += "  # " + op.site.region;
    text += "\n";
  }
  for (auto& [state, next] : p.updates()) text += fmt::format("%{} <- %{}\n", state, next);
  for (auto& [name, id] : p.outputs()) text += fmt::format("output \"{}\" %{}\n", name, id);
  return text;
}

}  // namespace orrery
