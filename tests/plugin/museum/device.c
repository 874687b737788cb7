/* SPDX-License-Identifier: Apache-2.0
 *
 * A device in plain C over host memory: all work is done when its call returns, and nothing is
 * recorded. */
#include <orrery/device.h>
#include <orrery/host.h>
#include <orrery/plugin.h>

#include <stdlib.h>
#include <string.h>

static const orr_host* host;
static int streams, events; /* whose addresses stand for all of them */

static orr_status* facts(void* self, orr_device_facts* out) {
  (void)self;
  strcpy(out->name, "museum");
  strcpy(out->model, "host memory");
  out->memory = out->alignment = out->outside = 0;
  out->peak_flops = out->bandwidth = 0;
  return NULL;
}

static orr_status* open_device(void* self, int32_t local_rank, int32_t local_size) {
  (void)self, (void)local_rank, (void)local_size;
  return NULL;
}

static orr_status* allocate(void* self, int32_t tier, uint64_t bytes, orr_memory** out) {
  orr_memory* memory;
  (void)self;
  if (tier != ORR_TIER_DEVICE && tier != ORR_TIER_PINNED)
    return host->error(ORR_INVALID, "no memory of that tier here");
  memory = bytes > (uint64_t)1 << 40 ? NULL : calloc(1, sizeof *memory + bytes);
  if (!memory) return host->error(ORR_FAILED, "no memory of that size here");
  memory->size = sizeof *memory, memory->tier = tier, memory->bytes = bytes;
  memory->host = memory->native = memory + 1;
  strcpy(memory->native_kind, "museum");
  *out = memory;
  return NULL;
}

static void free_memory(void* self, orr_memory* memory) {
  (void)self;
  free(memory);
}

static orr_status* copy(void* self, orr_stream* stream, const orr_buffer* to,
                        const orr_buffer* from) {
  (void)self, (void)stream;
  memmove(orr_buffer_host(to), orr_buffer_host(from), to->bytes);
  return NULL;
}

static orr_status* stream_create(void* self, orr_stream** out) {
  (void)self;
  *out = (orr_stream*)&streams;
  return NULL;
}
static void stream_destroy(void* self, orr_stream* stream) { (void)self, (void)stream; }
static orr_status* event_create(void* self, orr_event** out) {
  (void)self;
  *out = (orr_event*)&events;
  return NULL;
}
static void event_destroy(void* self, orr_event* event) { (void)self, (void)event; }
static orr_status* event_record(void* self, orr_event* event, orr_stream* stream) {
  (void)self, (void)event, (void)stream;
  return NULL;
}
static orr_status* stream_wait(void* self, orr_stream* stream, orr_event* event) {
  (void)self, (void)stream, (void)event;
  return NULL;
}
static orr_status* event_sync(void* self, orr_event* event, int64_t deadline_ns) {
  (void)self, (void)event, (void)deadline_ns;
  return NULL;
}

static const orr_device_api table = {.size = sizeof(orr_device_api),
                                     .facts = facts,
                                     .allocate = allocate,
                                     .free = free_memory,
                                     .copy = copy,
                                     .stream_create = stream_create,
                                     .stream_destroy = stream_destroy,
                                     .event_create = event_create,
                                     .event_destroy = event_destroy,
                                     .event_record = event_record,
                                     .stream_wait = stream_wait,
                                     .event_sync = event_sync,
                                     .open = open_device};

static const void* get(void* self, const char* id, uint32_t version) {
  (void)self;
  return strcmp(id, "device") == 0 && version == 1 ? &table : NULL;
}

static orr_status* entry(const orr_bootstrap* boot, orr_exports* out) {
  host = boot->host("host", 1);
  out->get = get;
  return NULL;
}

ORR_PLUGIN(ORR_KIND_DEVICE, "museum", "1.0.0", "A device over host memory", entry, 1,
           {{"device", 1, 1}})
