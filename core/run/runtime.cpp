// SPDX-License-Identifier: Apache-2.0
#include "run/runtime.h"

#include <filesystem>

#include "base/error.h"
#include "plugin/host.h"
#include "plugin/registry.h"
#include "run/host_device.h"
#include "run/profile.h"

namespace orrery {

RuntimeOptions& runtime_options() {
  static RuntimeOptions options;
  return options;
}

void SharedArena::reserve(uint64_t bytes) {
  if (owned_ && owned_->bytes >= bytes) return;
  Profile::Timer timer(Profile::get().once("memory of steps"));
  const orr_device_api& device = host_device();
  if (owned_) device.free(device.self, owned_);
  owned_ = nullptr;
  check(device.allocate(device.self, ORR_TIER_HOST, std::max<uint64_t>(bytes, 64), &owned_), "the arena");
  view_ = *owned_;
}

SharedArena::~SharedArena() {
  if (owned_) host_device().free(host_device().self, owned_);
}

Runtime& Runtime::get() {
  static Runtime runtime;
  return runtime;
}

const World& Runtime::world() {
  if (!world_) world_ = std::make_unique<World>(detect());
  return *world_;
}

WorldComm& Runtime::comm() {
  if (!comm_) comm_ = std::make_unique<WorldComm>(world(), runtime_options().comm, runtime_options().link_speed);
  return *comm_;
}

int Runtime::group(const Spread& spread, const std::string& axis) {
  int rank = world().rank, size = spread.size_of(axis);
  if (size == world().size) return 0;
  int first = spread.peer(axis, 0, rank), stride = spread.peer(axis, 1, rank) - first;
  auto [at, fresh] = groups_.try_emplace({size, stride}, 0);
  if (fresh) at->second = comm().split(first);
  return at->second;
}

void Runtime::form_groups(const Spread& spread) {
  for (const Axis& axis : spread.axes) group(spread, axis.name);
  for (const Halves& h : spread.halves)
    for (const std::string& half : {h.outer, h.inner}) group(spread, half);
}

const std::vector<std::string>& Runtime::kernels() {
  if (!kernels_.empty()) return kernels_;
  bool chosen = !runtime_options().kernels.empty();
  std::string refusals;
  for (const std::string& name :
       chosen ? runtime_options().kernels : Registry::get().names(ORR_KIND_KERNEL)) {
    const orr_kernel_api& api = Registry::get().kernel(name);
    char reason[128] = "";
    if (api.probe(api.self, reason, sizeof reason) > 0 && std::string(api.device) == "host") {
      kernels_.push_back(name);
    } else if (chosen) {
      fail(ORR_UNAVAILABLE, "kernels '{}' cannot run here: {}", name,
           *reason ? reason : fmt::format("it works on device '{}'", api.device).c_str());
    } else {
      refusals += fmt::format("\n  {}: {}", name, reason);
    }
  }
  if (kernels_.empty())
    fail(ORR_UNAVAILABLE, "no kernel plugin works on this machine; `orrery plugins` lists what was found{}", refusals);
  return kernels_;
}

void Runtime::begin_run() {
  if (begun_) return;
  const std::string& directory = runtime_options().run_directory;
  std::error_code error;
  if (!directory.empty() && !std::filesystem::create_directories(directory, error) && error)
    fail(ORR_FAILED, "--dir {}: {}; name a directory that can be made", directory, error.message());
  begun_ = true;
  observers_.start(world().rank, world().size, directory);
  observers_.begin(planned_steps_);
}

void Runtime::settle(const AtWork* but) {
  while (!at_work_.empty() && at_work_.front().get() != but) {
    at_work_.front()->drain();
    at_work_.erase(at_work_.begin());
  }
}

void Runtime::report(const std::string& error) {
  for (auto& work : at_work_) work->abandon(error);
  at_work_.clear();
  if (begun_) observers_.failure(error);
  if (comm_) comm_->store().report(error);
}

void Runtime::close() {
  if (begun_) observers_.stop();
  begun_ = false, planned_steps_ = 0;
  comm_.reset();
  groups_.clear();
}

}  // namespace orrery
