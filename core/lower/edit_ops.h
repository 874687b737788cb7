// SPDX-License-Identifier: Apache-2.0
//
// The editing calls by which a strategy writes program of its own: ops, states, what becomes of
// gradients, and programs with a clock of their own.
#pragma once

#include <orrery/strategy.h>

#include <memory>

#include "program/program.h"

namespace orrery::edit {

// What plugins hand over, checked: a value, an attribute, an op that is not appended yet.
void check_value(const orr_program*, int32_t value);
Attr attr_of(const orr_attr&);
Op op_of(orr_program*, const orr_op_desc&);

// What a hook's owner gave, until the host is through with it.
template <class Hook>
std::shared_ptr<Hook> kept(const Hook& hook) {
  return {new Hook(hook), [](Hook* h) {
            if (h->release) h->release(h->arg);
            delete h;
          }};
}

orr_status* add_op(orr_program*, const orr_op_desc*, int32_t* out, int32_t capacity, int32_t* n);
orr_status* make_state(orr_program*, const orr_state_desc*, int32_t* out);
orr_status* update(orr_program*, int32_t state, int32_t value);
int32_t updated(orr_program*, int32_t state);
orr_status* exchange(orr_program*, const char* axis, const orr_gradient_hook*);
orr_status* independent(orr_program*, const char* axis);
orr_status* average(orr_program*, const char* axis, int32_t every, int32_t states);
orr_status* every(orr_program*, int32_t every, int32_t rounds, const orr_program_hook*);

}  // namespace orrery::edit
