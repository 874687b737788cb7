// SPDX-License-Identifier: Apache-2.0
//
// Two functions for each slot of a table, generated from the slot's type and name: one calls the
// plugin, the other fills a hole.
#include "plugin/tables.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <orrery/sdk/plugin.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "plugin/host.h"
#include "plugin/inside.h"

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

// The tables that were completed, by number. A generated function gets no pointer to its table: the
// number is a template argument of it.
constexpr size_t most_tables = 32;  // of a kind
template <class T>
struct Given {
  T table;
  const char* plugin;
};
template <class T>
Given<T> given[most_tables];

// Kernels, devices and ops know nothing of the place in which they are called, and speak of tensors
// and handles. What the other kinds say is a sentence of their own, which the caller begins.
template <class T>
constexpr bool is_named = std::is_same_v<T, orr_kernel_api> || std::is_same_v<T, orr_device_api> ||
                          std::is_same_v<T, orr_op_api>;

// The plugin's error, with the plugin's name and the function behind its words. `plugin`: "kernel
// 'x' (FILE)".
template <class T>
orr_status* named(orr_status* status, const char* plugin, const char* function) {
  const orr_host& host = host_table();
  const int32_t code = host.error_code(status);
  if (code == ORR_OK || !(is_named<T> || code == ORR_UNIMPLEMENTED)) return status;
  std::string text = host.error_message(status);
  if (text.empty()) text = "no message";
  host.error_release(status);
  const std::string_view name = std::string_view(plugin).substr(0, std::string(plugin).find(" ("));
  return host.error(code, fmt::format("{} [{}, {}]", text, name, function).c_str());
}

// Whether a function may wait for other ranks, or for their work: those of comm/1 but for a few,
// waits for a device, whose streams may wait for messages, and for what a rank puts.
template <class T>
constexpr bool may_wait(std::string_view function) {
  if constexpr (std::is_same_v<T, orr_device_api>) return function == "event_sync";
  if constexpr (std::is_same_v<T, orr_boot_api>) return function == "get";
  if constexpr (!std::is_same_v<T, orr_comm_api>) return false;
  for (const char* never : {"probe", "rank", "world_size", "async_error", "destroy", "bytes_sent"})
    if (function == never) return false;
  return true;
}

// Calls a function of table number n. An exception becomes a status, or ends the process if the
// function returns none.
template <Text name, auto slot, size_t n, class T, class R, class... A>
R enter(A... arguments) noexcept {
  constexpr bool waits = may_wait<T>(name.value);
  const Inside inside({given<T>[n].plugin, name.value, waits});
  const auto call = [&] { return (given<T>[n].table.*slot)(arguments...); };
  if constexpr (std::is_same_v<R, orr_status*>)
    return caught([&] { return named<T>(call(), given<T>[n].plugin, name.value); });
  else
    return call();
}

template <Text name, auto slot, class T, class R, class... A, size_t... n>
R (*entrance(R (*T::*)(A...), size_t number, std::index_sequence<n...>))
(A...) {
  static constexpr std::array<R (*)(A...), sizeof...(n)> all = {
      enter<name, slot, n, T, R, A...>...};
  return all[number];
}

template <Text name, class T, class R, class... A>
R (*hole_of(R (*T::*)(A...)))
(A...) {
  return hole<name, R, A...>;
}

// `own` is the copy of the plugin's table, with its holes filled. The core gets `out`, whose
// functions call those of `own`.
template <class T>
struct Made {
  T &own, &out;
  size_t number;
};

template <Text name, auto slot, class T>
void fill(Made<T>& m) {
  if (!(m.own.*slot)) m.own.*slot = hole_of<name>(slot);
  m.out.*slot = entrance<name, slot>(slot, m.number, std::make_index_sequence<most_tables>{});
}

constexpr const char* no_probe = "this plugin does not implement 'probe'";

int32_t kernel_probe(void*, char* reason, uint32_t bytes) {
  std::snprintf(reason, bytes, "%s", no_probe);
  return 0;
}

// The host has set all factors to -1.
orr_status* no_part_factors(void*, int32_t, const orr_op_call*, int32_t, int32_t*) {
  return nullptr;
}

// One flop for each element of a result.
orr_status* cost_of_each_element(void*, int32_t, const orr_op_call* call, const orr_tensor* out,
                                 orr_op_cost* cost) {
  const auto bytes = [](const orr_tensor& t) {
    return static_cast<double>(orr::elements(t)) * orr_dtype_bytes(t.dtype);
  };
  for (int32_t i = 0; i < call->n_in; ++i) cost->bytes += bytes(call->in[i]);
  for (int32_t j = 0; j < call->n_out; ++j)
    cost->flops += static_cast<double>(orr::elements(out[j])), cost->bytes += bytes(out[j]);
  return nullptr;
}

