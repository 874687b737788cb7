// SPDX-License-Identifier: Apache-2.0
//
// The editing calls that look at ops which are there, and change what they read and compute in
// (program/rewrite.h).
#pragma once

#include <orrery/strategy.h>

#include "program/program.h"

namespace orrery::edit {

orr_value_info info_of(const Program&, const Value&);

orr_status* info(orr_program*, int32_t value, orr_value_info* out);
orr_status* maker(orr_program*, int32_t value, void* arg,
                  orr_status* (*visit)(void* arg, const orr_op_desc*));
orr_status* beside(orr_program*, int32_t value, int32_t phase);
orr_status* copy(orr_program*, int32_t value, int32_t phase, const int32_t* in, int32_t n_in,
                 int32_t* out, int32_t capacity, int32_t* n);
orr_status* replace(orr_program*, int32_t value, int32_t by, uint32_t uses);
orr_status* reread(orr_program*, int32_t of, int32_t value, int32_t by);
orr_status* retype(orr_program*, int32_t value, int32_t compute, int32_t store);

}  // namespace orrery::edit
