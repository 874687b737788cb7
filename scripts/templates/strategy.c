/* @name@: sparse gradients. Of every gradient each rank sends the largest elements alone; the
 * others are added to the next step's (Lin et al., "Deep Gradient Compression", ICLR 2018). See
 * orrery/strategy.h for the calls that edit a program. */
#include <orrery/host.h>
#include <orrery/ops.h>
#include <orrery/plugin.h>
#include <orrery/strategy.h>

#include <stdlib.h>
#include <string.h>

static const orr_host* host;
static const char axis[] = "@name@";

static const orr_option options_[] = {
    {"fraction", ORR_ATTR_INT, 0, "100", "one element of so many is sent, one at least"},
};

static orr_status* describe(void* self, orr_strategy_info* out) {
  (void)self;
  out->numeric_class = ORR_CLASS_APPROX; /* not the numbers of one process */
  out->n_options = 1;
  out->options = options_;
  out->provides = "";
  out->requires_ = "";
  out->conflicts = "";
  return NULL;
}

/* One exchange: its ops, until the first that fails. */
typedef struct writer {
  orr_program* program;
  const orr_edit* edit;
  orr_status* failed;
} writer;

/* Adds an op; returns its last output. */
static int32_t op(writer* w, const char* kind, int32_t a, int32_t b, const orr_attr* attrs,
                  int n_attrs, const orr_expr* expr) {
  const int32_t in[] = {a, b};
  const orr_op_desc desc = {sizeof desc, b < 0 ? 1 : 2, n_attrs, kind, in, attrs, expr};
  int32_t out[2] = {-1, -1}, n = 0;
  if (!w->failed) w->failed = w->edit->op(w->program, &desc, out, 2, &n);
  return n > 0 ? out[n - 1] : -1;
}

static int32_t reshape(writer* w, int32_t x, const int64_t* dims, int rank) {
  const orr_attr to = {.name = "dims", .type = ORR_ATTR_INTS, .ints = dims, .count = rank};
  return op(w, "reshape", x, -1, &to, 1, NULL);
}

/* A function of one or two tensors of this dtype. */
static int32_t pointwise(writer* w, int32_t fn, int32_t dtype, int32_t a, int32_t b) {
  const orr_instr instrs[] = {
      {.fn = ORR_FN_INPUT, .dtype = dtype, .a = 0, .b = -1, .c = -1},
      {.fn = ORR_FN_INPUT, .dtype = dtype, .a = b < 0 ? 0 : 1, .b = -1, .c = -1},
      {.fn = fn, .dtype = dtype, .a = 0, .b = b < 0 ? -1 : 1, .c = -1}};
  const int32_t result = 2;
  const orr_expr expr = {
      .size = sizeof expr, .n_instrs = 3, .n_outputs = 1, .instrs = instrs, .outputs = &result};
  return op(w, "pointwise", a, b, NULL, 0, &expr);
}

static int32_t scatter(writer* w, int32_t at, int32_t rows, int64_t n) {
  const orr_attr of = {.name = "rows", .type = ORR_ATTR_INT, .i = n};
  return op(w, "scatter_add", at, rows, &of, 1, NULL);
}

/* x of every rank, one behind the other. */
static int32_t of_all(writer* w, int32_t x, const int64_t* dims, int rank) {
  const orr_attr over[] = {
      {.name = "axis", .type = ORR_ATTR_TEXT, .text = axis},
      {.name = "ranks", .type = ORR_ATTR_INT, .i = w->edit->axis_size(w->program, axis)}};
  return reshape(w, op(w, "all_gather", x, -1, over, 2, NULL), dims, rank);
}

typedef struct settings {
  int64_t fraction;
} settings;

/* The gradient that all ranks use, given this rank's summand of it. */
static orr_status* exchange(void* arg, orr_program* program, const orr_edit* edit,
                            int32_t parameter, int32_t gradient, int32_t* out) {
  const settings* s = arg;
  writer w = {program, edit, NULL};
  const orr_state_desc kept = {.size = sizeof kept,
                               .name = "residual",
                               .like = parameter,
                               .varying = axis,
                               .leave = ORR_LEAVE_SUM,
                               .rank = -1};
  orr_value_info info = {.size = sizeof info};
  int32_t residual = -1, row, column, at, sent, all;
  int64_t n = 1, k, ranks = edit->axis_size(program, axis);
  int i;
  w.failed = edit->state(program, &kept, &residual);
  if (!w.failed) w.failed = edit->info(program, gradient, &info);
  for (i = 0; i < info.type.rank; ++i) n *= info.type.dims[i];
  k = n < s->fraction ? 1 : n / s->fraction;
  {
    const int64_t as_row[] = {1, n}, as_column[] = {n, 1}, one[] = {k}, every[] = {ranks * k, 1};
    const orr_attr largest = {.name = "k", .type = ORR_ATTR_INT, .i = k};
    row = reshape(&w, pointwise(&w, ORR_FN_ADD, info.type.dtype, gradient, residual), as_row, 2);
    column = reshape(&w, row, as_column, 2);
    at = reshape(
        &w,
        op(&w, "topk", pointwise(&w, ORR_FN_ABS, info.type.dtype, row, -1), -1, &largest, 1, NULL),
        one, 1);
    sent = op(&w, "gather", column, at, NULL, 0, NULL);
    all = scatter(&w, of_all(&w, at, every, 1), of_all(&w, sent, every, 2), n);
    row = pointwise(&w, ORR_FN_SUB, info.type.dtype, column, scatter(&w, at, sent, n));
  }
  row = reshape(&w, row, info.type.dims, info.type.rank);
  *out = reshape(&w, all, info.type.dims, info.type.rank);
  return w.failed ? w.failed : edit->update(program, residual, row);
}

static orr_status* place_batch(void* arg, int32_t value, const orr_value_info* info) {
  const writer* w = arg;
  (void)info;
  return w->edit->place(w->program, value, axis, 0);
}

static orr_status* transform(void* self, orr_program* program, const orr_edit* edit,
                             const orr_options* options) {
  const int64_t fraction = options->integer(options->self, "fraction", 100);
  writer w = {program, edit, NULL};
  settings* kept;
  orr_gradient_hook hook = {
      .size = sizeof hook, .arg = NULL, .release = free, .exchange = exchange};
  (void)self;
  if (fraction < 1) return host->error(ORR_INVALID, "fraction: give at least 1");
  w.failed = edit->axis(program, axis, 0); /* all ranks that are left */
  if (!w.failed) w.failed = edit->each(program, 1u << ORR_ROLE_BATCH, &w, place_batch);
  if (w.failed) return w.failed;
  kept = malloc(sizeof *kept);
  if (!kept) return host->error(ORR_FAILED, "no memory");
  kept->fraction = fraction;
  hook.arg = kept;
  return edit->exchange(program, axis, &hook); /* from here on the host's, which releases it */
}

/* No formula of its own for what is sent: the host knows what every op sends. */
static const orr_strategy_api table = {
    .size = sizeof(orr_strategy_api), .describe = describe, .transform = transform};

static const void* get(void* self, const char* id, uint32_t version) {
  (void)self;
  return strcmp(id, "strategy") == 0 && version == 1 ? &table : NULL;
}

static orr_status* entry(const orr_bootstrap* boot, orr_exports* out) {
  host = boot->host("host", 1);
  out->get = get;
  return NULL;
}

ORR_PLUGIN(ORR_KIND_STRATEGY, "@name@", "0.1.0", "Sparse gradients", entry, 1, {{"strategy", 1, 1}})
