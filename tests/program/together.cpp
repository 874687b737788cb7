// SPDX-License-Identifier: Apache-2.0
#include "together.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "program/op.h"

namespace program_test {

using namespace orrery;

namespace {

Values held_values(const State& s, const Part& part) {
  HostTensor whole = s.initial.kind == Initial::data ? s.initial.tensor : HostTensor::make(s.type);
  HostTensor mine = HostTensor::make(part.type(s.type));
  take_part(whole, part, mine.bytes->data());
  return Values(mine.data<float>(), mine.data<float>() + mine.type.elements());
}

// One op with its inputs given from outside.
std::unique_ptr<Machine> machine_of(const Program& p, const Op& op) {
  Program one;
  Op copy = op;
  copy.twin = kNone, copy.out.clear();
  for (size_t i = 0; i < copy.in.size(); ++i)
    copy.in[i] = one.input(std::to_string(i), p.type(op.in[i]));
  one.append(std::move(copy));
  const std::vector<ValueId> out = one.ops().back().out;
  for (size_t j = 0; j < out.size(); ++j) {
    if (one.type(out[j]) != p.type(op.out[j]))
      fail(ORR_FAILED, "{}: output {} is {}, the program says {}", op.kind, j,
           to_string(one.type(out[j])), to_string(p.type(op.out[j])));
    give(one, std::to_string(j), out[j]);
  }
  return std::make_unique<Machine>(one, std::vector<std::string>{"reference"});
}

double add(double a, double b) {
  return static_cast<double>(static_cast<float>(a) + static_cast<float>(b));
}

// In rank order, or from the leaves up, neighbours first.
Values reduced(const std::vector<Values>& each, const Op& op) {
  const bool largest = attr_text(op.attrs, "fn", "sum") == "max", tree = op.exchange().tree;
  std::vector<Values> sums = each;
  auto join = [&](size_t to, size_t from) {
    for (size_t i = 0; i < sums[to].size(); ++i)
      sums[to][i] =
          largest ? std::max(sums[to][i], sums[from][i]) : add(sums[to][i], sums[from][i]);
  };
  for (size_t step = 1; tree && step < each.size(); step *= 2)
    for (size_t r = 0; r + step < each.size(); r += 2 * step) join(r, r + step);
  for (size_t r = 1; !tree && r < each.size(); ++r) join(0, r);
  return sums[0];
}

}  // namespace

Together::Together(std::vector<Program> ranks) {
  for (Program& program : ranks) {
    Rank rank;
    rank.program = std::move(program);
    for (const Value& v : rank.program.values()) {
      if (!v.state) continue;
      types_[v.state->name] = v.state->type;
      rank.parts[v.state->name] = v.part;
      rank.states[v.state->name] = held_values(*v.state, v.part);
    }
    rank.machines.resize(rank.program.ops().size());
    ranks_.push_back(std::move(rank));
  }
}

void Together::begin(Rank& rank, const Named& inputs) {
  rank.at = 0;
  rank.values.assign(rank.program.values().size(), {});
  Named all = inputs;
  all.emplace("$seed", Values{7}), all.emplace("$step", Values{3});
  for (size_t i = 0; i < rank.values.size(); ++i) {
    const Value& v = rank.program.values()[i];
    if (v.producer != kNone) continue;
    rank.values[i] = v.state             ? rank.states.at(v.name)
                     : all.count(v.name) ? all.at(v.name)
                                         : Values{};
  }
}

void Together::compute(Rank& rank, size_t index) {
  const Op& op = rank.program.ops()[index];
  auto at = [&](ValueId v) -> Values& { return rank.values[static_cast<size_t>(v)]; };
  if (op.kind == "total" || op.kind == "stop_gradient" || op.kind == "vary" ||
      op.kind == "unshard") {
    at(op.out[0]) = at(op.in[0]);
    return;
  }
  if (op.kind == "coordinate") {
    at(op.out[0]) = {static_cast<double>(&rank - ranks_.data())};
    return;
  }
  if (op.kind == "batch_mean") {
    Values y = at(op.in[0]);
    for (size_t i = 0; i < y.size(); ++i)
      y[i] = static_cast<double>(static_cast<float>(y[i]) / static_cast<float>(at(op.in[1])[i]));
    at(op.out[0]) = y;
    return;
  }
  if (!rank.machines[index]) rank.machines[index] = machine_of(rank.program, op);
  Named inputs;
  for (size_t i = 0; i < op.in.size(); ++i) inputs[std::to_string(i)] = at(op.in[i]);
  Named out = rank.machines[index]->run(inputs);
  for (size_t j = 0; j < op.out.size(); ++j) at(op.out[j]) = out.at(std::to_string(j));
}

bool Together::run_to_exchange(Rank& rank) {
  for (; rank.at < rank.program.ops().size(); ++rank.at) {
    if (is_exchange(rank.program.ops()[rank.at].kind)) return true;
    compute(rank, rank.at);
  }
  return false;
}

void Together::exchange() {
  const Op& first = ranks_[0].program.ops()[ranks_[0].at];
  const double n = static_cast<double>(ranks_.size());
  std::vector<Values> in, out;
  for (Rank& rank : ranks_) {
    const Op& op = rank.program.ops()[rank.at];
    if (op.kind != first.kind || op.site.region != first.site.region)
      fail(ORR_FAILED, "ranks differ: {}{} and {}{}", first.site.prefix(), first.kind,
           op.site.prefix(), op.kind);
    in.push_back(rank.values[static_cast<size_t>(op.in[0])]);
  }
  const double size = static_cast<double>(in[0].size());
  if (first.kind == "all_reduce") {
    out.assign(ranks_.size(), reduced(in, first));
    sent_[first.kind] += 2 * (n - 1) / n * size;
  } else if (first.kind == "all_gather") {
    Values all;
    for (const Values& x : in) all.insert(all.end(), x.begin(), x.end());
    out.assign(ranks_.size(), all);
    sent_[first.kind] += (n - 1) * size;
  } else if (first.kind == "all_to_all") {
    const long each = static_cast<long>(in[0].size() / ranks_.size());
    for (long r = 0; r < static_cast<long>(ranks_.size()); ++r) {
      out.emplace_back();
      for (const Values& x : in)
        out.back().insert(out.back().end(), x.begin() + r * each, x.begin() + (r + 1) * each);
    }
    sent_[first.kind] += (n - 1) / n * size;
  } else if (first.kind == "permute") {
    const Dims to = attr_ints(first.attrs, "to");
    out.resize(ranks_.size());
    for (size_t r = 0; r < ranks_.size(); ++r) out[static_cast<size_t>(to[r])] = in[r];
    sent_[first.kind] += size;
  } else {
    Values sum = reduced(in, first);
    const size_t each = sum.size() / ranks_.size();
    for (size_t r = 0; r < ranks_.size(); ++r)
      out.emplace_back(sum.begin() + static_cast<long>(r * each),
                       sum.begin() + static_cast<long>((r + 1) * each));
    sent_[first.kind] += (n - 1) / n * size;
  }
  for (size_t r = 0; r < ranks_.size(); ++r) {
    const Op& op = ranks_[r].program.ops()[ranks_[r].at++];
    if (out[r].size() != static_cast<size_t>(ranks_[r].program.type(op.out[0]).elements()))
      fail(ORR_FAILED, "{}{} gives {} elements, not {}", op.site.prefix(), op.kind, out[r].size(),
           to_string(ranks_[r].program.type(op.out[0])));
    ranks_[r].values[static_cast<size_t>(op.out[0])] = out[r];
  }
}

Named Together::finish() {
  Named outputs;
  for (Rank& rank : ranks_) {
    std::map<std::string, Values> next = rank.states;
    for (auto& [state, value] : rank.program.updates())
      next[rank.program.value(state).name] = rank.values[static_cast<size_t>(value)];
    rank.states = std::move(next);
    for (auto& [name, id] : rank.program.outputs()) {
      const Values& mine = rank.values[static_cast<size_t>(id)];
      if (outputs.emplace(name, mine).first->second != mine)
        fail(ORR_FAILED, "the ranks' '{}' differ", name);
    }
  }
  return outputs;
}

Named Together::step(const Named& inputs) {
  for (Rank& rank : ranks_) begin(rank, inputs);
  for (;;) {
    size_t waiting = 0;
    for (Rank& rank : ranks_) waiting += run_to_exchange(rank);
    if (!waiting) return finish();
    if (waiting != ranks_.size())
      fail(ORR_FAILED, "{} ranks wait for an exchange that {} never reach", waiting,
           ranks_.size() - waiting);
    exchange();
  }
}

Values Together::state(const std::string& name) const {
  const Type& type = types_.at(name);
  HostTensor whole = HostTensor::make(type);
  std::fill_n(whole.data<float>(), type.elements(), NAN);
  for (const Rank& rank : ranks_) {
    const Part& part = rank.parts.at(name);
    const Values& mine = rank.states.at(name);
    std::vector<float> here(mine.begin(), mine.end()), there(mine.size());
    take_part(whole, part, reinterpret_cast<std::byte*>(there.data()));
    for (size_t i = 0; i < here.size(); ++i)
      if (!std::isnan(there[i]) && there[i] != here[i])
        fail(ORR_FAILED, "the ranks' copies of '{}' differ", name);
    put_part(whole, part, reinterpret_cast<const std::byte*>(here.data()));
  }
  return Values(whole.data<float>(), whole.data<float>() + type.elements());
}

}  // namespace program_test
