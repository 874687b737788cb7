// SPDX-License-Identifier: Apache-2.0
//
// The editing calls that strategies get (orr_edit), grouped by what they are about, and the helpers
// that they share.
#pragma once

#include <orrery/driver.h>
#include <orrery/strategy.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "edit/edit.h"

namespace orrery {

// The table by which a strategy asks for its options. REQUIRES: `use` outlives it.
orr_options options_of(const StrategyUse& use);
// Throws Error for an option that the strategy does not know or that has the wrong type.
void check_options(const StrategyUse& use, const orr_strategy_info& info);

// Calls a hook; its errors get the Lua line of the strategy.
template <class Call>
void call_hook(const std::string& line, Call call) {
  try {
    call();
  } catch (const Error& e) {
    throw Error(e.code(), (line.empty() ? "" : line + ": ") + e.what());
  }
}

// Lets the driver that was asked for edit the complete step and write the programs beside it. From
// then on each rank runs the step by itself. Throws Error if another strategy needs steps that
// ranks take together.
void write_driven(Program& step, const Mesh& mesh, Asked& asked, int64_t microbatches,
                  const std::map<std::string, ValueId>& gradients);

namespace edit {

// Check what a plugin passes and convert it. The op is not appended yet.
void check_value(const orr_program*, int32_t value);
void check_list(const std::string& whose, const char* what, int32_t n, const void* list);
Attr attr_of(const orr_attr&);
Op op_of(orr_program*, const orr_op_desc&);
// Copies as many as fit, and returns how many there are.
int32_t copied(const std::vector<int32_t>& from, int32_t* to, int32_t capacity);
// Appends the op, or what a plugin writes that brings it, copies the ids of its results to `out` as
// `copied` does, and returns how many there are.
int32_t append(orr_program*, Op op, int32_t* out, int32_t capacity);

// A copy of the hook, which calls its `release` when the last user of the copy is gone.
template <class Hook>
std::shared_ptr<Hook> kept(const Hook& hook) {
  return {new Hook(hook), [](Hook* h) {
            if (h->release) h->release(h->arg);
            delete h;
          }};
}

orr_value_info info_of(const Program&, const Value&);
// Throws Error if there is no such axis.
const Axis& find_axis(orr_program*, const char* name);

// -- the strategy's own ops, states, gradient hooks and periodic programs (ops.cpp) ----------
orr_status* add_op(orr_program*, const orr_op_desc*, int32_t* out, int32_t capacity, int32_t* n);
orr_status* make_state(orr_program*, const orr_state_desc*, int32_t* out);
orr_status* update(orr_program*, int32_t state, int32_t value);
int32_t updated(orr_program*, int32_t state);
orr_status* exchange(orr_program*, const char* axis, const orr_gradient_hook*);
orr_status* independent(orr_program*, const char* axis);
orr_status* average(orr_program*, const char* axis, int32_t every, int32_t states);
orr_status* every(orr_program*, int32_t every, int32_t rounds, const orr_program_hook*);

// -- changing ops of the program: what they read, in which dtype they compute (change.cpp) ---
orr_status* info(orr_program*, int32_t value, orr_value_info* out);
orr_status* maker(orr_program*, int32_t value, void* arg,
                  orr_status* (*visit)(void* arg, const orr_op_desc*));
orr_status* beside(orr_program*, int32_t value, int32_t phase);
orr_status* before(orr_program*, int32_t value);
orr_status* copy(orr_program*, int32_t value, int32_t phase, const int32_t* in, int32_t n_in,
                 int32_t* out, int32_t capacity, int32_t* n);
orr_status* replace(orr_program*, int32_t value, int32_t by, uint32_t uses);
orr_status* reread(orr_program*, int32_t of, int32_t value, int32_t by);
orr_status* retype(orr_program*, int32_t value, int32_t compute, int32_t store);

// -- how values lie over the ranks of an axis (place.cpp) ------------------------------------
orr_status* place(orr_program*, int32_t value, const char* axis, int32_t dim);
orr_status* scatter(orr_program*, const char* axis, int32_t dim);
orr_status* chunk(orr_program*, const char* axis, int32_t chunks);

// -- the whole step: its cotangent, results, the finished update (step.cpp) ------------------
int32_t trains(orr_program*);
orr_status* cotangent(orr_program*, int32_t value);
orr_status* output(orr_program*, const char* name, int32_t value);
orr_status* complete(orr_program*, const orr_complete_hook*);

// -- driving the ranks, orrery/driver.h (driving.cpp) ---------------------------------------------
orr_status* drive(orr_program*, const orr_driver*);
orr_status* program(orr_program*, const char* name, int32_t rank, orr_program** out);
orr_status* copy_part(orr_program*, const orr_part*, int32_t* out);
int32_t gradient(orr_program*, int32_t parameter);

}  // namespace edit
}  // namespace orrery
