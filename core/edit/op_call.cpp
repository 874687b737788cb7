// SPDX-License-Identifier: Apache-2.0
#include "edit/op_call.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "edit/calls.h"
#include "lower/abi_op.h"
#include "plugin/host.h"
#include "plugin/registry.h"

namespace orrery {
namespace {

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

orr_status* no_reduce(orr_program*, int32_t, const char*, int32_t*) {
  return guarded([] { fail(ORR_INVALID, "reduce is for on_parts alone"); });
}

}  // namespace

const orr_writer op_writer = {sizeof(orr_writer), write_op, type_of_value, no_reduce};

OpCall::OpCall(const PluginOp& op, const std::vector<Type>& in, std::vector<Attr> given)
    : op(op), options(std::move(given)) {
  for (const Type& t : in) types.push_back(Strided::contiguous(t).abi());
  for (size_t i = 0; i < options.size(); ++i)
    attrs.push_back(abi_attr(op.options[i].first, options[i]));
  abi = {sizeof abi, op.n_in, static_cast<int32_t>(attrs.size()), types.data(), attrs.data(),
         op.n_out,   0};
}

const orr_op_api& OpCall::api() const { return Registry::get().op(op.plugin); }

OpCall call_of(const PluginOp& op, const std::vector<Type>& in, const Attrs& attrs) {
  if (in.size() != static_cast<size_t>(op.n_in))
    throw std::invalid_argument(fmt::format("takes {} inputs, not {}", op.n_in, in.size()));
  std::vector<Attr> options;
  for (const auto& [name, fallback] : op.options) {
    const Attr* given = attrs.find(name);
    options.push_back(given ? *given : fallback);
  }
  return {op, in, std::move(options)};
}

Type type_from(const orr_tensor& t, const std::string& who) {
  if (t.rank < 0 || t.rank > ORR_MAX_RANK || t.dtype < ORR_F32 || t.dtype > ORR_BOOL)
    fail(ORR_INVALID, "{}: rank {} and dtype {} cannot be", who, t.rank, t.dtype);
  return {t.dtype, Dims(t.dims, t.dims + t.rank)};
}

void check_made(const Program& p, ValueId v, const std::string& who) {
  if (v < 0 || static_cast<size_t>(v) >= p.values().size())
    p.fail_here(fmt::format("{} gave the value {}, which there is not", who, v));
}

std::vector<Type> shapes_of(const OpCall& call, const std::string& who) {
  std::vector<orr_tensor> shapes(static_cast<size_t>(call.op.n_out));
  check(call.api().shape(call.api().self, call.op.number, &call.abi, shapes.data()), who);
  std::vector<Type> types;
  for (const orr_tensor& each : shapes) types.push_back(type_from(each, who + ": shape"));
  return types;
}

orr_program op_program(Program& p) { return {&p, nullptr, nullptr, "", nullptr, nullptr, false}; }

orr_status* write_op(orr_program* e, const orr_op_desc* desc, int32_t* out, int32_t capacity,
                     int32_t* n) {
  return guarded([&] {
    Op op = edit::op_of(e, *desc);
    if (!find_plugin_op(op.kind)) check_writable(op);
    *n = edit::append(e, std::move(op), out, capacity);
  });
}

orr_status* type_of_value(orr_program* e, int32_t value, orr_tensor* out) {
  return guarded([&] {
    edit::check_value(e, value);
    *out = Strided::contiguous(e->program->type(value)).abi();
  });
}

}  // namespace orrery
