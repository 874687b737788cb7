// SPDX-License-Identifier: Apache-2.0
//
// A rank's microbatches one after another (docs/design.md, "Lowering"): the order of a step in
// actions, and where the tree nodes of sums over the batch wait for their right neighbours.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "program/program.h"

namespace orrery {

// Parts of a step. `prologue` does not depend on the batch; `weight` is the part of backward that
// no other stage waits for.
enum class Segment : int8_t { prologue, forward, backward, weight, update };

// One segment of one pipeline chunk (Op::stage) for one of the rank's microbatches.
struct Action {
  Segment segment = Segment::forward;
  int chunk = 0;
  int microbatch = 0;
  auto operator<=>(const Action&) const = default;
};
std::string to_string(const Action& action);  // "F3 of chunk 1"

// F0 B0 F1 B1 ... of every chunk that the program has.
using ActionTables = std::vector<std::vector<Action>>;  // by coordinate of the pipeline

std::vector<Action> one_after_another(const Program& p, int64_t calls);

// The segment of each op. `apart`: what does not depend on the batch is `prologue`. `split`:
// backward that leads to no send is `weight`.
std::vector<Segment> segments_of(const Program& p, bool apart, bool split);

// When each action runs if forward takes 1, backward 2 (1 and 1 if the rank's table has weight
// actions) and messages nothing: `tables` has the actions of each rank along the pipeline. An
// action waits for the one before it on its rank, forward of chunk c for that of c-1, backward of c
// for that of c+1 and for its own forward. Throws Error if the tables wait for each other, or leave
// out or repeat a action.
struct Span {
  double begin = 0, end = 0;
};
std::map<Action, Span> simulate(const ActionTables& tables);

struct Timetable {
  explicit Timetable(ActionTables tables) : actions(std::move(tables)), times(simulate(actions)) {}
  ActionTables actions;
  std::map<Action, Span> times;
};

// The binary counter of a rank's microbatches [first, last) of `total`: each new microbatch goes on
// top of a stack; while the two nodes on top are siblings they are added. What remains are the
// rank's maximal nodes (orrery/ops.h, LEAVES), the first at the bottom.
struct NodeStack {
  NodeStack(int64_t first, int64_t last, int64_t total);
  std::vector<int> depth;   // by microbatch: where its node is put
  std::vector<int> merges;  // by microbatch: additions after it
  int slots = 0;            // the stack at its highest
};

}  // namespace orrery
