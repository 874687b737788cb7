// SPDX-License-Identifier: Apache-2.0
#include "partition/timetable.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"

namespace orrery {
namespace {

// The actions that an action waits for, besides the one before it on its rank.
std::vector<Action> needs(const Action& c, int last_chunk) {
  std::vector<Action> found;
  if (c.segment == Segment::forward && c.chunk > 0)
    found.push_back({Segment::forward, c.chunk - 1, c.microbatch});
  if (c.segment == Segment::backward) {
    found.push_back({Segment::forward, c.chunk, c.microbatch});
    if (c.chunk < last_chunk) found.push_back({Segment::backward, c.chunk + 1, c.microbatch});
  }
  if (c.segment == Segment::weight) found.push_back({Segment::backward, c.chunk, c.microbatch});
  return found;
}

// Every chunk runs the same microbatches in order, each forward and backward once.
void check_complete(const ActionTables& tables) {
  std::map<std::pair<Segment, int>, int> next;
  for (auto& table : tables)
    for (const Action& c : table)
      if (int& microbatch = next[{c.segment, c.chunk}]; c.microbatch != microbatch++)
        fail(ORR_INVALID, "the schedule runs {} where microbatch {} is due", to_string(c),
             microbatch - 1);
  for (auto& [part, n] : next)
    if (n != next.begin()->second)
      fail(ORR_INVALID,
           "the schedule runs {} microbatches of one part of a chunk and {} of another", n,
           next.begin()->second);
}

}  // namespace

std::string to_string(const Action& action) {
  static constexpr const char* kNames[] = {"P", "F", "B", "W", "U"};
  return fmt::format("{}{} of chunk {}", kNames[static_cast<int>(action.segment)],
                     action.microbatch, action.chunk);
}

std::map<Action, Span> simulate(const ActionTables& tables) {
  check_complete(tables);
  int last_chunk = 0;
  bool split = false;
  size_t left = 0;
  for (auto& table : tables) {
    left += table.size();
    for (const Action& c : table)
      last_chunk = std::max(last_chunk, c.chunk), split |= c.segment == Segment::weight;
  }
  std::map<Action, Span> done;
  std::vector<size_t> at(tables.size());
  std::vector<double> free(tables.size());
  for (bool moved = true; left && moved;) {
    moved = false;
    for (size_t r = 0; r < tables.size(); ++r)
      for (; at[r] < tables[r].size(); ++at[r], --left, moved = true) {
        const Action& c = tables[r][at[r]];
        double begin = free[r];
        bool ready = true;
        for (const Action& need : needs(c, last_chunk)) {
          auto known = done.find(need);
          ready = ready && known != done.end();
          if (ready) begin = std::max(begin, known->second.end);
        }
        if (!ready) break;
        free[r] = begin + (c.segment == Segment::backward && !split ? 2 : 1);
        done[c] = {begin, free[r]};
      }
  }
  if (!left) return done;
  std::string stuck;
  for (size_t r = 0; r < tables.size(); ++r)
    if (at[r] < tables[r].size())
      stuck +=
          fmt::format("{}rank {} at {}", stuck.empty() ? "" : ", ", r, to_string(tables[r][at[r]]));
  fail(ORR_INVALID, "the schedule waits for itself: {}", stuck);
}

std::vector<Action> one_after_another(const Program& p, int64_t calls) {
  std::set<int> chunks;
  for (const Op& op : p.ops()) chunks.insert(op.stage);
  std::vector<Action> actions;
  for (int s = 0; s < calls; ++s) {
    for (int c : chunks) actions.push_back({Segment::forward, c, s});
    for (auto c = chunks.rbegin(); c != chunks.rend(); ++c)
      actions.push_back({Segment::backward, *c, s});
  }
  return actions;
}

std::vector<bool> once_a_step(const Program& p) {
  std::vector<char> of_each(p.values().size());
  std::vector<bool> once;
  for (const Op& op : p.ops()) {
    const std::vector<ValueId>& made = op.kind == "send" ? op.in : op.out;
    const bool each = op.exchange().each || std::any_of(op.in.begin(), op.in.end(), [&](ValueId v) {
                        return of_each[static_cast<size_t>(v)] != 0;
                      });
    for (ValueId v : op.out) of_each[static_cast<size_t>(v)] = each;
    once.push_back(!each && std::all_of(made.begin(), made.end(), [&](ValueId v) {
      return p.value(v).batch() == Batch::none;
    }));
  }
  return once;
}

std::vector<Segment> segments_of(const Program& p, bool with_prologue, bool with_weight) {
  const std::vector<bool> once = once_a_step(p);
  std::vector<Segment> found;
  for (size_t i = 0; i < p.ops().size(); ++i) {
    const Phase phase = p.ops()[i].phase;
    found.push_back(phase == Phase::update     ? Segment::update
                    : with_prologue && once[i] ? Segment::prologue
                    : phase == Phase::forward  ? Segment::forward
                                               : Segment::backward);
  }
  if (!with_weight) return found;
  std::set<ValueId> sent;  // values of backward from which a sent value is computed
  for (size_t i = p.ops().size(); i-- > 0;) {
    const Op& op = p.ops()[i];
    if (found[i] != Segment::backward) continue;
    bool leads =
        op.kind == "send" || op.kind == "recv" ||
        std::any_of(op.out.begin(), op.out.end(), [&](ValueId v) { return sent.count(v) > 0; });
    if (leads)
      sent.insert(op.in.begin(), op.in.end());
    else
      found[i] = Segment::weight;
  }
  return found;
}

NodeStack::NodeStack(int64_t first, int64_t last, int64_t total) {
  std::vector<std::pair<int64_t, int64_t>> nodes;  // microbatches [begin, end)
  for (int64_t microbatch = first; microbatch < last; ++microbatch) {
    depth.push_back(static_cast<int>(nodes.size()));
    nodes.emplace_back(microbatch, microbatch + 1);
    slots = std::max(slots, static_cast<int>(nodes.size()));
    merges.push_back(0);
    while (nodes.size() > 1) {
      auto [a, b] = nodes[nodes.size() - 2];
      auto [c, d] = nodes.back();
      int64_t width = b - a;
      bool siblings = a % (2 * width) == 0 && c == a + width &&
                      (d - c == width || (d == total && d - c < width));
      if (!siblings) break;
      nodes.pop_back();
      nodes.back().second = d;
      ++merges.back();
    }
  }
}

}  // namespace orrery
