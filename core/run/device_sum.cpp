// SPDX-License-Identifier: Apache-2.0
#include "run/device_sum.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <orrery/sdk/descriptor.hpp>

#include "base/error.h"
#include "lower/abi_op.h"
#include "lower/kernel_choice.h"
#include "plugin/host.h"
#include "plugin/registry.h"

namespace orrery {
namespace {

constexpr int most_operands = 64;  // of one launch
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

// All operands from left to right: what is no tree.
SumPart row_of(int operands) {
  SumPart part;
  for (int i = 0; i < operands; ++i) part.in.push_back(i);
  for (int i = 1; i < operands; ++i) part.sums.push_back({0, i, 0});
  return part;
}

// The part as an expression. In a tree every sum of two rounds to the dtype. A sum from left to
// right of a 16-bit dtype is added in f32 and rounds once.
Expr fold_expression(const SumPart& part, bool tree, int32_t dtype,
                     const std::vector<int>& inputs) {
  Expr e;
  const bool wide = !tree && (dtype == ORR_BF16 || dtype == ORR_F16);
  const int32_t sum_dtype = wide ? int32_t{ORR_F32} : dtype;
  std::map<int, int32_t> registers;
  int32_t last = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    last = e.push(ORR_FN_INPUT, dtype, static_cast<int32_t>(i));
    if (wide) last = e.push(ORR_FN_CAST, sum_dtype, last);
    registers[part.in[static_cast<size_t>(inputs[i])]] = last;
  }
  for (const SumPart::Sum& s : part.sums)
    registers[s.result] = last = e.push(ORR_FN_ADD, sum_dtype, registers[s.a], registers[s.b]);
  e.outputs = {wide ? e.push(ORR_FN_CAST, dtype, last) : last};
  return e;
}

SpotFold spots_of(const SumPart& part, const SpotFold& whole) {
  const auto spot = [&](int i) { return whole.in[static_cast<size_t>(i)]; };
  SpotFold f{{}, part.onto == kNone ? whole.out : spot(part.onto), whole.elements};
  for (int i : part.in) f.in.push_back(spot(i));
  return f;
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
  const orr::FoldOrder& order = sum->composition_.order;
  if (!order.is_tree() && order.operands() > most_operands) return nullptr;
  if (order.is_tree())
    sum->parts_ = parts_of(order, rank, most_operands);
  else
    sum->parts_ = {row_of(order.operands())};
  sum->workspace_at_ =
      (static_cast<uint64_t>(sum->composition_.scratch) + alignment - 1) / alignment * alignment;
  const orr_memory nowhere{};
  for (const Composition::Round& round : sum->composition_.rounds) {
    if (!round.fold) continue;
    for (const SumPart& part : sum->parts_) {
      const int onto = onto_of(spots_of(part, *round.fold), c, {&nowhere, 0, 0});
      if (!sum->find(part, round.fold->elements, onto) &&
          !sum->prepare(part, round.fold->elements, onto, c, kernels))
        return nullptr;
    }
  }
  return sum;
}

DeviceSum::~DeviceSum() {
  for (Folder& f : folders_)
    if (f.kernel) f.api->release(f.api->self, f.kernel);
}

DeviceSum::Folder* DeviceSum::find(const SumPart& part, int64_t elements, int onto) {
  const auto at = std::find_if(folders_.begin(), folders_.end(), [&](const Folder& f) {
    return f.part == &part && f.elements == elements && f.onto == onto;
  });
  return at == folders_.end() ? nullptr : &*at;
}

bool DeviceSum::prepare(const SumPart& part, int64_t elements, int onto, const orr_coll& c,
                        const std::vector<std::string>& kernels) {
  const std::vector<int> inputs = inputs_of(static_cast<int>(part.in.size()), onto);
  const orr_tensor flat = Strided::contiguous({c.dtype, {elements}}).abi();
  Launch launch;
  launch.op.kind = "pointwise", launch.op.site.line = c.where ? c.where : "";
  launch.op.expr = fold_expression(part, composition_.order.is_tree(), c.dtype, inputs);
  launch.in.assign(inputs.size(), flat), launch.out = {flat};
  const KernelChoice choice(kernels);
  const orr_support support = choice.choose(launch);
  if (onto != kNone && support.inplace != 1) return false;
  Folder f{&part, elements, onto};
  f.api = &Registry::get().kernel(kernels[static_cast<size_t>(launch.kernels)]);
  workspace_ = std::max(workspace_, choice.workspace_of(launch));
  const AbiOp op(launch);
  check(f.api->prepare(f.api->self, op.get(), &f.kernel),
        launch.op.site.prefix() + "a sum over ranks");
  folders_.push_back(std::move(f));
  return true;
}

void DeviceSum::fold(const SpotFold& fold, const orr_coll& c, const orr_buffer& scratch) {
  for (const SumPart& part : parts_) add(part, spots_of(part, fold), c, scratch);
}

void DeviceSum::add(const SumPart& part, const SpotFold& fold, const orr_coll& c,
                    const orr_buffer& scratch) {
  const int64_t bytes = fold.elements * orr_dtype_bytes(c.dtype);
  const int onto = onto_of(fold, c, scratch);
  if (onto != kNone && fold.in.size() == 1) return;  // the only operand is already the result
  Folder& f = *find(part, fold.elements, onto);
  f.in.clear();
  for (int i : inputs_of(static_cast<int>(fold.in.size()), onto))
    f.in.push_back(buffer_at(fold.in[static_cast<size_t>(i)], bytes, c, scratch));
  const orr_buffer out = buffer_at(fold.out, bytes, c, scratch);
  const orr_buffer workspace{scratch.memory, scratch.offset + workspace_at_, workspace_};
  check(f.api->launch(f.kernel, c.stream, f.in.data(), &out, workspace_ ? &workspace : nullptr),
        c.name ? c.name : "");
}

}  // namespace orrery
