/* @name@: a device, and the row softmax in f32 on it. The device is host memory that the host may
 * not touch, and its streams do all work at once: put yours in place of both. See orrery/device.h
 * for the calls of a device, orrery/kernel.h for those of kernels, orrery/ops.h for the op. */
#include <orrery/device.h>
#include <orrery/host.h>
#include <orrery/kernel.h>
#include <orrery/ops.h>
#include <orrery/plugin.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const orr_host* host;

/* -- the device -------------------------------------------------------------------------------- */

/* An error of its work is told by the next event_sync behind it. */
struct orr_stream {
  char error[256];
};

struct orr_event {
  orr_stream* stream;
};

/* Where a buffer of this device is; `host` is set for what the host may touch as well. */
static char* address(const orr_buffer* b) {
  return (char*)(b->memory->host ? b->memory->host : b->memory->native) + b->offset;
}

static orr_status* facts(void* self, orr_device_facts* out) {
  (void)self;
  snprintf(out->name, sizeof out->name, "@name@");
  snprintf(out->model, sizeof out->model, "host memory under another name");
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
  memory = calloc(1, sizeof *memory);
  if (memory) memory->native = calloc(bytes ? bytes : 1, 1);
  if (!memory || !memory->native) {
    free(memory);
    return host->error(ORR_FAILED, "not so many bytes of memory");
  }
  memory->size = sizeof *memory;
  memory->tier = tier;
  memory->bytes = bytes;
  memory->host = tier == ORR_TIER_PINNED ? memory->native : NULL;
  snprintf(memory->native_kind, sizeof memory->native_kind, "@name@");
  *out = memory;
  return NULL;
}

static void free_memory(void* self, orr_memory* memory) {
  (void)self;
  free(memory->native);
  free(memory);
}

static orr_status* copy(void* self, orr_stream* stream, const orr_buffer* to,
                        const orr_buffer* from) {
  (void)self, (void)stream;
  memmove(address(to), address(from), to->bytes);
  return NULL;
}

static orr_status* stream_create(void* self, orr_stream** out) {
  (void)self;
  *out = calloc(1, sizeof **out);
  return *out ? NULL : host->error(ORR_FAILED, "no memory for a stream");
}

static void stream_destroy(void* self, orr_stream* stream) {
  (void)self;
  free(stream);
}

static orr_status* event_create(void* self, orr_event** out) {
  (void)self;
  *out = calloc(1, sizeof **out);
  return *out ? NULL : host->error(ORR_FAILED, "no memory for an event");
}

static void event_destroy(void* self, orr_event* event) {
  (void)self;
  free(event);
}

static orr_status* event_record(void* self, orr_event* event, orr_stream* stream) {
  (void)self;
  event->stream = stream;
  return NULL;
}

/* What an event stands for is done already. */
static orr_status* stream_wait(void* self, orr_stream* stream, orr_event* event) {
  (void)self, (void)stream, (void)event;
  return NULL;
}

static orr_status* event_sync(void* self, orr_event* event, int64_t deadline_ns) {
  char error[sizeof event->stream->error];
  (void)self, (void)deadline_ns;
  if (!event->stream || !event->stream->error[0]) return NULL;
  memcpy(error, event->stream->error, sizeof error);
  event->stream->error[0] = 0;
  return host->error(ORR_FAILED, error);
}

static const orr_device_api device = {
    .size = sizeof(orr_device_api),
    .facts = facts,
    .open = open_device,
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
};

/* -- a kernel on it ---------------------------------------------------------------------------- */

struct orr_kernel {
  int64_t rows, columns;
};

static const char* why_not(const orr_op* op) {
  const orr_tensor *x = op->in, *y = op->out;
  if (strcmp(op->kind, "softmax") != 0) return "only softmax is here";
  if (op->n_in != 1 || op->n_out != 1) return "softmax has one input and one output";
  if (x->dtype != ORR_F32 || y->dtype != ORR_F32) return "only f32 is here";
  if (x->rank != 2 || y->rank != 2 || x->dims[0] != y->dims[0] || x->dims[1] != y->dims[1])
    return "shapes differ";
  return NULL;
}

static int32_t probe(void* self, char* reason, uint32_t reason_bytes) {
  (void)self;
  if (reason_bytes > 0) reason[0] = 0;
  return 1;
}

static void supports(void* self, const orr_op* op, orr_support* out) {
  const char* reason = why_not(op);
  (void)self;
  out->score = reason ? 0 : 110; /* more than the 100 of Orrery's own kernels */
  snprintf(out->reason, sizeof out->reason, "%s", reason ? reason : "");
  /* Equal ids promise equal bits: name whatever decides about yours. */
  snprintf(out->numerics, sizeof out->numerics, "@name@ softmax: sum in row order");
  out->strided_in = out->strided_out = 0;
  out->inplace = 1;
}

static orr_status* measure(void* self, const orr_op* op, orr_kernel_size* out) {
  (void)self, (void)op;
  out->workspace = 0;
  return NULL;
}

static orr_status* prepare(void* self, const orr_op* op, orr_kernel** out) {
  orr_kernel* kernel = malloc(sizeof *kernel);
  (void)self;
  if (!kernel) return host->error(ORR_FAILED, "no memory for a kernel");
  kernel->rows = op->in->dims[0];
  kernel->columns = op->in->dims[1];
  *out = kernel;
  return NULL;
}

static void release(void* self, orr_kernel* kernel) {
  (void)self;
  free(kernel);
}

typedef struct task {
  const float* x;
  float* y;
  int64_t columns;
} task;

static void softmax_row(void* arg, int64_t row) {
  const task* t = arg;
  const int64_t n = t->columns;
  const float* x = t->x + row * n;
  float *y = t->y + row * n, top = x[0], sum = 0;
  for (int64_t i = 1; i < n; ++i) top = x[i] > top ? x[i] : top;
  for (int64_t i = 0; i < n; ++i) sum += y[i] = expf(x[i] - top);
  for (int64_t i = 0; i < n; ++i) y[i] *= 1 / sum;
}

static orr_status* launch(orr_kernel* kernel, orr_stream* stream, const orr_buffer* in,
                          const orr_buffer* out, const orr_buffer* workspace) {
  task t = {(const float*)address(in), (float*)address(out), kernel->columns};
  (void)stream, (void)workspace;
  host->parallel_for(kernel->rows, softmax_row, &t);
  return NULL;
}

static const orr_kernel_api kernels = {sizeof(orr_kernel_api),
                                       NULL,
                                       "@name@",
                                       probe,
                                       supports,
                                       measure,
                                       prepare,
                                       release,
                                       launch,
                                       NULL};

static const void* get(void* self, const char* id, uint32_t version) {
  (void)self;
  if (version != 1) return NULL;
  if (strcmp(id, "device") == 0) return &device;
  return strcmp(id, "kernel") == 0 ? &kernels : NULL;
}

static orr_status* entry(const orr_bootstrap* boot, orr_exports* out) {
  host = boot->host("host", 1);
  out->get = get;
  return NULL;
}

ORR_PLUGIN(ORR_KIND_DEVICE | ORR_KIND_KERNEL, "@name@", "0.1.0",
           "A device, and a row softmax on it", entry, 2, {{"device", 1, 1}, {"kernel", 1, 1}})
