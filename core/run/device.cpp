// SPDX-License-Identifier: Apache-2.0
#include "run/device.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "comm/host_buffer.h"
#include "plugin/host.h"
#include "plugin/registry.h"

namespace orrery {

Device::Device(const std::string& name)
    : name_(name), api_(Registry::get().device(name)), is_host_(name == "host") {}

void Device::open(const World& world) {
  check(api_.open(api_.self, world.local_rank, world.local_size), "device '" + name_ + "'");
  orr_device_facts facts{};
  facts.size = sizeof facts;
  check(api_.facts(api_.self, &facts), "device '" + name_ + "'");
  alignment_ = std::max(alignment_, facts.alignment);
}

std::shared_ptr<const orr_memory> Device::memory(uint64_t bytes, const std::string& what) const {
  return allocate(is_host_ ? ORR_TIER_HOST : ORR_TIER_DEVICE, bytes, what);
}

std::shared_ptr<const orr_memory> Device::pinned(uint64_t bytes, const std::string& what) const {
  return allocate(is_host_ ? ORR_TIER_HOST : ORR_TIER_PINNED, bytes, what);
}

std::shared_ptr<const orr_memory> Device::allocate(int32_t tier, uint64_t bytes,
                                                   const std::string& what) const {
  constexpr uint64_t kLeast = 64;
  orr_memory* memory = nullptr;
  check(api_.allocate(api_.self, tier, std::max(bytes, kLeast), &memory), what);
  return {memory, [api = &api_](orr_memory* m) {
            api->free(api->self, m);
          }};  // the table that it refers to lives as long as the process
}

void Device::read(std::byte* to, const orr_buffer& from) const {
  if (from.bytes == 0) return;
  if (from.memory->host) {
    std::memcpy(to, orr_buffer_host(&from), from.bytes);
    return;
  }
  const HostBuffer there(to, from.bytes);
  copy(there.all(), from);
}

void Device::write(const orr_buffer& to, const std::byte* from) const {
  if (to.bytes == 0) return;
  if (to.memory->host) {
    std::memcpy(orr_buffer_host(&to), from, to.bytes);
    return;
  }
  const HostBuffer there(const_cast<std::byte*>(from), to.bytes);
  copy(to, there.all());
}

void Device::copy(const orr_buffer& to, const orr_buffer& from) const {
  const Stream stream(*this);
  Event done(*this);
  stream.copy(to, from);
  done.record(stream);
  done.sync();
}

Event::Event(const Device& device) : device_(device) {
  check(device.api().event_create(device.api().self, &event_), "device '" + device.name() + "'");
}

Event::Event(Event&& other) noexcept
    : device_(other.device_), event_(std::exchange(other.event_, nullptr)) {}

Event::~Event() {
  if (event_) device_.api().event_destroy(device_.api().self, event_);
}

void Event::record(const Stream& stream) {
  check(device_.api().event_record(device_.api().self, event_, stream.get()));
}

void Event::sync() const {
  check(device_.api().event_sync(device_.api().self, event_, deadline_ns()));
}

Stream::Stream(const Device& device, bool urgent) : device_(device) {
  const orr_device_api& api = device.api();
  const auto create = urgent ? api.stream_create_urgent : api.stream_create;
  check(create(api.self, &stream_), "device '" + device.name() + "'");
}

Stream::~Stream() {
  if (stream_) device_.api().stream_destroy(device_.api().self, stream_);
}

void Stream::wait(const Event& event) const {
  check(device_.api().stream_wait(device_.api().self, stream_, event.get()));
}

void Stream::copy(const orr_buffer& to, const orr_buffer& from) const {
  check(device_.api().copy(device_.api().self, stream_, &to, &from));
}

}  // namespace orrery
