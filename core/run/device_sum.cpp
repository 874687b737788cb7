// SPDX-License-Identifier: Apache-2.0
#include "run/device_sum.h"

#include <algorithm>
#include <numeric>
#include <orrery/sdk/descriptor.hpp>

#include "base/error.h"
#include "lower/abi_op.h"
#include "lower/kernel_choice.h"
#include "plugin/host.h"
#include "plugin/registry.h"

namespace orrery {
namespace {

constexpr int most_operands = 64;  // of one fold
constexpr uint64_t alignment = 256;

bool is_sum(const orr_coll& c) {
  return orr::traffic::is_tree(c.op) || (orr::adds(c.op) && c.redop == ORR_RED_SUM);
}

// The operands in the order of the kernel's inputs. A kernel may overwrite its first input, so
// operand `onto` comes first; the others follow in their order.
std::vector<int> inputs_of(int operands, int onto) {
  std::vector<int> order(static_cast<size_t>(operands));
  std::iota(order.begin(), order.end(), 0);
  if (onto != kNone) std::rotate(order.begin(), order.begin() + onto, order.begin() + onto + 1);
  return order;
}

// The sum as an expression. In a tree every sum of two rounds to the dtype. A sum from left to
// right of a 16-bit dtype is added in f32 and rounds once.
Expr fold_expression(const orr::FoldOrder& order, int32_t dtype, const std::vector<int>& inputs) {
  Expr e;
  const bool wide = !order.is_tree() && (dtype == ORR_BF16 || dtype == ORR_F16);
  const int32_t sum_dtype = wide ? int32_t{ORR_F32} : dtype;
  std::vector<int32_t> registers(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    int32_t& r = registers[static_cast<size_t>(inputs[i])];
    r = e.push(ORR_FN_INPUT, dtype, static_cast<int32_t>(i));
    if (wide) r = e.push(ORR_FN_CAST, sum_dtype, r);
  }
  const auto add = [&](int a, int b) {
    return e.push(ORR_FN_ADD, sum_dtype, registers[static_cast<size_t>(a)],
                  registers[static_cast<size_t>(b)]);
  };
  for (const orr::FoldOrder::Sum& s : order.sums()) registers.push_back(add(s.a, s.b));
  for (int i = 1; i < order.operands() && !order.is_tree(); ++i) registers[0] = add(0, i);
  const int32_t result = order.is_tree() ? registers.back() : registers[0];
  e.outputs = {wide ? e.push(ORR_FN_CAST, dtype, result) : result};
  return e;
}

bool same_place(const orr_buffer& a, const orr_buffer& b) {
  return a.memory == b.memory && a.offset == b.offset;
}

int onto_of(const SpotFold& fold, const orr_coll& c, const orr_buffer& scratch) {
  const orr_buffer out = buffer_at(fold.out, 0, c, scratch);
  for (size_t i = 0; i < fold.in.size(); ++i)
    if (same_place(buffer_at(fold.in[i], 0, c, scratch), out)) return static_cast<int>(i);
  return kNone;
}

}  // namespace

std::unique_ptr<DeviceSum> DeviceSum::make(const orr_coll& c, int rank, int ranks,
                                           const std::vector<std::string>& kernels) {
  if (!is_sum(c)) return nullptr;
  std::unique_ptr<DeviceSum> sum(new DeviceSum(compose(c, rank, ranks)));
  if (sum->composition_.order.operands() > most_operands) return nullptr;
  sum->workspace_at_ =
      (static_cast<uint64_t>(sum->composition_.scratch) + alignment - 1) / alignment * alignment;
  const orr_memory nowhere{};
  for (const Composition::Round& round : sum->composition_.rounds) {
    if (!round.fold) continue;
    const int onto = onto_of(*round.fold, c, {&nowhere, 0, 0});
    if (!sum->find(round.fold->elements, onto) &&
        !sum->prepare(round.fold->elements, onto, c, kernels))
      return nullptr;
  }
  return sum;
}

DeviceSum::~DeviceSum() {
  for (Folder& f : folders_)
    if (f.kernel) f.api->release(f.api->self, f.kernel);
}

DeviceSum::Folder* DeviceSum::find(int64_t elements, int onto) {
  const auto at = std::find_if(folders_.begin(), folders_.end(), [&](const Folder& f) {
    return f.elements == elements && f.onto == onto;
  });
  return at == folders_.end() ? nullptr : &*at;
}

bool DeviceSum::prepare(int64_t elements, int onto, const orr_coll& c,
                        const std::vector<std::string>& kernels) {
  const std::vector<int> inputs = inputs_of(composition_.order.operands(), onto);
  const orr_tensor flat = Layout::contiguous({c.dtype, {elements}}).abi();
  Launch launch;
  launch.op.kind = "pointwise", launch.op.site.line = c.where ? c.where : "";
  launch.op.expr = fold_expression(composition_.order, c.dtype, inputs);
  launch.in.assign(inputs.size(), flat), launch.out = {flat};
  const KernelChoice choice(kernels);
  const orr_support support = choice.choose(launch);
  if (onto != kNone && support.inplace != 1) return false;
  Folder f{elements, onto};
  f.api = &Registry::get().kernel(kernels[static_cast<size_t>(launch.kernels)]);
  workspace_ = std::max(workspace_, choice.workspace_of(launch));
  const AbiOp op(launch);
  check(f.api->prepare(f.api->self, op.get(), &f.kernel),
        launch.op.site.prefix() + "a sum over ranks");
  folders_.push_back(std::move(f));
  return true;
}

void DeviceSum::fold(const SpotFold& fold, const orr_coll& c, const orr_buffer& scratch) {
  const int64_t bytes = fold.elements * orr_dtype_bytes(c.dtype);
  const int onto = onto_of(fold, c, scratch);
  if (onto != kNone && fold.in.size() == 1) return;  // the only operand is already the result
  Folder& f = *find(fold.elements, onto);
  f.in.clear();
  for (int i : inputs_of(composition_.order.operands(), onto))
    f.in.push_back(buffer_at(fold.in[static_cast<size_t>(i)], bytes, c, scratch));
  const orr_buffer out = buffer_at(fold.out, bytes, c, scratch);
  const orr_buffer workspace{scratch.memory, scratch.offset + workspace_at_, workspace_};
  check(f.api->launch(f.kernel, c.stream, f.in.data(), &out, workspace_ ? &workspace : nullptr),
        c.name ? c.name : "");
}

}  // namespace orrery
