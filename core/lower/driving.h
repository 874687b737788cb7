// SPDX-License-Identifier: Apache-2.0
//
// The editing calls by which a strategy drives the ranks (orrery/driver.h), and what becomes of a
// step that it takes over.
#pragma once

#include <orrery/driver.h>

#include <map>
#include <string>

#include "lower/mesh.h"
#include "program/program.h"

namespace orrery {

// Lets the driver of `spread` edit the complete step and write the programs beside it. From then on
// ranks run the step alone. Throws Error where another strategy has asked for what ranks do
// together.
void write_driven(Program& step, Mesh& mesh, int64_t microbatches,
                  const std::map<std::string, ValueId>& gradients);

namespace edit {
orr_status* drive(orr_program*, const orr_driver*);
orr_status* program(orr_program*, const char* name, int32_t rank, orr_program** out);
orr_status* copy_part(orr_program*, const orr_part*, int32_t* out);
int32_t gradient(orr_program*, int32_t parameter);
}  // namespace edit

}  // namespace orrery
