// SPDX-License-Identifier: Apache-2.0
#include "run/vitals.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <memory>

#include "base/config.h"
#include "base/text.h"
#include "run/probe.h"

namespace orrery {
namespace {

using Clock = std::chrono::steady_clock;

double product_flops(const RankPlan& plan) {
  double sum = 0;
  for (const Step& s : plan.schedule)
    if (s.kind == Step::launch)
      if (const Cost& cost = plan.launches[static_cast<size_t>(s.index)].cost; cost.matrix)
        sum += cost.flops;
  return sum;
}

// The dtype in which the plan spends most on products.
int32_t product_dtype(const RankPlan& plan) {
  std::map<int32_t, double> flops;
  for (const Launch& launch : plan.launches)
    if (launch.cost.matrix) flops[launch.in.front().dtype] += launch.cost.flops;
  const auto most = std::max_element(flops.begin(), flops.end(),
                                     [](auto& a, auto& b) { return a.second < b.second; });
  return most == flops.end() ? int32_t{ORR_F32} : most->first;
}

// FLOP/s of a large product on this rank, the best of a few, in memory of its own.
double measure_product(int32_t dtype, Runtime& runtime) {
  constexpr int64_t n = 768;
  Blueprint b;
  const Type type{dtype, {n, n}};
  const ValueId x = b.program.input("0", type), y = b.program.input("1", type);
  const ValueId product = b.program.add1("matmul", {x, y});
  b.program.output("product", b.program.pointwise(ORR_FN_INPUT, {product}));
  SharedArena arena;
  Variant variant(b, 0, runtime, arena);
  HostTensor operand = HostTensor::make(type);
  // A number near 0.01 or 1 in every dtype: some devices multiply zeros faster.
  std::fill(operand.bytes->begin(), operand.bytes->end(), std::byte{0x3c});
  variant.set_inputs({operand, operand});
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 8; ++i) {
    const auto begin = Clock::now();
    variant.run();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return 2.0 * n * n * n / best;
}

double resident_bytes() {
  long pages = 0;
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen("/proc/self/statm", "re"),
                                                   std::fclose);
  if (!file || std::fscanf(file.get(), "%*d %ld", &pages) != 1) return 0;
  return static_cast<double>(pages) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

// Whole numbers with several places for each sample, as the ids of a text are.
bool is_like_text(const Type& type) {
  const bool whole = type.dtype == ORR_I32 || type.dtype == ORR_I64;
  return whole && type.dims.size() == 2 && type.dims[1] > 1;
}

// The tokens of a batch that a language model reads, 0 of others. Such a batch has the token to be
// told for each that is read: two fields of whole numbers of one size, of which the largest count;
// or it is the text alone. One such field beside others may be captions, edges, classes.
int64_t tokens_of(const BatchFields& batch) {
  std::map<int64_t, int> fields_of_size;
  for (auto& [name, field] : batch)
    if (is_like_text(field.type)) ++fields_of_size[field.type.elements()];
  for (auto it = fields_of_size.rbegin(); it != fields_of_size.rend(); ++it)
    if (it->second > 1 || batch.size() == 1) return it->first;
  return 0;
}

std::string stack_text(const RunSpec& spec) {
  std::vector<std::string> names;
  for (const StrategyUse& use : spec.strategies) names.push_back(use.name);
  return names.empty() ? "none" : join(names, ", ");
}

void tell_plan(const RankPlan& plan, Observers& to) {
  const auto number = [&](const std::string& name, auto value) {
    to.fact("plan/" + name, static_cast<double>(value));
  };
  number("flops", plan.flops()), number("launches", plan.launches.size());
  number("bytes_sent", plan.bytes_sent()), number("bytes_copied", plan.bytes_copied());
  number("arena_bytes", plan.arena_bytes);
  std::map<std::string, uint64_t> memory = peak_of_arena(plan);
  for (const Storage& s : plan.storages)
    if (s.region == Region::state && !s.is_away()) memory[s.category] += s.bytes;
  if (plan.comm_bytes) memory["buckets"] = plan.comm_bytes;
  for (auto& [category, bytes] : memory) number("memory/" + category, bytes);
}

}  // namespace

void Vitals::describe(const RunSpec& spec, const Variant& step, int64_t microbatches,
                      Runtime& runtime) {
  if (std::exchange(described_, true)) return;
  Observers& to = runtime.observers();
  int64_t parameters = 0;
  for (auto& s : spec.params)
    if (!s->frozen) parameters += s->type.elements();
  to.fact("run/version", 0, ORRERY_VERSION);
  to.fact("run/ranks", runtime.world().size);
  if (runtime.world().size > 1) to.fact("run/comm", 0, runtime_options().comm);
  to.fact("run/kernels", 0, join(runtime.kernels(), ", "));
  to.fact("run/strategies", 0, stack_text(spec));
  to.fact("run/microbatches", static_cast<double>(microbatches));
  to.fact("run/parameters", static_cast<double>(parameters));
  to.fact("run/seed", static_cast<double>(runtime_options().seed));
  tell_plan(step.plan(), to);
  product_flops_ = product_flops(step.plan());
  const bool seen = to.has_named_directory() || isatty(STDERR_FILENO);
  if (!seen || runtime.world().rank != 0 || product_flops_ == 0) return;
  best_ = measure_product(product_dtype(step.plan()), runtime);
  to.fact("machine/product_flops", best_);
}

void Vitals::tell(int64_t step, double seconds, const BatchFields& batch,
                  const std::map<std::string, double>& scalars, Observers& to) const {
  if (seconds <= 0 || batch.empty()) return;
  const auto per_second = [&](const char* tag, int64_t count) {
    if (count > 0) to.metric(step, tag, static_cast<double>(count) / seconds);
  };
  per_second("samples_per_second", batch.begin()->second.type.dims[0]);
  per_second("tokens_per_second", tokens_of(batch));
  if (best_ > 0) to.metric(step, "mfu", product_flops_ / seconds / best_);
  if (const auto lr = scalars.find("optim.0.lr"); lr != scalars.end())
    to.metric(step, "learning_rate", lr->second);
  to.metric(step, "resident_bytes", resident_bytes());
}

namespace {

void tell_elements(int64_t step, const std::string& name, const float* elements, int64_t count,
                   Observers& to) {
  orr_event_record e{};
  e.kind = ORR_EVENT_TENSOR, e.step = step, e.text = name.c_str();
  e.elements = elements, e.count = count;
  to.send(e);
}

}  // namespace

void tell_tensors(const StateList& states, int64_t step, Runtime& runtime) {
  for (const auto& state : states) {
    if (state->type.dtype != ORR_F32 || !state->memory || !runtime.device().is_host()) continue;
    const orr_buffer at{state->memory.get(), state->offset, 0};
    tell_elements(step, state->name, static_cast<const float*>(orr_buffer_host(&at)),
                  state->part.type(state->type).elements(), runtime.observers());
  }
}

void tell_gradients(const StepResult& result, Observers& to) {
  for (auto& [name, tensor] : result.tensors)
    if (name.starts_with(kGradientOf) && tensor.type.dtype == ORR_F32)
      tell_elements(result.step, name, reinterpret_cast<const float*>(tensor.bytes->data()),
                    tensor.type.elements(), to);
}

}  // namespace orrery
