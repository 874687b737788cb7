/* @name@: rows scaled to length 1, y = x / sqrt(sum of x * x + eps), as for cosine similarities.
 * Written in ops that the host knows (orrery/ops.h, docs/ops.md), it runs on every device and under
 * every strategy, and its gradient is theirs. See orrery/op.h for the calls. */
#include <orrery/host.h>
#include <orrery/op.h>
#include <orrery/ops.h>
#include <orrery/plugin.h>

#include <string.h>

static const orr_host* host;

static const orr_attr options_[] = {{.name = "eps", .type = ORR_ATTR_REAL, .f = 1e-6}};

static int32_t count(void* self) {
  (void)self;
  return 1;
}

static orr_status* describe(void* self, int32_t number, orr_op_info* out) {
  (void)self, (void)number;
  out->name = "@name@";
  out->summary = "rows scaled to length 1";
  out->n_in = 1;
  out->n_examples = 1;
  out->options = options_;
  out->n_options = 1;
  return NULL;
}

static orr_status* example(void* self, int32_t number, int32_t which, orr_tensor* in) {
  (void)self, (void)number, (void)which;
  in[0].dtype = ORR_F32;
  in[0].rank = 2;
  in[0].dims[0] = 6;
  in[0].dims[1] = 5;
  return NULL;
}

static orr_status* shape(void* self, int32_t number, const orr_op_call* call, orr_tensor* out) {
  (void)self, (void)number;
  if (call->in[0].rank < 2)
    return host->error(ORR_INVALID, "@name@ needs rows, at least two dims: x:reshape(-1, width)");
  *out = call->in[0];
  return NULL;
}

/* One writing of the op: its ops, until the first that fails. */
typedef struct writing {
  orr_program* program;
  const orr_writer* writer;
  orr_status* failed;
} writing;

/* Adds an op of one or two inputs; returns its output. */
static int32_t op(writing* w, const char* kind, int32_t a, int32_t b, const orr_attr* attrs,
                  int n_attrs, const orr_expr* expr) {
  const int32_t in[] = {a, b};
  const orr_op_desc desc = {sizeof desc, b < 0 ? 1 : 2, n_attrs, kind, in, attrs, expr};
  int32_t out = -1, n = 0;
  if (!w->failed) w->failed = w->writer->op(w->program, &desc, &out, 1, &n);
  return out;
}

/* A function of one or two tensors of this dtype; without a second one, of `a` and a number. */
static int32_t pointwise(writing* w, int32_t fn, int32_t dtype, int32_t a, int32_t b,
                         double number) {
  const int unary = fn == ORR_FN_SQRT;
  const orr_instr instrs[] = {{.fn = ORR_FN_INPUT, .dtype = dtype, .a = 0, .b = -1, .c = -1},
                              {.fn = b < 0 ? ORR_FN_CONST : ORR_FN_INPUT,
                               .dtype = dtype,
                               .a = b < 0 ? -1 : a != b,
                               .b = -1,
                               .c = -1,
                               .imm = number},
                              {.fn = fn, .dtype = dtype, .a = 0, .b = unary ? -1 : 1, .c = -1}};
  const int32_t result = 2;
  const orr_expr expr = {
      .size = sizeof expr, .n_instrs = 3, .n_outputs = 1, .instrs = instrs, .outputs = &result};
  return op(w, "pointwise", a, a == b ? -1 : b, NULL, 0, &expr);
}

static orr_status* forward(void* self, int32_t number, const orr_op_call* call,
                           orr_program* program, const orr_writer* writer, const int32_t* in,
                           int32_t* out) {
  const int32_t x = in[0], dtype = call->in[0].dtype, rank = call->in[0].rank;
  const orr_attr rows[] = {{.name = "fn", .type = ORR_ATTR_TEXT, .text = "sum"},
                           {.name = "begin", .type = ORR_ATTR_INT, .i = rank - 1},
                           {.name = "end", .type = ORR_ATTR_INT, .i = rank}};
  orr_tensor column = call->in[0];
  const orr_attr dims = {.name = "dims", .type = ORR_ATTR_INTS, .ints = column.dims, .count = rank};
  writing w = {program, writer, NULL};
  int32_t s;
  (void)self, (void)number;
  column.dims[rank - 1] = 1;
  s = op(&w, "reduce", pointwise(&w, ORR_FN_MUL, dtype, x, x, 0), -1, rows, 3, NULL);
  s = op(&w, "reshape", s, -1, &dims, 1, NULL);
  s = pointwise(&w, ORR_FN_ADD, dtype, s, -1, call->options[0].f);
  s = pointwise(&w, ORR_FN_SQRT, dtype, s, -1, 0);
  *out = pointwise(&w, ORR_FN_DIV, dtype, x, s, 0);
  return w.failed;
}

static const orr_op_api table = {.size = sizeof(orr_op_api),
                                 .count = count,
                                 .describe = describe,
                                 .example = example,
                                 .shape = shape,
                                 .forward = forward};

static const void* get(void* self, const char* id, uint32_t version) {
  (void)self;
  return strcmp(id, "op") == 0 && version == 1 ? &table : NULL;
}

static orr_status* entry(const orr_bootstrap* boot, orr_exports* out) {
  host = boot->host("host", 1);
  out->get = get;
  return NULL;
}

ORR_PLUGIN(ORR_KIND_OP, "@name@", "0.1.0", "Rows of length 1", entry, 1, {{"op", 1, 1}})
