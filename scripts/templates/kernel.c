/* @name@: the row softmax in f32. See orrery/kernel.h for the calls and orrery/ops.h for the op. */
#include <orrery/host.h>
#include <orrery/kernel.h>
#include <orrery/ops.h>
#include <orrery/plugin.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const orr_host* host;

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
  task t = {orr_buffer_host(in), orr_buffer_host(out), kernel->columns};
  (void)stream, (void)workspace;
  host->parallel_for(kernel->rows, softmax_row, &t);
  return NULL;
}

static const orr_kernel_api table = {
    sizeof(orr_kernel_api), NULL, "host", probe, supports, measure, prepare, release, launch, NULL};

static const void* get(void* self, const char* id, uint32_t version) {
  (void)self;
  return strcmp(id, "kernel") == 0 && version == 1 ? &table : NULL;
}

static orr_status* entry(const orr_bootstrap* boot, orr_exports* out) {
  host = boot->host("host", 1);
  out->get = get;
  return NULL;
}

ORR_PLUGIN(ORR_KIND_KERNEL, "@name@", "0.1.0", "Row softmax in f32", entry, 1, {{"kernel", 1, 1}})
