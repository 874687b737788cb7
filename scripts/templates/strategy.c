/* @name@: data parallelism. The ranks share every batch and sum their gradients. See
 * orrery/strategy.h for the calls that edit a program. */
#include <orrery/comm.h>
#include <orrery/host.h>
#include <orrery/kernel.h>
#include <orrery/plugin.h>
#include <orrery/strategy.h>

#include <string.h>

static const orr_host* host;
static const char axis[] = "@name@";

static const orr_option options_[] = {
    {"bucket", ORR_ATTR_INT, 0, "1048576", "bytes of gradients that travel together"},
};

static orr_status* describe(void* self, orr_strategy_info* out) {
  (void)self;
  out->numeric_class =
      ORR_CLASS_EXACT; /* the host sums in an order that does not depend on the ranks */
  out->n_options = 1;
  out->options = options_;
  out->provides = "shares of the batch";
  out->requires_ = "";
  out->conflicts = "shares of the batch";
  return NULL;
}

typedef struct editing {
  orr_program* program;
  const orr_edit* edit;
  int64_t bucket;
} editing;

static orr_status* place_batch(void* arg, int32_t value, const orr_value_info* info) {
  const editing* e = arg;
  (void)info;
  return e->edit->place(e->program, value, axis, 0);
}

static orr_status* reduce_gradient(void* arg, int32_t value, const orr_value_info* info) {
  const editing* e = arg;
  (void)info;
  return e->edit->reduce(e->program, value, axis, e->bucket);
}

static orr_status* transform(void* self, orr_program* program, const orr_edit* edit,
                             const orr_options* options) {
  editing e = {program, edit, options->integer(options->self, "bucket", 1048576)};
  orr_status* status;
  (void)self;
  if (e.bucket < 1) return host->error(ORR_INVALID, "bucket: give at least 1 byte");
  status = edit->axis(program, axis, 0); /* all ranks that are left */
  if (!status) status = edit->each(program, 1u << ORR_ROLE_BATCH, &e, place_batch);
  if (!status) status = edit->each(program, 1u << ORR_ROLE_GRAD, &e, reduce_gradient);
  return status;
}

/* Where rank r's even share of n elements begins; shares are cut at multiples of 16. */
static uint64_t cut(uint64_t n, uint64_t r, uint64_t ranks) {
  const uint64_t at = ((n * r + ranks - 1) / ranks + 15) / 16 * 16;
  return at < n ? at : n;
}

/* A rank sends its tree nodes of what others own, and its finished share to all others. Embeddings'
 * rows are gathered: each sends its own to all others. */
static orr_status* predict(void* self, const orr_predict_query* q, orr_prediction* out) {
  const uint64_t n = q->reduced_elements, p = (uint64_t)q->axis_size, r = (uint64_t)q->rank;
  uint64_t elements = 0;
  (void)self;
  if (p > 1 && q->op == ORR_COLL_ALL_GATHER) {
    elements = q->counts ? (uint64_t)q->counts[r] * (p - 1) : 0;
  } else if (p > 1 && n > 0) {
    const uint64_t share = cut(n, r + 1, p) - cut(n, r, p);
    elements = (uint64_t)q->nodes * (n - share) + share * (p - 1);
  }
  out->bytes_sent = elements * (uint64_t)q->element_bytes;
  return NULL;
}

static const orr_strategy_api table = {.size = sizeof(orr_strategy_api),
                                       .describe = describe,
                                       .transform = transform,
                                       .predict = predict};

static const void* get(void* self, const char* id, uint32_t version) {
  (void)self;
  return strcmp(id, "strategy") == 0 && version == 1 ? &table : NULL;
}

static orr_status* entry(const orr_bootstrap* boot, orr_exports* out) {
  host = boot->host("host", 1);
  out->get = get;
  return NULL;
}

ORR_PLUGIN(ORR_KIND_STRATEGY, "@name@", "0.1.0", "Data parallelism", entry, 1, {{"strategy", 1, 1}})