int32_t comm_probe(void*, orr_comm_caps*, char* reason, uint32_t bytes) {
  std::snprintf(reason, bytes, "%s", no_probe);
  return 0;
}

void kernel_supports(void*, const orr_op*, orr_support* out) {
  out->score = 0;
  std::snprintf(out->reason, sizeof out->reason, "this plugin does not implement 'supports'");
}

// One line for each slot of the table: a slot that is forgotten here would stay NULL.
void fill_holes(Made<orr_kernel_api> m) {
  using T = orr_kernel_api;
  if (!m.own.probe) m.own.probe = kernel_probe;
  if (!m.own.supports) m.own.supports = kernel_supports;
  fill<"probe", &T::probe>(m);
  fill<"supports", &T::supports>(m);
  fill<"measure", &T::measure>(m);
  fill<"prepare", &T::prepare>(m);
  fill<"release", &T::release>(m);
  fill<"launch", &T::launch>(m);
  m.out.claim = nullptr;  // the core looks whether there is one
  if (m.own.claim) fill<"claim", &T::claim>(m);
}

void fill_holes(Made<orr_comm_api> m) {
  using T = orr_comm_api;
  if (!m.own.probe) m.own.probe = comm_probe;
  fill<"probe", &T::probe>(m);
  fill<"world", &T::world>(m);
  fill<"split", &T::split>(m);
  fill<"rank", &T::rank>(m);
  fill<"world_size", &T::world_size>(m);
  fill<"post", &T::post>(m);
  fill<"wait", &T::wait>(m);
  fill<"allocate", &T::allocate>(m);
  fill<"free", &T::free>(m);
  fill<"abort", &T::abort>(m);
  fill<"async_error", &T::async_error>(m);
  fill<"destroy", &T::destroy>(m);
  fill<"bytes_sent", &T::bytes_sent>(m);
  fill<"allocate_shared", &T::allocate_shared>(m);
}

void fill_holes(Made<orr_strategy_api> m) {
  using T = orr_strategy_api;
  fill<"describe", &T::describe>(m);
  fill<"transform", &T::transform>(m);
  fill<"predict", &T::predict>(m);
  fill<"schedule", &T::schedule>(m);
  if (!m.own.transform_forward)
    m.own.transform_forward = [](void*, orr_program*, const orr_edit*,
                                 const orr_options*) -> orr_status* { return nullptr; };
  fill<"transform_forward", &T::transform_forward>(m);
}

void fill_holes(Made<orr_observer_api> m) {
  using T = orr_observer_api;
  fill<"start", &T::start>(m);
  fill<"observe", &T::observe>(m);
  fill<"stop", &T::stop>(m);
  fill<"wants", &T::wants>(m);
}

// A function without which the table is of no use: later, its absence would be found in the middle
// of work that cannot be taken back.
template <Text name, auto slot, class T>
void need(const T& own) {
  if (!(own.*slot))
    fail(ORR_UNAVAILABLE,
         "its table has no function '{}', which every plugin of its kind must have", name.value);
}

void check_functions(const orr_device_api& own) {
  using T = orr_device_api;
  need<"facts", &T::facts>(own), need<"allocate", &T::allocate>(own);
  need<"free", &T::free>(own), need<"copy", &T::copy>(own);
  need<"stream_create", &T::stream_create>(own), need<"stream_destroy", &T::stream_destroy>(own);
  need<"event_create", &T::event_create>(own), need<"event_destroy", &T::event_destroy>(own);
  need<"event_record", &T::event_record>(own), need<"stream_wait", &T::stream_wait>(own);
  need<"event_sync", &T::event_sync>(own), need<"open", &T::open>(own);
  const int recording =
      !!own.capture_begin + !!own.capture_end + !!own.graph_launch + !!own.graph_destroy;
  if (recording % 4)
    fail(ORR_UNAVAILABLE,
         "its table has some of 'capture_begin', 'capture_end', 'graph_launch' and "
         "'graph_destroy': a device that records has all of them");
}

void fill_holes(Made<orr_device_api> m) {
  using T = orr_device_api;
  check_functions(m.own);
  fill<"facts", &T::facts>(m);
  fill<"allocate", &T::allocate>(m);
  fill<"free", &T::free>(m);
  fill<"copy", &T::copy>(m);
  fill<"stream_create", &T::stream_create>(m);
  fill<"stream_destroy", &T::stream_destroy>(m);
  fill<"event_create", &T::event_create>(m);
  fill<"event_destroy", &T::event_destroy>(m);
  fill<"event_record", &T::event_record>(m);
  fill<"stream_wait", &T::stream_wait>(m);
  fill<"event_sync", &T::event_sync>(m);
  fill<"open", &T::open>(m);
  fill<"capture_begin", &T::capture_begin>(m);
  fill<"capture_end", &T::capture_end>(m);
  fill<"graph_launch", &T::graph_launch>(m);
  fill<"graph_destroy", &T::graph_destroy>(m);
  if (!m.own.stream_create_urgent) m.own.stream_create_urgent = m.own.stream_create;
  fill<"stream_create_urgent", &T::stream_create_urgent>(m);
}

