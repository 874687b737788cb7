// SPDX-License-Identifier: Apache-2.0
#include "conformance/kernel/device.h"

#include <algorithm>
#include <map>
#include <memory>

#include "plugin/host.h"
#include "plugin/registry.h"

namespace kernel_suite {
namespace {

using orrery::check;

constexpr int64_t patience = int64_t{60} * 1000000000;

orr_memory host_memory(const void* at, uint64_t bytes) {
  void* address = const_cast<void*>(at);
  return {sizeof(orr_memory), ORR_TIER_HOST, bytes, address, address, "host", nullptr};
}

// The hole that the host fills where a device records nothing says so.
bool offers_recording(const orr_device_api& api, orr_stream* stream) {
  if (orr_status* status = api.capture_begin(api.self, stream)) {
    const int32_t code = orrery::host_table().error_code(status);
    if (code != ORR_UNIMPLEMENTED) check(status, "capture_begin");
    orrery::host_table().error_release(status);
    return false;
  }
  orr_graph* graph = nullptr;
  check(api.capture_end(api.self, stream, &graph), "capture_end");
  api.graph_destroy(api.self, graph);
  return true;
}

}  // namespace

Device& Device::of(const std::string& name) {
  static auto& opened = *new std::map<std::string, std::unique_ptr<Device>>;
  std::unique_ptr<Device>& device = opened[name];
  if (!device) device.reset(new Device(name));
  return *device;
}

Device::Device(const std::string& name)
    : api_(orrery::Registry::get().device(name)), host_(name == "host") {
  if (host_) return;
  check(api_.open(api_.self, 0, 1), "device '" + name + "'");
  orr_device_facts facts{};
  facts.size = sizeof facts;
  check(api_.facts(api_.self, &facts), "facts");
  alignment_ = std::max<uint64_t>(facts.alignment, 1);
  check(api_.stream_create(api_.self, &stream_), "stream_create");
  check(api_.event_create(api_.self, &event_), "event_create");
  records_ = offers_recording(api_, stream_);
}

orr_memory* Device::allocate(uint64_t bytes) const {
  orr_memory* memory = nullptr;
  check(api_.allocate(api_.self, ORR_TIER_DEVICE, bytes, &memory), "allocate");
  return memory;
}

void Device::copy(const orr_memory* to, const orr_memory* from, uint64_t bytes) const {
  const orr_buffer target{to, 0, bytes}, source{from, 0, bytes};
  check(api_.copy(api_.self, stream_, &target, &source), "copy");
  check(finish(), "copy");
}

void Device::put(std::span<const uint8_t> bytes, const orr_memory* memory) const {
  const orr_memory from = host_memory(bytes.data(), bytes.size());
  copy(memory, &from, bytes.size());
}

void Device::get(const orr_memory* memory, std::span<uint8_t> bytes) const {
  const orr_memory to = host_memory(bytes.data(), bytes.size());
  copy(&to, memory, bytes.size());
}

orr_status* Device::finish() const {
  if (host_) return nullptr;
  if (orr_status* status = api_.event_record(api_.self, event_, stream_)) return status;
  return api_.event_sync(api_.self, event_, patience);
}

orr_status* Device::launch_graph(orr_graph* graph) const {
  orr_status* status = api_.graph_launch(api_.self, graph, stream_);
  orr_status* late = finish();
  api_.graph_destroy(api_.self, graph);
  if (!status) return late;
  orrery::host_table().error_release(late);
  return status;
}

}  // namespace kernel_suite
