// SPDX-License-Identifier: Apache-2.0
//
// The order of a step whose microbatches run one after another (docs/design.md, "Lowering"), as a
// list of actions, and where the tree nodes of sums over the batch wait for their right neighbours.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "program/program.h"

namespace orrery {

// Parts of a step. `prologue` does not depend on the batch: it runs once. `weight` is the part of
// backward that no other stage waits for: the gradients of the weights (zero-bubble pipelines).
enum class Segment : int8_t { prologue, forward, backward, weight, update };

// One segment of one pipeline chunk (Op::stage) for one of the rank's microbatches.
struct Action {
  Segment segment = Segment::forward;
  int chunk = 0;
  int microbatch = 0;
  auto operator<=>(const Action&) const = default;
};
std::string to_string(const Action& action);  // "F3 of chunk 1"

using ActionTables = std::vector<std::vector<Action>>;  // by coordinate of the pipeline

// F0 B0 F1 B1 ... of every chunk that the program has.
std::vector<Action> one_after_another(const Program& p, int64_t calls);

// By op: whether it makes, or sends, only what is the same for all microbatches, from nothing that
// is gathered for each of them (CommOp::each).
std::vector<bool> once_a_step(const Program& p);

// The segment of each op. Only `with_prologue` ops that run once_a_step are in `prologue`, and only
// `with_weight` backward ops whose results no other stage waits for are in `weight`.
std::vector<Segment> segments_of(const Program& p, bool with_prologue, bool with_weight);

// When each action of the tables runs, if forward takes time 1, backward 2 (backward 1 and weight 1
// where the rank's table has weight actions) and messages take none. An action waits for the one
// before it on its rank; forward of chunk c waits for that of c-1, backward of c for that of c+1
// and for its own forward. Throws Error if the tables wait for each other, or leave out or repeat
// an action.
struct Span {
  double begin = 0, end = 0;
};
std::map<Action, Span> simulate(const ActionTables& tables);

struct Timetable {
  explicit Timetable(ActionTables tables) : actions(std::move(tables)), times(simulate(actions)) {}
  ActionTables actions;
  std::map<Action, Span> times;
};

// How the microbatches [first, last) of `total` are added one after another, like a binary counter:
// each new one goes on top of a stack, and while the two nodes on top are siblings in the tree,
// they are added. In the end the stack has the rank's maximal nodes (orrery/ops.h, LEAVES), the
// first at the bottom.
struct NodeStack {
  NodeStack(int64_t first, int64_t last, int64_t total);
  std::vector<int> depth;   // by microbatch: the slot that its node is put in
  std::vector<int> merges;  // by microbatch: how many additions follow it
  int slots = 0;            // the largest height of the stack
};

}  // namespace orrery
