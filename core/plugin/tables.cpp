// SPDX-License-Identifier: Apache-2.0
//
// The trampolines. Each hole is a function generated from the type of its slot and its name.
#include "plugin/tables.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "base/error.h"
#include "plugin/host.h"

namespace orrery {
namespace {

// A string as a template argument.
template <size_t N>
struct Text {
  char value[N];
  constexpr Text(const char (&text)[N]) { std::copy_n(text, N, value); }
};

template <Text name, class R, class... A>
R hole(A...) {
  if constexpr (std::is_same_v<R, orr_status*>) {
    static const std::string message =
        std::string("this plugin does not implement '") + name.value + "'";
    return host_table().error(ORR_UNIMPLEMENTED, message.c_str());
  } else if constexpr (!std::is_void_v<R>) {
    return R{};
  }
}

template <Text name, class T, class R, class... A>
void fill(T& table, R (*T::*slot)(A...)) {
  if (!(table.*slot)) table.*slot = hole<name, R, A...>;
}

constexpr const char* no_probe = "this plugin does not implement 'probe'";

int32_t kernel_probe(void*, char* reason, uint32_t bytes) {
  std::snprintf(reason, bytes, "%s", no_probe);
  return 0;
}

int32_t comm_probe(void*, orr_comm_caps*, char* reason, uint32_t bytes) {
  std::snprintf(reason, bytes, "%s", no_probe);
  return 0;
}

void kernel_supports(void*, const orr_op*, orr_support* out) {
  out->score = 0;
  std::snprintf(out->reason, sizeof out->reason, "this plugin does not implement 'supports'");
}

// Slots of the type that `table` has but `fill_holes` forgets would stay NULL: one line each.
void fill_holes(orr_kernel_api& t) {
  using T = orr_kernel_api;
  if (!t.probe) t.probe = kernel_probe;
  if (!t.supports) t.supports = kernel_supports;
  fill<"measure">(t, &T::measure);
  fill<"prepare">(t, &T::prepare);
  fill<"release">(t, &T::release);
  fill<"launch">(t, &T::launch);
}

void fill_holes(orr_comm_api& t) {
  using T = orr_comm_api;
  if (!t.probe) t.probe = comm_probe;
  fill<"world">(t, &T::world);
  fill<"split">(t, &T::split);
  fill<"rank">(t, &T::rank);
  fill<"world_size">(t, &T::world_size);
  fill<"post">(t, &T::post);
  fill<"wait">(t, &T::wait);
  fill<"allocate">(t, &T::allocate);
  fill<"free">(t, &T::free);
  fill<"abort">(t, &T::abort);
  fill<"async_error">(t, &T::async_error);
  fill<"destroy">(t, &T::destroy);
  fill<"bytes_sent">(t, &T::bytes_sent);
  fill<"allocate_shared">(t, &T::allocate_shared);
}

void fill_holes(orr_strategy_api& t) {
  using T = orr_strategy_api;
  fill<"describe">(t, &T::describe);
  fill<"transform">(t, &T::transform);
  fill<"predict">(t, &T::predict);
  fill<"schedule">(t, &T::schedule);
  if (!t.transform_forward)
    t.transform_forward = [](void*, orr_program*, const orr_edit*,
                             const orr_options*) -> orr_status* { return nullptr; };
}

void fill_holes(orr_observer_api& t) {
  using T = orr_observer_api;
  fill<"start">(t, &T::start);
  fill<"observe">(t, &T::observe);
  fill<"stop">(t, &T::stop);
}

void fill_holes(orr_device_api& t) {
  using T = orr_device_api;
  fill<"facts">(t, &T::facts);
  fill<"allocate">(t, &T::allocate);
  fill<"free">(t, &T::free);
  fill<"copy">(t, &T::copy);
  fill<"stream_create">(t, &T::stream_create);
  fill<"stream_destroy">(t, &T::stream_destroy);
  fill<"event_create">(t, &T::event_create);
  fill<"event_destroy">(t, &T::event_destroy);
  fill<"event_record">(t, &T::event_record);
  fill<"stream_wait">(t, &T::stream_wait);
  fill<"event_sync">(t, &T::event_sync);
  fill<"open">(t, &T::open);
  fill<"capture_begin">(t, &T::capture_begin);
  fill<"capture_end">(t, &T::capture_end);
  fill<"graph_launch">(t, &T::graph_launch);
  fill<"graph_destroy">(t, &T::graph_destroy);
}

}  // namespace

template <class T>
std::unique_ptr<T> complete_table(const void* table) {
  uint32_t size;
  std::memcpy(&size, table, sizeof size);
  // Every table begins with its size and `self`; one larger than ours is from newer headers.
  if (size < 2 * sizeof(void*) || size > 64 * 1024)
    fail(ORR_UNAVAILABLE, "its table says it has {} bytes; set size = sizeof the table", size);
  auto copy = std::make_unique<T>();
  std::memcpy(copy.get(), table, std::min<size_t>(size, sizeof(T)));
  copy->size = sizeof(T);
  fill_holes(*copy);
  return copy;
}

template std::unique_ptr<orr_kernel_api> complete_table(const void*);
template std::unique_ptr<orr_comm_api> complete_table(const void*);
template std::unique_ptr<orr_strategy_api> complete_table(const void*);
template std::unique_ptr<orr_observer_api> complete_table(const void*);
template std::unique_ptr<orr_device_api> complete_table(const void*);

}  // namespace orrery
