// SPDX-License-Identifier: Apache-2.0
#include "machine.h"

#include <cstring>

#include "base/error.h"
#include "lower/lower.h"
#include "run/runtime.h"

namespace program_test {
namespace {

using namespace orrery;

template <class T>
void store(const Values& from, std::byte* to) {
  auto* x = reinterpret_cast<T*>(to);
  for (size_t i = 0; i < from.size(); ++i) x[i] = static_cast<T>(from[i]);
}

template <class T>
Values load(const std::byte* from, int64_t n) {
  const auto* x = reinterpret_cast<const T*>(from);
  return Values(x, x + n);
}

void store(int32_t dtype, const Values& from, std::byte* to) {
  switch (dtype) {
    case ORR_F32: return store<float>(from, to);
    case ORR_F64: return store<double>(from, to);
    case ORR_I32: return store<int32_t>(from, to);
    case ORR_I64: return store<int64_t>(from, to);
    default: return store<uint8_t>(from, to);
  }
}

Values load(int32_t dtype, const std::byte* from, int64_t n) {
  switch (dtype) {
    case ORR_F32: return load<float>(from, n);
    case ORR_F64: return load<double>(from, n);
    case ORR_I32: return load<int32_t>(from, n);
    case ORR_I64: return load<int64_t>(from, n);
    default: return load<uint8_t>(from, n);
  }
}

bool given(const Value& v) {
  return v.role == Role::input || v.role == Role::batch || v.role == Role::scalar;
}

}  // namespace

Machine::Machine(const Program& logical, const std::vector<std::string>& kernels,
                 const Microbatches& microbatches, bool fuse) {
  RankPlan plan;
  plan.kernel_names = kernels;
  const std::vector<int64_t> dealt = {0, microbatches.total};
  plan.local = localize(logical, microbatches, plan.mesh, dealt, 0);
  // Nodes are results here: they live to the end.
  for (const Total& t : plan.local.totals) plan.local.program.output("$nodes", t.partial);
  write_in_known_ops(plan.local, kernels);
  if (fuse) fuse_ops(plan.local, plan.mesh, kernels);
  place_values(plan);
  make_schedule(plan);
  plan_memory(plan);
  executor_ = std::make_unique<Executor>(std::move(plan), Runtime::get());
}

Named Machine::run(const Named& inputs) {
  const Program& p = plan().local.program;
  Named all = inputs;
  all.emplace("$seed", Values{7}), all.emplace("$step", Values{3});
  for (size_t i = 0; i < p.values().size(); ++i) {
    const Value& v = p.values()[i];
    std::byte* to = given(v) ? executor_->address(static_cast<ValueId>(i)) : nullptr;
    if (!to) continue;
    const Values& from = all.at(v.name);
    if (static_cast<int64_t>(from.size()) != v.type.elements())
      fail(ORR_INVALID, "'{}' is {}, {} elements were given", v.name, to_string(v.type),
           from.size());
    store(v.type.dtype, from, to);
  }
  executor_->run();
  Named found;
  for (auto& [name, id] : p.outputs()) {
    if (name == "$nodes") continue;
    ValueId from = id;
    int64_t n = p.type(id).elements();
    for (const Total& t : plan().local.totals)
      if (t.whole == id) from = t.partial, n *= t.nodes;
    found[name] = load(p.type(id).dtype, executor_->address(from), n);
  }
  return found;
}

void give(Program& p, std::string name, ValueId v) {
  bool sum = p.value(v).batch() == Batch::partial;
  p.output(name, sum ? p.add1("total", {v}) : p.pointwise(ORR_FN_INPUT, {v}));
}

Values part(const Values& x, const Dims& dims, int dim, int64_t first, int64_t n) {
  int64_t inner = 1, extent = dims[static_cast<size_t>(dim)];
  for (size_t d = static_cast<size_t>(dim) + 1; d < dims.size(); ++d) inner *= dims[d];
  Values found;
  for (int64_t i = 0; i < static_cast<int64_t>(x.size()); ++i) {
    int64_t at = i / inner % extent;
    if (at >= first && at < first + n) found.push_back(x[static_cast<size_t>(i)]);
  }
  return found;
}

void NodeTree::add(int64_t lo, int64_t hi, const Values& nodes) {
  int64_t at = lo, count = orr_tree_nodes(lo, hi, total_), first = lo;
  auto from = nodes.begin();
  long size = static_cast<long>(nodes.size()) / count;
  while (int64_t n = orr_tree_node(&at, hi, total_)) {
    nodes_[{first, n}] = Values(from, from + size);
    from += size, first = at;
  }
}

Values NodeTree::node(int64_t first, int64_t n) const {
  if (auto found = nodes_.find({first, n}); found != nodes_.end()) return found->second;
  if (n <= 1) fail(ORR_FAILED, "leaf {} is in no node", first);
  int64_t left = 1;
  while (left * 2 < n) left *= 2;
  Values a = node(first, left), b = node(first + left, n - left);
  if (a.size() != b.size())
    fail(ORR_FAILED, "leaves {} to {} have nodes of {} and {} elements", first, first + n, a.size(),
         b.size());
  for (size_t i = 0; i < a.size(); ++i)
    a[i] = dtype_ == ORR_F32 ? double(float(a[i]) + float(b[i])) : a[i] + b[i];
  return a;
}

}  // namespace program_test