void fill_holes(Made<orr_op_api> m) {
  using T = orr_op_api;
  fill<"count", &T::count>(m);
  fill<"describe", &T::describe>(m);
  fill<"example", &T::example>(m);
  fill<"shape", &T::shape>(m);
  fill<"forward", &T::forward>(m);
  fill<"backward", &T::backward>(m);
  fill<"factors", &T::factors>(m);
  fill<"backward_of", &T::backward_of>(m);
  if (!m.own.cost) m.own.cost = cost_of_each_element;
  fill<"cost", &T::cost>(m);
  if (!m.own.part_factors) m.own.part_factors = no_part_factors;
  fill<"part_factors", &T::part_factors>(m);
  fill<"on_parts", &T::on_parts>(m);
}

void fill_holes(Made<orr_data_api> m) {
  using T = orr_data_api;
  fill<"open", &T::open>(m);
  fill<"info", &T::info>(m);
  fill<"field", &T::field>(m);
  fill<"class_name", &T::class_name>(m);
  fill<"read", &T::read>(m);
  fill<"close", &T::close>(m);
  fill<"make", &T::make>(m);
  fill<"vocab", &T::vocab>(m);
  fill<"encode", &T::encode>(m);
  fill<"decode", &T::decode>(m);
  fill<"save", &T::save>(m);
  fill<"release", &T::release>(m);
}

void fill_holes(Made<orr_storage_api> m) {
  using T = orr_storage_api;
  fill<"serves", &T::serves>(m);
  fill<"get", &T::get>(m);
  fill<"put", &T::put>(m);
  fill<"list", &T::list>(m);
  fill<"remove", &T::remove>(m);
}

void fill_holes(Made<orr_checkpoint_api> m) {
  using T = orr_checkpoint_api;
  fill<"write", &T::write>(m);
  fill<"complete", &T::complete>(m);
  fill<"serves", &T::serves>(m);
  fill<"files", &T::files>(m);
  fill<"open", &T::open>(m);
  fill<"facts", &T::facts>(m);
  fill<"tensors", &T::tensors>(m);
  fill<"read", &T::read>(m);
  fill<"close", &T::close>(m);
}

void fill_holes(Made<orr_facts_api> m) { fill<"tell", &orr_facts_api::tell>(m); }

void fill_holes(Made<orr_boot_api> m) {
  using T = orr_boot_api;
  need<"started", &T::started>(m.own), need<"put", &T::put>(m.own), need<"get", &T::get>(m.own);
  fill<"started", &T::started>(m);
  fill<"put", &T::put>(m);
  fill<"get", &T::get>(m);
}

}  // namespace

template <class T>
std::unique_ptr<T> complete_table(const void* table, const std::string& plugin) {
  uint32_t size;
  std::memcpy(&size, table, sizeof size);
  // Every table begins with its size and `self`; one larger than ours is from newer headers.
  if (size < 2 * sizeof(void*) || size > 64 * 1024)
    fail(ORR_UNAVAILABLE, "its table says it has {} bytes; set size = sizeof the table", size);
  static size_t tables = 0;
  if (tables == most_tables)
    fail(ORR_UNAVAILABLE, "{} plugins of its kind are loaded already, which is the most",
         most_tables);
  Given<T>& kept = given<T>[tables];
  kept.plugin = kept_text(plugin);
  std::memcpy(&kept.table, table, std::min<size_t>(size, sizeof(T)));
  kept.table.size = sizeof(T);
  auto out = std::make_unique<T>(kept.table);
  fill_holes(Made<T>{kept.table, *out, tables++});
  return out;
}

template std::unique_ptr<orr_boot_api> complete_table(const void*, const std::string&);
template std::unique_ptr<orr_facts_api> complete_table(const void*, const std::string&);
template std::unique_ptr<orr_checkpoint_api> complete_table(const void*, const std::string&);
template std::unique_ptr<orr_kernel_api> complete_table(const void*, const std::string&);
template std::unique_ptr<orr_comm_api> complete_table(const void*, const std::string&);
template std::unique_ptr<orr_strategy_api> complete_table(const void*, const std::string&);
template std::unique_ptr<orr_observer_api> complete_table(const void*, const std::string&);
template std::unique_ptr<orr_op_api> complete_table(const void*, const std::string&);
template std::unique_ptr<orr_data_api> complete_table(const void*, const std::string&);
template std::unique_ptr<orr_device_api> complete_table(const void*, const std::string&);
template std::unique_ptr<orr_storage_api> complete_table(const void*, const std::string&);

}  // namespace orrery
