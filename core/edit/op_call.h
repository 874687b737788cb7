// SPDX-License-Identifier: Apache-2.0
//
// One call of an op that a plugin brings, as its functions get it (orrery/op.h), and the table with
// which they write ops.
#pragma once

#include <orrery/op.h>

#include <string>
#include <vector>

#include "edit/edit_table.h"
#include "edit/plugin_ops.h"
#include "program/op.h"
#include "program/program.h"

namespace orrery {

struct OpCall {
  OpCall(const PluginOp& op, const std::vector<Type>& in, std::vector<Attr> given);
  OpCall(const OpCall&) = delete;

  const orr_op_api& api() const;

  const PluginOp op;
  const std::vector<Attr> options;  // all of them, in the order of `op`
  std::vector<orr_tensor> types;    // of the inputs
  std::vector<orr_attr> attrs;
  orr_op_call abi{};
};

// The call that an op of a program stands for, with inputs of these types. Throws
// std::invalid_argument if there are too few or too many.
OpCall call_of(const PluginOp& op, const std::vector<Type>& in, const Attrs& attrs);

// A type that a plugin has filled in. Throws Error if it is none.
Type type_from(const orr_tensor& t, const std::string& who);

// The types of the results. Throws Error with the plugin's words for inputs that do not fit.
std::vector<Type> shapes_of(const OpCall& call, const std::string& who);

// Throws Error, with the current site of p, if v is no value of p.
void check_made(const Program& p, ValueId v, const std::string& who);

// The handle and the table with which a plugin writes ops into p.
orr_program op_program(Program& p);
extern const orr_writer op_writer;
// Two of the table's functions, for a table of another `reduce`.
orr_status* write_op(orr_program*, const orr_op_desc*, int32_t* out, int32_t capacity, int32_t* n);
orr_status* type_of_value(orr_program*, int32_t value, orr_tensor* out);

}  // namespace orrery
