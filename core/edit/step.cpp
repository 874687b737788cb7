// SPDX-License-Identifier: Apache-2.0
#include "edit/calls.h"

#include "base/error.h"
#include "edit/edit_table.h"
#include "edit/metric_name.h"
#include "plugin/host.h"

namespace orrery::edit {

int32_t trains(orr_program* e) { return e->training ? 1 : 0; }

orr_status* cotangent(orr_program* e, int32_t value) {
  return guarded([&] {
    check_value(e, value);
    ValueId& asked = e->asked->cotangent;
    if (!e->forward) fail(ORR_INVALID, "the program is differentiated already");
    if (asked != kNone)
      fail(ORR_INVALID, "the loss is differentiated times {} already", title(*e->program, asked));
    if (e->program->type(value) != Type{ORR_F32, {}})
      fail(ORR_INVALID, "the loss cannot be differentiated times {}: give one number of f32",
           to_string(e->program->type(value)));
    asked = value;
  });
}

orr_status* output(orr_program* e, const char* name, int32_t value) {
  return guarded([&] {
    check_value(e, value);
    check_metric_name(name, "the result");
    for (auto& [known, id] : e->program->outputs())
      if (known == name) fail(ORR_INVALID, "the step has a result '{}' already", name);
    if (const Value& v = e->program->value(value); v.batch() != Batch::none)
      fail(ORR_INVALID, "the result '{}' is no value of the whole step: add it up, with total",
           name);
    e->program->output(name, value);
  });
}

orr_status* complete(orr_program* e, const orr_complete_hook* hook) {
  return guarded([&] {
    if (!hook->complete) fail(ORR_INVALID, "the hook's `complete` is NULL");
    if (hook->decides < ORR_COMPLETE_STEP || hook->decides > ORR_COMPLETE_LAST)
      fail(ORR_INVALID, "there is no time {} to call a hook of `complete`", hook->decides);
    e->asked->completing.push_back(
        {e->strategy, e->use->line, hook->what ? hook->what : "decision",
         static_cast<CompleteHook::When>(hook->decides),
         [kept = kept(*hook), later = LaterEdits(e)](Program& p, ValueId loss, ValueId norm) {
           orr_program now = later.of(p);
           check(kept->complete(kept->arg, &now, &edit_table, loss, norm),
                 "strategy." + later.use().name);
           settle(now);
         }});
  });
}

}  // namespace orrery::edit
