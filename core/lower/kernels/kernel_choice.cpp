// SPDX-License-Identifier: Apache-2.0
#include "lower/kernel_choice.h"

#include <algorithm>
#include <optional>
#include <orrery/sdk/plugin.hpp>

#include "base/error.h"
#include "lower/abi_op.h"
#include "plugin/host.h"
#include "plugin/registry.h"
#include "program/op.h"

namespace orrery {

namespace {

// The attribute that permits other numerics (orrery/ops.h). A plugin that does not know it is asked
// again without it.
constexpr const char* permission = "numerics";

// More than any machine has; sums of workspaces stay below 2^63.
constexpr uint64_t kMostWorkspace = uint64_t{1} << 50;

// What of the op a kernel must say that it takes. Kinds that lowering alone makes have no
// definition, and ask for nothing.
uint32_t must_take(const orr_op& op) {
  const auto& all = all_op_defs();
  const auto def = std::find_if(
      all.begin(), all.end(), [&](const OpDef* d) { return std::string_view(d->kind) == op.kind; });
  return def != all.end() && (*def)->must_take ? (*def)->must_take(op) : 0;
}

// All of an op that the answer may depend on, as text.
class Question {
 public:
  explicit Question(const orr_op& op) { add(op); }
  std::string text;

 private:
  template <class T>
  void number(const T& x) {
    text.append(reinterpret_cast<const char*>(&x), sizeof x);
  }
  template <class T>
  void list(const T* begin, int32_t n) {
    number(n);
    for (int32_t i = 0; i < n; ++i) number(begin[i]);
  }
  void tensors(const orr_tensor* all, int32_t n) {
    number(n);
    for (int32_t i = 0; i < n; ++i) {
      number(all[i].dtype);
      list(all[i].dims, all[i].rank), list(all[i].strides, all[i].rank);
    }
  }
  void add(const orr_attr& a) {
    (text += a.name) += '=', text += a.text ? a.text : "";
    number(a.type), number(a.i), number(a.f), list(a.ints, a.count);
  }
  void add(const orr_op& op) {
    text += op.kind;
    tensors(op.in, op.n_in), tensors(op.out, op.n_out), number(op.n_attrs);
    for (int32_t i = 0; i < op.n_attrs; ++i) add(op.attrs[i]);
    if (op.expr) list(op.expr->instrs, op.expr->n_instrs);
    if (op.expr) list(op.expr->outputs, op.expr->n_outputs);
    if (op.group) add(*op.group);
  }
  void add(const orr_group& group) {
    list(group.in, group.n_in), list(group.out, group.n_out);
    for (int32_t i = 0; i < group.n_ops; ++i) {
      const orr_group_op& one = group.ops[i];
      add(*one.op), list(one.in, one.op->n_in), list(one.out, one.op->n_out);
    }
  }
};

Launch without_permission(Launch launch) {
  launch.op.attrs.erase(permission);
  return launch;
}

}  // namespace

orr_support answer_of(const orr_kernel_api& api, const orr_op& op) {
  orr_support s{};
  s.size = sizeof s;
  api.supports(api.self, &op, &s);
  s.numerics[sizeof s.numerics - 1] = s.reason[sizeof s.reason - 1] = 0;
  if (s.score <= 0 || (must_take(op) & ~s.takes) == 0) return s;
  s.score = 0;
  orr::copy_text(s.reason, "it does not say that it takes this (ORR_TAKES_... of kernel.h)");
  return s;
}

KernelChoice::KernelChoice(const std::vector<std::string>& names) : names_(names) {
  for (const std::string& name : names) tables_.push_back(&Registry::get().kernel(name));
}

KernelChoice::Found KernelChoice::find(const Launch& launch) const {
  const AbiOp op(launch);
  const std::string asked = Question(*op.get()).text;
  if (const auto at = known_.find(asked); at != known_.end()) return at->second;
  return known_[asked] = ask_all(launch, op);
}

KernelChoice::Found KernelChoice::ask_all(const Launch& launch, const AbiOp& op) const {
  std::optional<Launch> plain;
  if (launch.op.attrs.has(permission)) plain = without_permission(launch);
  const AbiOp plain_op(plain ? *plain : launch);
  Found best{};
  for (size_t k = 0; k < tables_.size(); ++k) {
    orr_support s = answer_of(*tables_[k], *op.get());
    const bool without = !s.score && plain;
    if (without) s = answer_of(*tables_[k], *plain_op.get());
    if (s.score > best.support.score) best = {s, static_cast<int>(k), without};
  }
  return best;
}

orr_support KernelChoice::choose(Launch& launch) const {
  const Found best = find(launch);
  if (!best.support.score) refuse(without_permission(launch));
  if (best.ignored) launch.op.attrs.erase(permission);
  launch.kernels = best.kernels;
  launch.numerics = best.support.numerics, launch.capturable = best.support.capturable;
  return best.support;
}

void KernelChoice::refuse(const Launch& launch) const {
  std::string reasons;
  for (size_t k = 0; k < tables_.size(); ++k)
    reasons +=
        fmt::format("\n  {}: {}", names_[k], answer_of(*tables_[k], *AbiOp(launch).get()).reason);
  fail(ORR_UNAVAILABLE, "{}no kernel plugin computes {}{}{}", launch.op.site.prefix(),
       shown_kind(launch.op), reasons, Registry::get().not_loaded(ORR_KIND_KERNEL));
}

uint64_t KernelChoice::workspace_of(const Launch& launch) const {
  const orr_kernel_api& api = *tables_[static_cast<size_t>(launch.kernels)];
  orr_kernel_size size{};
  size.size = sizeof size;
  const AbiOp op(launch);
  if (orr_status* status = api.measure(api.self, op.get(), &size))
    check(status, launch.op.site.prefix() + launch.op.kind);
  if (size.workspace > kMostWorkspace)
    fail(ORR_FAILED, "{}{}: kernel '{}' measures a workspace of {} bytes", launch.op.site.prefix(),
         launch.op.kind, names_[static_cast<size_t>(launch.kernels)], size.workspace);
  return size.workspace;
}

}  // namespace orrery
