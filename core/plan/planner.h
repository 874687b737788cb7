// SPDX-License-Identifier: Apache-2.0
//
// Answers what scripts/orrery/plan.lua and search.lua ask about a step. A question is an object:
//
//   what          "step", or "json" for its text: all that docs/plan.md says of --json
//                 "layout": the step without its kinds of ranks; quicker
//                 "sketch": a layout whose ranks hold equal pieces of sharded state; much quicker
//                 "probe": what one rank of `world` does for one microbatch (plan/probe.h)
//                 "facts": of the model and the machine (plan/facts.h)
//                 "diff": what each strategy changes for `rank` (plan/diff.h)
//                 "counts", "peak": of the microbatch that fits (plan/fit.h)
//                 "digest": hashes of what every kind of rank will do (plan/digest.h)
//                 "layouts": how everything that `rank` reads and makes lies (plan/layouts.h)
//                 "ops": a text with the ops of rank 0 (plan/ops.h)
//   machine       the machine's file; "": one is assumed
//   world         how many ranks there are, if not those of the command line
//   microbatches  0: those of the script
//   room          of "layout" and "sketch": if rank 0 needs more bytes, its bytes are the answer
//   model_flops   of "facts", so that layouts need not count them
#pragma once

namespace orrery {

// Makes this library the planner of the process (edit/planner.h).
void use_planner();

}  // namespace orrery
