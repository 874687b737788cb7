// SPDX-License-Identifier: Apache-2.0
#include "lua/trace_record.h"

#include <algorithm>
#include <bit>
#include <cctype>

#include "lua/environment.h"
#include "program/same_work.h"
#include "program/state.h"
#include "run/variant.h"

namespace orrery::lua {
namespace {

// Whether two constants are equal. A HostTensor that the function itself makes is a new constant in
// each trace.
bool equal_constants(const State& a, const State& b) {
  return a.role == Role::state && b.role == Role::state && a.initial.kind == Initial::data &&
         b.initial.kind == Initial::data && a.type == b.type && a.initial.tensor.bytes &&
         b.initial.tensor.bytes && *a.initial.tensor.bytes == *b.initial.tensor.bytes;
}

bool same_value(const Value& a, const Value& b) {
  if (a.role != b.role || a.type != b.type || a.batch() != b.batch() ||
      a.batch_dim() != b.batch_dim())
    return false;
  if (a.state && b.state) return a.state == b.state || equal_constants(*a.state, *b.state);
  return a.name == b.name;
}

bool same_op(const Op& a, const Op& b) {
  return is_same_work(a, b) && a.in == b.in && a.out == b.out && a.site.region == b.site.region;
}

std::string shown(const Op& op) {
  const bool pointwise = op.kind == "pointwise" && !op.expr.instrs.empty();
  return op.site.prefix() + (pointwise ? scalar_fn(op.expr.instrs.back().fn).name : op.kind);
}

// Drops the indices from a name, so that all elements of a list count as one: "history[12]" becomes
// "history[]".
std::string without_numbers(const std::string& name) {
  std::string text;
  for (char c : name)
    if (text.empty() || text.back() != '[' || !std::isdigit(static_cast<unsigned char>(c)))
      text += c;
  return text;
}

// The first op in which two traces differ, as "file:line: module: op"; "" if they are equal.
std::string difference(const Program& was, const Program& now) {
  const auto& a = was.ops();
  const auto& b = now.ops();
  const auto [op, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end(), same_op);
  if (op != a.end()) return shown(*op);
  if (other != b.end()) return shown(*other);
  const auto& values = was.values();
  const auto [value, its] = std::mismatch(values.begin(), values.end(), now.values().begin(),
                                          now.values().end(), same_value);
  if (value != values.end()) return value->site.prefix() + to_string(value->type);
  if (its != now.values().end()) return its->site.prefix() + to_string(its->type);
  return was.updates() == now.updates() ? "" : was.site().prefix() + "an update";
}

}  // namespace

void TraceRecord::keep(lua_State* L, const Program& program, std::vector<ValueId> results,
                       Again again, const std::string& random) {
  if (program_ && (training_ || !tracing_training())) return;
  program_ = std::make_unique<Program>(program);
  results_ = std::move(results), again_ = std::move(again);
  training_ = tracing_training(), runs_ = 0;
  captured_.take(L);
  if (random_state(L) != random) compare(L, {});
}

// Whether the function must be traced again: one of these values has not yet changed often enough
// without changing the program.
bool TraceRecord::is_news(const std::map<std::string, std::string>& changes) const {
  constexpr int kOften = 16;
  return std::any_of(changes.begin(), changes.end(), [&](auto& change) {
    const auto known = harmless_.find(without_numbers(change.first));
    return known == harmless_.end() || known->second < kOften;
  });
}

void TraceRecord::check(lua_State* L) {
  if (!program_) return;
  const std::map<std::string, std::string> changes = captured_.changes(L);
  if (std::has_single_bit(++runs_) || is_news(changes)) compare(L, changes);
}

// Traces the function again. `changes`: the values that have changed since the last time.
void TraceRecord::compare(lua_State* L, const std::map<std::string, std::string>& changes) {
  Program now;
  std::vector<ValueId> results;
  {
    TraceScope scope(training_);
    results = again_(now);
  }
  std::string where = difference(*program_, now);
  if (where.empty() && results != results_) where = program_->site().prefix() + "the result";
  if (where.empty()) {
    for (const auto& [name, change] : changes) ++harmless_[without_numbers(name)];
    return captured_.take(L);
  }
  std::string text;
  for (const auto& [name, change] : changes)
    if (!harmless_.count(without_numbers(name)))
      text += (text.empty() ? "" : ", ") + name + " " + change;
  if (!text.empty())
    fail(ORR_INVALID,
         "{}; a trace keeps the first value: make it an orrery.input, or compile again", text);
  for (const auto& [name, change] : changes) text += fmt::format(" ({} {})", name, change);
  fail(ORR_INVALID,
       "{}: this function is not traced to the same program as before, which is what runs{}: give "
       "what changes from step to step in the batch or as an orrery.input, and draw random numbers "
       "with orrery.uniform",
       where, text);
}

}  // namespace orrery::lua
