// SPDX-License-Identifier: Apache-2.0
#include "lower/plugin_ops.h"

#include <algorithm>
#include <cctype>
#include <memory>

#include "base/error.h"
#include "lower/abi_op.h"
#include "lower/edit_ops.h"
#include "lower/edit_table.h"
#include "plugin/host.h"
#include "plugin/registry.h"
#include "program/op.h"

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
  if (info.n_in < 1 || info.n_options < 0 || (info.n_options > 0 && !info.options))
    fail(ORR_INVALID, "{}: {} inputs and {} options cannot be", who, info.n_in, info.n_options);
  PluginOp op{info.name,
              info.summary ? info.summary : "",
              plugin,
              number,
              info.n_in,
              info.n_examples,
              info.gradient != 0,
              {}};
  for (int32_t i = 0; i < info.n_options; ++i) {
    const orr_attr& option = info.options[i];
    if (!is_name(option.name) || option.type == ORR_ATTR_INTS)
      fail(ORR_INVALID, "{}: option {} has no name, or is a list", who, i + 1);
    op.options.emplace_back(option.name, edit::attr_of(option));
  }
  return op;
}

// -- what a plugin writes with --------------------------------------------------------------------

void check_writable(const Op& op) {
  if (names_axis(op.kind) || op.kind == "categorical")
    fail(ORR_INVALID, "{} is not for ops: they compute the same on all ranks and in every step",
         op.kind);
  for (size_t i = 0; i < op.expr.instrs.size(); ++i) {
    const int32_t fn = op.expr.instrs[i].fn;
    const bool operand = fn == ORR_FN_INPUT || fn == ORR_FN_CONST;
    if (fn == ORR_FN_RAND || (!operand && i + 1 < op.expr.instrs.size()))
      fail(ORR_INVALID,
           "a pointwise op is one function of inputs and numbers, here: add an op for each");
  }
}

orr_status* write_op(orr_program* e, const orr_op_desc* desc, int32_t* out, int32_t capacity,
                     int32_t* n) {
  return guarded([&] {
    Op op = edit::op_of(e, *desc);
    check_writable(op);
    const size_t before = e->program->ops().size();
    e->program->append(std::move(op));
    const std::vector<ValueId>& made = e->program->ops()[before].out;
    *n = static_cast<int32_t>(made.size());
    std::copy_n(made.begin(), std::min(capacity, *n), out);
  });
}

orr_status* type_of(orr_program* e, int32_t value, orr_tensor* out) {
  return guarded([&] {
    edit::check_value(e, value);
    *out = Layout::contiguous(e->program->type(value)).abi();
  });
}

const orr_writer writer = {sizeof(orr_writer), write_op, type_of};

// -- a call ---------------------------------------------------------------------------------------

Type type_from(const orr_tensor& t, const std::string& who) {
  if (t.rank < 0 || t.rank > ORR_MAX_RANK || t.dtype < ORR_F32 || t.dtype > ORR_BOOL)
    fail(ORR_INVALID, "{}: rank {} and dtype {} cannot be", who, t.rank, t.dtype);
  return {t.dtype, Dims(t.dims, t.dims + t.rank)};
}

// What the plugin is given in each of its calls.
struct Call {
  Call(const Program& p, const PluginOp& op, std::vector<Attr> given, std::vector<ValueId> inputs)
      : op(op), options(std::move(given)), in(std::move(inputs)) {
    for (ValueId v : in) types.push_back(Layout::contiguous(p.type(v)).abi());
    for (size_t i = 0; i < options.size(); ++i)
      attrs.push_back(abi_attr(op.options[i].first, options[i]));
    abi = {sizeof abi, op.n_in, static_cast<int32_t>(attrs.size()), types.data(), attrs.data()};
  }
  Call(const Call&) = delete;

  const PluginOp op;
  const std::vector<Attr> options;
  const std::vector<ValueId> in;
  std::vector<orr_tensor> types;
  std::vector<orr_attr> attrs;
  orr_op_call abi{};
  ValueId y = kNone;  // as its readers see it
};

void check_made(const Program& p, ValueId v, const std::string& who) {
  if (v < 0 || static_cast<size_t>(v) >= p.values().size())
    p.fail_here(fmt::format("{} gave the value {}, which there is not", who, v));
}

ValueId forward(Program& p, const Call& call) {
  const orr_op_api& api = Registry::get().op(call.op.plugin);
  const std::string who = p.site().prefix() + "ops." + call.op.name;
  orr_tensor shape{};
  check(api.shape(api.self, call.op.number, &call.abi, &shape), who);
  const Type want = type_from(shape, who + ": shape");
  orr_program e{&p, nullptr, "", nullptr, nullptr, false};
  ValueId y = kNone;
  check(api.forward(api.self, call.op.number, &call.abi, &e, &writer, call.in.data(), &y), who);
  check_made(p, y, "ops." + call.op.name + ": forward");
  if (p.type(y) != want)
    p.fail_here(fmt::format("ops.{}: shape says {}, but forward made {}", call.op.name,
                            to_string(want), to_string(p.type(y))));
  return y;
}

std::vector<ValueId> backward(Program& p, const Call& call, ValueId dy) {
  const orr_op_api& api = Registry::get().op(call.op.plugin);
  orr_program e{&p, nullptr, "", nullptr, nullptr, false};
  std::vector<ValueId> dx(call.in.size(), kNone);
  check(api.backward(api.self, call.op.number, &call.abi, &e, &writer, call.in.data(), call.y, dy,
                     dx.data()),
        p.site().prefix() + "ops." + call.op.name + ": backward");
  for (ValueId v : dx)
    if (v != kNone) check_made(p, v, "ops." + call.op.name + ": backward");
  return dx;
}

}  // namespace

const std::vector<PluginOp>& plugin_ops() {
  static std::vector<PluginOp> found;
  static std::vector<std::string> asked;
  for (const std::string& plugin : Registry::get().names(ORR_KIND_OP)) {
    if (std::count(asked.begin(), asked.end(), plugin)) continue;
    const orr_op_api& api = Registry::get().op(plugin);
    for (int32_t i = 0; i < api.count(api.self); ++i) {
      PluginOp op = described(plugin, i);
      for (const PluginOp& other : found)
        if (other.name == op.name)
          fail(ORR_INVALID, "ops.{} is in two plugins, '{}' and '{}': remove one of them", op.name,
               other.plugin, plugin);
      found.push_back(std::move(op));
    }
    asked.push_back(plugin);
  }
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

ValueId add_plugin_op(Program& p, const PluginOp& op, const std::vector<Attr>& options,
                      const std::vector<ValueId>& in) {
  auto call = std::make_shared<Call>(p, op, options, in);
  call->y = forward(p, *call);
  if (op.gradient)
    call->y =
        p.with_gradient(call->y, in, [call, &p](ValueId dy) { return backward(p, *call, dy); });
  return call->y;
}

}  // namespace orrery
