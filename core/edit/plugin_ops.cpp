// SPDX-License-Identifier: Apache-2.0
#include "edit/plugin_ops.h"

#include <algorithm>
#include <cctype>
#include <memory>
#include <stdexcept>
#include <unordered_set>

#include "base/error.h"
#include "base/text.h"
#include "edit/calls.h"
#include "edit/edit_table.h"
#include "edit/op_call.h"
#include "edit/op_on_parts.h"
#include "plugin/host.h"
#include "plugin/registry.h"
#include "program/custom_kind.h"
#include "program/op.h"
#include "program/user_gradient.h"

namespace orrery {
namespace {

bool is_name(const char* text) {
  if (!text || !*text || std::isdigit(static_cast<unsigned char>(*text))) return false;
  for (; *text; ++text)
    if (!std::isalnum(static_cast<unsigned char>(*text)) && *text != '_') return false;
  return true;
}

PluginOp described(const std::string& plugin, int32_t number) {
  const orr_op_api& api = Registry::get().op(plugin);
  const std::string who = fmt::format("op '{}': describe of op {}", plugin, number);
  orr_op_info info{};
  info.size = sizeof info;
  check(api.describe(api.self, number, &info), who);
  if (!is_name(info.name))
    fail(ORR_INVALID, "{}: its name '{}' is none of letters, digits and _", who,
         info.name ? info.name : "");
  if (info.n_in < 1 || info.n_out < 0 || info.n_options < 0 ||
      (info.n_options > 0 && !info.options))
    fail(ORR_INVALID, "{}: {} inputs, {} results and {} options cannot be", who, info.n_in,
         info.n_out, info.n_options);
  if (info.kernel < 0 || info.kernel > 2)
    fail(ORR_INVALID, "{}: kernel is {}, expected 0, 1 or 2", who, info.kernel);
  PluginOp op;
  op.name = info.name, op.summary = info.summary ? info.summary : "", op.plugin = plugin;
  op.number = number, op.n_in = info.n_in, op.n_examples = info.n_examples;
  op.n_out = std::max(info.n_out, 1);
  if (info.sums && info.kernel == 0)
    fail(ORR_INVALID, "{}: sums is for ops that kernels compute, and kernel is 0", who);
  op.sums = info.sums != 0, op.gradient = info.gradient != 0, op.kernel = info.kernel != 0,
  op.known = info.kernel != 1;
  for (int32_t i = 0; i < info.n_options; ++i) {
    const orr_attr& option = info.options[i];
    if (!is_name(option.name) || option.type < ORR_ATTR_INT || option.type > ORR_ATTR_TEXT)
      fail(ORR_INVALID, "{}: option {} has no name, or is no integer, real or text", who, i + 1);
    if (option.type == ORR_ATTR_TEXT && !option.text)
      fail(ORR_INVALID, "{}: option '{}' is a text and has none", who, option.name);
    op.options.emplace_back(option.name, edit::attr_of(option));
  }
  return op;
}

// -- what a plugin writes -------------------------------------------------------------------------

std::vector<ValueId> forward(Program& p, const OpCall& call, const std::vector<ValueId>& in) {
  const std::string who = p.site().prefix() + "ops." + call.op.name;
  const std::vector<Type> want = shapes_of(call, who);
  orr_program e = op_program(p);
  std::vector<ValueId> made(want.size(), kNone);
  check(call.api().forward(call.api().self, call.op.number, &call.abi, &e, &op_writer, in.data(),
                           made.data()),
        who);
  for (size_t i = 0; i < made.size(); ++i) {
    check_made(p, made[i], "ops." + call.op.name + ": forward");
    if (p.type(made[i]) != want[i])
      p.fail_here(fmt::format("ops.{}: shape says {}, but forward made {}{}", call.op.name,
                              to_string(want[i]), to_string(p.type(made[i])),
                              made.size() > 1 ? fmt::format(" as result {}", i + 1) : ""));
  }
  return made;
}

// The cotangents of the inputs, of those of the results; kNone: 0.
std::vector<ValueId> backward(Program& p, const OpCall& call, const std::vector<ValueId>& in,
                              const std::vector<ValueId>& y, const std::vector<ValueId>& dy) {
  orr_program e = op_program(p);
  std::vector<ValueId> dx(in.size(), kNone);
  const orr_op_api& api = call.api();
  check(y.size() == 1 ? api.backward(api.self, call.op.number, &call.abi, &e, &op_writer, in.data(),
                                     y[0], dy[0], dx.data())
                      : api.backward_of(api.self, call.op.number, &call.abi, &e, &op_writer,
                                        in.data(), y.data(), dy.data(), dx.data()),
        p.site().prefix() + "ops." + call.op.name + ": backward");
  for (size_t i = 0; i < in.size(); ++i) {
    if (dx[i] == kNone) continue;
    check_made(p, dx[i], "ops." + call.op.name + ": backward");
    if (p.type(dx[i]) != p.type(in[i]))
      p.fail_here(
          fmt::format("ops.{}: the gradient of input {} is {}, the input {}: give one "
                      "of its shape and dtype",
                      call.op.name, i + 1, to_string(p.type(dx[i])), to_string(p.type(in[i]))));
  }
  return dx;
}

// -- ops that kernels compute, as a kind of the program -------------------------------------------

std::vector<int> factors_of(const OpCall& call, int32_t input, size_t rank) {
  std::vector<int32_t> found(rank, -1);
  check(call.api().factors(call.api().self, call.op.number, &call.abi, input, found.data()),
        "ops." + call.op.name + ": factors");
  return {found.begin(), found.end()};
}

// Whether a factor belongs to a dim of this result, of this extent; or to none, if the op sums.
bool has_factor(const std::vector<int>& factors, const Type& result, int factor, int64_t extent,
                bool sums) {
  const auto at = std::find(factors.begin(), factors.end(), factor);
  if (at == factors.end()) return sums;
  return result.dims[static_cast<size_t>(at - factors.begin())] == extent;
}

// Checks that each factor of an input belongs to a dim of each result, of equal extent.
void check_factors(const OpCall& call, const Sharding& s, const std::vector<Type>& in,
                   const std::vector<Type>& out) {
  for (size_t i = 0; i < in.size(); ++i)
    for (size_t d = 0; d < s.in[i].size(); ++d)
      for (size_t j = 0; j < out.size(); ++j)
        if (const int factor = s.in[i][d];
            factor != kNone && !has_factor(s.out[j], out[j], factor, in[i].dims[d], call.op.sums))
          fail(ORR_INVALID,
               "ops.{}: factors say that dim {} of input {} is cut by factor {}, which is no dim "
               "of {} as long",
               call.op.name, d + 1, i + 1, factor,
               out.size() > 1 ? fmt::format("result {}", j + 1) : "the result");
}

Sharding sharding_of(const PluginOp& op, const OpArgs& args, const std::vector<Type>& out) {
  const OpCall call = call_of(op, args.in, args.attrs);
  Sharding s;
  for (size_t i = 0; i < args.in.size(); ++i)
    s.in.push_back(factors_of(call, static_cast<int32_t>(i), args.in[i].dims.size()));
  for (size_t j = 0; j < out.size(); ++j)
    s.out.push_back(factors_of(call, -1 - static_cast<int32_t>(j), out[j].dims.size()));
  check_factors(call, s, args.in, out);
  return s;
}

void gradient_of(const PluginOp& op, Gradient& g, const Op& at) {
  Program& p = g.p;
  if (!op.gradient)
    p.fail_here("ops." + op.name + " has no derivative: let none through, with :stop_gradient()");
  const OpCall call = call_of(op, args_of(p, at).in, at.attrs);
  std::vector<ValueId> dy;
  for (size_t j = 0; j < at.out.size(); ++j) dy.push_back(g.dy(static_cast<int>(j)));
  const std::vector<ValueId> dx = backward(p, call, at.in, at.out, dy);
  for (size_t i = 0; i < dx.size(); ++i)
    if (dx[i] != kNone && g.wanted(at.in[i])) g.add(at.in[i], dx[i]);
}

Cost cost_of(const PluginOp& op, const OpArgs& args, const std::vector<Type>& out) {
  const OpCall call = call_of(op, args.in, args.attrs);
  std::vector<orr_tensor> types;
  for (const Type& each : out) types.push_back(Strided::contiguous(each).abi());
  orr_op_cost cost{};
  cost.size = sizeof cost;
  check(call.api().cost(call.api().self, op.number, &call.abi, types.data(), &cost),
        "ops." + op.name + ": cost");
  if (!(cost.flops >= 0 && cost.bytes >= 0))
    fail(ORR_INVALID, "ops.{}: cost gave {} flops and {} bytes", op.name, cost.flops, cost.bytes);
  return {cost.flops, cost.bytes, cost.matrix != 0};
}

std::vector<ValueId> in_known_ops(const PluginOp& op, Program& p, const Op& at) {
  return forward(p, call_of(op, args_of(p, at).in, at.attrs), at.in);
}

void declare_kind(const PluginOp& op) {
  const auto& known = all_op_defs();
  if (std::any_of(known.begin(), known.end(),
                  [&](const OpDef* def) { return op.name == def->kind; }))
    fail(ORR_INVALID, "op '{}': the core has an op '{}' already: take another name", op.plugin,
         op.name);
  CustomKind kind;
  kind.name = op.name, kind.sums = op.sums;
  kind.infer = [op](const OpArgs& args) {
    return shapes_of(call_of(op, args.in, args.attrs), "ops." + op.name);
  };
  kind.sharding = [op](const OpArgs& args, const std::vector<Type>& out) {
    return sharding_of(op, args, out);
  };
  kind.gradient = [op](Gradient& g, const Op& at) { gradient_of(op, g, at); };
  kind.cost = [op](const OpArgs& args, const std::vector<Type>& out) {
    return cost_of(op, args, out);
  };
  kind.on_parts = [op](OnParts& parts, const Op& at) { return run_on_parts(parts, op, at); };
  if (op.known)
    kind.in_known_ops = [op](Program& p, const Op& at) { return in_known_ops(op, p, at); };
  add_kind(std::move(kind));
}

}  // namespace

const std::vector<PluginOp>& plugin_ops() {
  static std::vector<PluginOp> found;
  static std::vector<std::string> asked;
  for (const std::string& plugin : Registry::get().names(ORR_KIND_OP)) {
    if (std::count(asked.begin(), asked.end(), plugin)) continue;
    if (!Registry::get().loads(ORR_KIND_OP, plugin)) continue;
    const orr_op_api& api = Registry::get().op(plugin);
    for (int32_t i = 0; i < api.count(api.self); ++i) {
      PluginOp op = described(plugin, i);
      for (const PluginOp& other : found)
        if (other.name == op.name)
          fail(ORR_INVALID, "ops.{} is in two plugins, '{}' and '{}': remove one of them", op.name,
               other.plugin, plugin);
      if (op.kernel) declare_kind(op);
      found.push_back(std::move(op));
    }
    asked.push_back(plugin);
  }
  return found;
}

const PluginOp* find_plugin_op(const std::string& kind) {
  static const auto core = [] {
    std::unordered_set<std::string> all;
    for (const OpDef* def : all_op_defs()) all.insert(def->kind);
    return all;
  }();
  if (core.count(kind)) return nullptr;
  const auto& ops = plugin_ops();
  const auto at =
      std::find_if(ops.begin(), ops.end(), [&](const PluginOp& op) { return op.name == kind; });
  return at == ops.end() ? nullptr : &*at;
}

std::vector<Attr> options_given(const PluginOp& op, const Attrs& attrs) {
  std::vector<Attr> found;
  std::vector<std::string> known;
  for (const auto& [name, fallback] : op.options) {
    known.push_back(name);
    const Attr* given = attrs.find(name);
    const auto* whole = given ? std::get_if<int64_t>(given) : nullptr;
    if (whole && std::holds_alternative<double>(fallback))
      found.emplace_back(static_cast<double>(*whole));
    else
      found.push_back(given ? *given : fallback);
    if (found.back().index() != fallback.index())
      fail(ORR_INVALID, "ops.{}: option '{}' has another type than its default", op.name, name);
  }
  for (const auto& [name, value] : attrs)
    if (std::find(known.begin(), known.end(), name) == known.end())
      fail(ORR_INVALID, "ops.{}: unknown option '{}'{}", op.name, name,
           did_you_mean(std::string(name), known));
  return found;
}

std::vector<Type> example_of(const PluginOp& op, int32_t number) {
  const orr_op_api& api = Registry::get().op(op.plugin);
  std::vector<orr_tensor> in(static_cast<size_t>(op.n_in));
  const std::string who = fmt::format("ops.{}: example {}", op.name, number);
  check(api.example(api.self, op.number, number, in.data()), who);
  std::vector<Type> types;
  for (const orr_tensor& t : in) types.push_back(type_from(t, who));
  return types;
}

Sharding factors_of(const PluginOp& op, const std::vector<Type>& in) {
  if (!op.kernel) return {};
  const Attrs defaults;
  const Expr none;
  const OpArgs args{op.name, defaults, none, in};
  const OpDef& def = op_def(op.name);
  return def.sharding(args, def.infer(args));
}

std::vector<ValueId> add_plugin_op(Program& p, const PluginOp& op, const std::vector<Attr>& options,
                                   const std::vector<ValueId>& in, bool known) {
  if (op.kernel && !(known && op.known)) {
    Attrs attrs;
    for (size_t i = 0; i < options.size(); ++i) attrs.set(op.options[i].first, options[i]);
    return p.add(op.name, in, attrs);
  }
  std::vector<Type> types;
  for (ValueId v : in) types.push_back(p.type(v));
  const auto call = std::make_shared<OpCall>(op, types, options);
  const std::vector<ValueId> made = forward(p, *call, in);
  if (!op.gradient) return made;
  // Each result has the gradient of its own cotangent alone; they add up, since gradients are
  // linear in cotangents. The function is handed the other results behind the inputs.
  std::vector<ValueId> handed = in, results;
  handed.insert(handed.end(), made.begin(), made.end());
  const auto inputs = static_cast<std::ptrdiff_t>(in.size());
  for (size_t j = 0; j < made.size(); ++j)
    results.push_back(with_gradient(
        p, made[j], handed,
        [call, inputs, j, &p](ValueId dy, ValueId y, const std::vector<ValueId>& given) {
          std::vector<ValueId> all(given.begin() + inputs, given.end());
          std::vector<ValueId> cotangents(all.size(), kNone);
          all[j] = y, cotangents[j] = dy;
          std::vector<ValueId> dx =
              backward(p, *call, {given.begin(), given.begin() + inputs}, all, cotangents);
          dx.resize(given.size(), kNone);
          return dx;
        }));
  return results;
}

}  // namespace orrery
