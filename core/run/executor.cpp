// SPDX-License-Identifier: Apache-2.0
#include "run/executor.h"

#include <cstring>

#include "base/error.h"
#include "lower/abi_op.h"
#include "plugin/host.h"
#include "plugin/registry.h"

namespace orrery {

namespace {

// "file:line: module: op: why"; a kernel that begins with the op's name is not made to stutter.
void check_launch(orr_status* status, const Op& op) {
  try {
    check(status);
  } catch (const Error& e) {
    const std::string kind = op.kind + ": ", why = e.what();
    throw Error(e.code(), op.site.prefix() + (why.starts_with(kind) ? why : kind + why));
  }
}

}  // namespace

Executor::Executor(RankPlan plan, Runtime& runtime) : plan_(std::move(plan)), runtime_(runtime) {
  runtime_.arena().reserve(plan_.arena_bytes);
  if (plan_.comm_bytes) comm_memory_ = runtime_.comm().allocate(plan_.comm_bytes);
  prepared_.reserve(plan_.launches.size());
  for (const Launch& launch : plan_.launches) prepare(launch);
  for (const Bucket& bucket : plan_.buckets) collectives_.push_back(collective(bucket));
  tickets_.resize(plan_.buckets.size());
}

Executor::~Executor() {
  for (Prepared& p : prepared_)
    if (p.kernel) p.api->release(p.api->self, p.kernel);
}

orr_buffer Executor::buffer(const Place& at) const {
  const Storage& s = plan_.storages[static_cast<size_t>(at.storage)];
  switch (s.region) {
    case Region::state: return {s.state->memory.get(), s.state->offset + at.offset, s.bytes - at.offset};
    case Region::comm: return {comm_memory_, s.offset + at.offset, s.bytes - at.offset};
    case Region::arena: break;
  }
  return {runtime_.arena().memory(), s.offset + at.offset, s.bytes - at.offset};
}

void Executor::prepare(const Launch& launch) {
  Prepared p;
  p.api = &Registry::get().kernel(plan_.kernel_names[static_cast<size_t>(launch.kernels)]);
  AbiOp op(launch);
  check(p.api->prepare(p.api->self, op.get(), &p.kernel), launch.op.site.prefix() + launch.op.kind);
  for (const Place& x : launch.in_at) p.in.push_back(buffer(x));
  for (const Place& x : launch.out_at) p.out.push_back(buffer(x));
  if (launch.workspace != kNone) {
    const Storage& s = plan_.storages[static_cast<size_t>(launch.workspace)];
    p.workspace = {runtime_.arena().memory(), s.offset, s.bytes};
    p.has_workspace = true;
  }
  if (Profile::get().on()) p.row = &Profile::get().row(launch);
  prepared_.push_back(std::move(p));
}

orr_coll Executor::collective(const Bucket& bucket) const {
  orr_coll c{};
  c.size = sizeof c;
  c.op = ORR_COLL_TREE_ALL_REDUCE;
  c.dtype = bucket.dtype, c.redop = ORR_RED_SUM;
  c.count = bucket.count;
  c.leaf_first = bucket.leaf_first.data();
  const Storage& s = plan_.storages[static_cast<size_t>(bucket.storage)];
  c.send = c.recv = {comm_memory_, s.offset, s.bytes};
  c.name = bucket.name.c_str();
  c.where = bucket.where.c_str();
  return c;
}

std::byte* Executor::address(ValueId v) const {
  const Place& at = plan_.places[static_cast<size_t>(v)];
  if (at.storage == kNone) return nullptr;
  orr_buffer b = buffer(at);
  return static_cast<std::byte*>(orr_buffer_host(&b));
}

double Executor::scalar(ValueId v) const {
  const std::byte* at = address(v);
  auto read = [&](auto x) { std::memcpy(&x, at, sizeof x); return static_cast<double>(x); };
  switch (plan_.local.program.type(v).dtype) {
    case ORR_F64: return read(double{});
    case ORR_I64: return read(int64_t{});
    case ORR_I32: return read(int32_t{});
    case ORR_BF16: {
      uint16_t bits;
      std::memcpy(&bits, at, 2);
      uint32_t wide = static_cast<uint32_t>(bits) << 16;
      float x;
      std::memcpy(&x, &wide, 4);
      return x;
    }
    default: return read(float{});
  }
}

void Executor::launch(size_t index) {
  Prepared& p = prepared_[index];
  const Launch& launch = plan_.launches[index];
  Profile::Timer timer(profiled_ ? p.row : nullptr, launch.cost.flops);
  orr_status* status = p.api->launch(p.kernel, nullptr, p.in.data(), p.out.data(),
                                     p.has_workspace ? &p.workspace : nullptr);
  if (status) check_launch(status, launch.op);
}

void Executor::walk() {
  for (const Step& step : plan_.schedule) {
    size_t i = static_cast<size_t>(step.index);
    if (step.kind == Step::launch) {
      launch(i);
    } else if (step.kind == Step::post) {
      tickets_[i] = runtime_.comm().submit({collectives_[i]});
    } else {
      Profile::Timer timer(profiled_ ? &Profile::get().waiting() : nullptr);
      runtime_.comm().wait(tickets_[i]);
    }
  }
}

void Executor::run() {
  profiled_ = Profile::get().on() && ran_;
  Profile::Timer timer(profiled_ ? &Profile::get().programs() : nullptr);
  walk();
  ran_ = true;
}

}  // namespace orrery
