// SPDX-License-Identifier: Apache-2.0
//
// Bad devices.
#define DEVICE_NAME "museum"
#include "fault.h"
#include "good_device.cpp"
#pragma pop_macro("ORR_PLUGIN")

#include <unistd.h>

#include <cstddef>

namespace {

bool opened = false;

orr_status* bad_facts(void* self, orr_device_facts* out) {
  if (fault("knows_nothing_before_open") && !opened)
    return orr::host->error(ORR_FAILED, "open it first");
  orr_status* status = facts(self, out);
  if (fault("writes_beyond_facts")) reinterpret_cast<volatile char*>(out)[sizeof *out] = 0;
  return status;
}

orr_status* bad_open(void* self, int32_t rank, int32_t size) {
  opened = true;
  return open(self, rank, size);
}

orr_status* bad_allocate(void* self, int32_t tier, uint64_t bytes, orr_memory** out) {
  if (fault("allocates_any_tier") && tier > ORR_TIER_DEVICE) tier = ORR_TIER_DEVICE;
  orr_status* status = allocate(self, tier, bytes, out);
  if (status) return status;
  if (fault("hands_out_used_memory")) static_cast<char*>((*out)->native)[bytes - 1] = 1;
  if (fault("has_no_address_for_pinned")) (*out)->host = nullptr;
  return nullptr;
}

// Done at once, before what was enqueued earlier.
void overtake(const orr_buffer* to, const orr_buffer* from) {
  std::memmove(place(*to), place(*from), to->bytes);
}

orr_status* bad_copy(void* self, orr_stream* stream, const orr_buffer* to, const orr_buffer* from) {
  orr_buffer other = *from;
  if (fault("copies_from_the_beginning")) other.offset = 0;
  if (fault("copies_with_memcpy_of_four") && to->memory == from->memory && from->bytes > 4)
    other.offset -= 1;
  orr_buffer short_to = *to;
  if (fault("copies_in_words")) short_to.bytes = other.bytes = to->bytes / 4 * 4;
  if (fault("overtakes_copies") && to->bytes % 5 == 0) return overtake(to, from), nullptr;
  if (fault("runs_what_it_records")) overtake(to, from);
  return copy(self, stream, &short_to, &other);
}

orr_status* bad_wait(void* self, orr_stream* stream, orr_event* event) {
  return fault("ignores_waits") ? nullptr : stream_wait(self, stream, event);
}

void bad_event_destroy(void* self, orr_event* event) {
  if (!fault("keeps_events")) event_destroy(self, event);
}

void bad_graph_destroy(void* self, orr_graph* graph) {
  if (!fault("keeps_graphs")) graph_destroy(self, graph);
}

orr_status* bad_graph_launch(void* self, orr_graph* graph, orr_stream* stream) {
  orr_status* status = graph_launch(self, graph, stream);
  if (fault("records_a_graph_for_once")) graph_of(graph)->work.clear();
  return status;
}

orr_status* bad_sync(void* self, orr_event* event, int64_t deadline_ns) {
  static std::string told;
  if (fault("fails_when_late") && deadline_ns < 1000)
    return orr::host->error(ORR_FAILED, "the device is broken");
  // One copy is still to come.
  if (fault("ends_events_too_early") && event_of(event)->end > 0) --event_of(event)->end;
  if (!told.empty()) return orr::host->error(ORR_FAILED, told.c_str());
  orr_status* status = event_sync(self, event, deadline_ns);
  if (!status) return nullptr;
  if (fault("tells_errors_again")) told = orr::host->error_message(status);
  if (fault("forgets_errors")) return orr::host->error_release(status), nullptr;
  return status;
}

orr_status* bad_prepare(void* self, const orr_op* op, orr_kernel** out) {
  orr_op other = *op;
  if (fault("tells_errors_without_place")) other.where = "somewhere";
  return prepare(self, &other, out);
}

orr_status* bad_launch(orr_kernel* kernel, orr_stream* stream, const orr_buffer* in,
                       const orr_buffer* out, const orr_buffer* workspace) {
  while (fault("loops_in_a_launch")) pause();
  if (fault("overflows_the_stack")) deeper(nullptr);
  orr_buffer table_rows = in[0];
  if (fault("launches_from_the_beginning")) table_rows.offset = 0;
  const orr_buffer all[] = {table_rows, in[1]};
  return launch(kernel, stream, all, out, workspace);
}

orr_device_api bad_device() {
  orr_device_api bad = device_table;
  bad.facts = bad_facts, bad.open = bad_open, bad.allocate = bad_allocate, bad.copy = bad_copy;
  bad.stream_wait = bad_wait, bad.event_destroy = bad_event_destroy, bad.event_sync = bad_sync;
  bad.graph_launch = bad_graph_launch, bad.graph_destroy = bad_graph_destroy;
  if (fault("misses_a_slot")) bad.stream_wait = nullptr;
  if (fault("records_without_an_end")) bad.capture_end = nullptr;
  return bad;
}

orr_kernel_api bad_kernel() {
  orr_kernel_api bad = table;
  bad.prepare = bad_prepare, bad.launch = bad_launch;
  return bad;
}

orr_status* bad_entry(const orr_bootstrap* boot, orr_exports* out) {
  static const orr_device_api device = bad_device();
  static const orr_kernel_api kernel = bad_kernel();
  orr_status* status = entry(boot, out);
  out->get = [](void*, const char* id, uint32_t version) -> const void* {
    if (version != 1) return nullptr;
    if (std::string_view(id) == "device") return &device;
    return std::string_view(id) == "kernel" ? &kernel : nullptr;
  };
  return status;
}

}  // namespace

ORR_PLUGIN(ORR_KIND_KERNEL | ORR_KIND_DEVICE, DEVICE_NAME, "0.1.0", "A bad device", bad_entry, 2,
           {{"kernel", 1, 1}, {"device", 1, 1}})
