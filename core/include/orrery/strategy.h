/* SPDX-License-Identifier: Apache-2.0
 *
 * strategy/1: rewrites of a training step. A strategy never sees tensors, streams or sockets: it
 * reads a program and edits it through the host's table, so that the core can execute, simulate and
 * count the result, and strategies compose as a stack.
 */
#ifndef ORRERY_STRATEGY_H
#define ORRERY_STRATEGY_H

#include <orrery/kernel.h>
#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How far from the one-process run a strategy takes the numbers. */
enum { ORR_CLASS_EXACT = 1, ORR_CLASS_STALE = 2, ORR_CLASS_APPROX = 3 };

enum {
  ORR_ROLE_ACTIVATION = 0,
  ORR_ROLE_PARAM = 1,
  ORR_ROLE_GRAD = 2,
  ORR_ROLE_STATE = 3,
  ORR_ROLE_INPUT = 4,
  ORR_ROLE_LOSS = 5,
  ORR_ROLE_SCALAR = 6,
  ORR_ROLE_BATCH = 7
};

enum { ORR_PHASE_FORWARD = 0, ORR_PHASE_BACKWARD = 1, ORR_PHASE_UPDATE = 2 };

/* How a value relates to the batch: the same for all samples, one for each of them, a sum over the
 * batch, or what is made of such sums. */
enum { ORR_BATCH_NONE = 0, ORR_BATCH_SAMPLES = 1, ORR_BATCH_SUM = 2, ORR_BATCH_MEAN = 3 };

enum { ORR_LIFE_KEEP = 0, ORR_LIFE_RECOMPUTE = 1, ORR_LIFE_HOST = 2, ORR_LIFE_DISK = 3 };

/* One option of a strategy: what the user may write in its table. */
typedef struct orr_option {
  const char* name;
  int32_t type; /* ORR_ATTR_INT, _REAL, _TEXT (kernel.h), 0: a number or a text */
  int32_t required;
  const char* fallback; /* default, as text, NULL if none */
  const char* doc;      /* one line */
} orr_option;

typedef struct orr_strategy_info {
  uint32_t size;
  int32_t numeric_class;
  int32_t n_options;
  const orr_option* options;
  const char* provides;  /* comma-separated words: "gradient reduction" */
  const char* requires_; /* words that another strategy of the stack must provide */
  const char* conflicts; /* words that none may provide */
} orr_strategy_info;

/* A program under edit. Opaque; valid for the call. Values are numbered from 0. */
typedef struct orr_program orr_program;

typedef struct orr_value_info {
  uint32_t size;
  int32_t role;
  orr_tensor type;    /* global shape */
  const char* name;   /* parameter or input path, "" for activations */
  const char* region; /* module path */
  const char* where;  /* Lua file:line */
  const char* kind;   /* the op that makes it, "" if it is given */
  int32_t phase;      /* of that op: ORR_PHASE_* */
  int64_t op;         /* a number that all outputs of the op have, for the call; -1: given */
  int32_t output;     /* which of them, from 0 */
  int32_t runs;       /* the phase in which the op runs: forward also for derivatives that a loss is
                         made of, which are of phase backward */
  int32_t batch;      /* ORR_BATCH_* */
  int32_t batch_dim;  /* ORR_BATCH_SAMPLES: the dim, from 0, that runs over them; else -1 */
  const char* beside; /* states: the parameter that it is updated with, "" if none is known */
} orr_value_info;

/* What of a parameter's training lies in pieces; each includes the ones before. */
enum {
  ORR_SHARD_STATE =
      1, /* optimizer state and update: gradients end at owners, new values are gathered */
  ORR_SHARD_GRADIENT =
      2, /* memory of summed gradients: given back as soon as owners have their pieces */
  ORR_SHARD_PARAM = 3 /* the parameter: gathered before forward uses it and again before backward */
};

typedef struct orr_shard {
  uint32_t size;
  int32_t what;
  const char* axis; /* "batch"; or an axis that deals the batch, or its inner half */
  int32_t unit;     /* parameters of equal number are gathered and reduced together */
  int32_t owner;    /* the coordinate that holds them whole; -1: cut evenly, at multiples of
                       ORR_SUM_BLOCK elements (ops.h), which needs an elementwise update */
  int32_t keep;     /* ORR_SHARD_PARAM: what forward gathered stays for backward */
  int64_t ahead;    /* ORR_SHARD_PARAM: units that are gathered ahead of the one in use; 1 where
                       `size` ends before it */
} orr_shard;

/* Of orr_edit.serve. */
typedef struct orr_serve {
  uint32_t size;
  const char*
      axis; /* deals the batch; the job's only one. Its first ranks serve the parameters that
                         `shard` has given them */
  int32_t servers;
  int32_t push, pull; /* steps between two pushes of gradients, between two pulls of weights */
  int32_t bound;   /* -1: gradients are applied as they come. Else those of one step together, and a
                         worker is at most this many steps ahead of the weights that it reads */
  const char* log; /* file that arrivals are written to, "" none */
  const char* replay; /* file whose arrivals are followed, "" none */
} orr_serve;

/* An op to be added: kinds, inputs and attributes as in orrery/ops.h and docs/ops.md; `expr` of
 * pointwise, else NULL. Texts and lists are copied. */
typedef struct orr_op_desc {
  uint32_t size;
  int32_t n_in, n_attrs;
  const char* kind;
  const int32_t* in;
  const orr_attr* attrs;
  const orr_expr* expr;
} orr_op_desc;

enum { ORR_INIT_ZEROS = 0, ORR_INIT_LIKE = 1, ORR_INIT_NORMAL = 2, ORR_INIT_CONSTANT = 3 };
enum { ORR_LEAVE_MEAN = 0, ORR_LEAVE_SUM = 1, ORR_LEAVE_FIRST = 2, ORR_LEAVE_REFUSE = 3 };

/* A tensor that a strategy keeps, like an optimizer's: part of checkpoints and plans. */
typedef struct orr_state_desc {
  uint32_t size;
  const char* name;    /* "anchor"; its full name has the strategy's and `like`'s in front */
  int32_t like;        /* the parameter or state beside which it lies, whose dtype it has; -1: none,
                          it is the step's, of `dtype` and a shape of its own */
  int32_t init;        /* ORR_INIT_ZEROS; _LIKE: what `like` begins with; _NORMAL: N(0, 1);
                          _CONSTANT: `value` */
  const char* varying; /* the axis on which every coordinate has one of its own, "" none */
  int32_t leave;       /* how a checkpoint of another number of ranks makes one of them */
  int32_t rank;        /* of a shape of its own; -1: that of `like` */
  const int64_t* dims; /* `rank` of them */
  double value;        /* ORR_INIT_CONSTANT */
  int32_t dtype;       /* where there is no `like` */
  int32_t passing;     /* 1: no part of checkpoints, for it holds nothing between sessions of a
                          driver (driver.h) */
} orr_state_desc;

/* A part of a program, to be copied into another (driver.h). */
typedef struct orr_part {
  uint32_t size;
  int32_t n_given, n_wanted;
  orr_program* from;
  const int32_t* given;  /* values of `from` */
  const int32_t* as;     /* values of the other program that stand for them there */
  const int32_t* wanted; /* values of `from` */
} orr_part;

/* Which uses of a value: bit 1 << ORR_PHASE_* for the ops that run in that phase (`runs`), and
 * ORR_USES_RESULTS for results of the step and what states will hold. */
enum { ORR_USES_RESULTS = 8, ORR_USES_ALL = 15 };

struct orr_edit;
struct orr_driver;

/* A hook is called later, by the same thread, with the program that it may add to; `release`, which
 * may be NULL, when the host is through with it. */
typedef struct orr_gradient_hook {
  uint32_t size;
  void* arg;
  void (*release)(void* arg);
  /* Once for each parameter, on one rank as well. `gradient` is this coordinate's summand of the
   * mean gradient; *out what all of `axis` agree on, of the same shape and dtype. */
  orr_status* (*exchange)(void* arg, orr_program*, const struct orr_edit*, int32_t parameter,
                          int32_t gradient, int32_t* out);
} orr_gradient_hook;

typedef struct orr_program_hook {
  uint32_t size;
  void* arg;
  void (*release)(void* arg);
  /* Writes the program of one of the rounds, from 0, into an empty one that has all parameters and
   * states of the step: `each` finds them. */
  orr_status* (*write)(void* arg, orr_program*, const struct orr_edit*, int32_t round);
} orr_program_hook;

typedef struct orr_complete_hook {
  uint32_t size;
  int32_t decides; /* 1: it decides what becomes of the whole step: it comes after the hooks that
                      have 0, and is given `norm` */
  void* arg;
  void (*release)(void* arg);
  /* What only one for all ranks can be, for the error where ranks train apart: "loss scale". NULL
   * unless it decides. */
  const char* what;
  /* The update is written, with all parameters and states of the step. `loss` is its loss, `norm`
   * the squared norm of all gradients as clipping measures it, f32 (-1: there are none). */
  orr_status* (*complete)(void* arg, orr_program*, const struct orr_edit*, int32_t loss,
                          int32_t norm);
} orr_complete_hook;

/* The host's editing calls. Only what a strategy of this revision needs has a slot; the table
 * grows. Texts and structs that a strategy hands over are copied. An edit that cannot be is an
 * error that says why, for the strategy to return; the program is then given up. Valid during
 * `transform` and `transform_forward`. [main thread] */
typedef struct orr_edit {
  uint32_t size;
  /* Calls visit(arg, value, info) for every value with one of the roles (bit mask of 1 << role), in
   * the natural order of their names. */
  orr_status* (*each)(orr_program*, uint32_t roles, void* arg,
                      orr_status* (*visit)(void* arg, int32_t value, const orr_value_info*));
  /* Ranks that no earlier strategy of the stack has taken. */
  int32_t (*ranks_left)(orr_program*);
  /* Creates a mesh axis over `size` ranks (0: all that are left), inside those made before. */
  orr_status* (*axis)(orr_program*, const char* name, int32_t size);
  /* Places a value on an axis: dim >= 0 shards that dim, -1 replicates. Batch fields along dim 0:
   * the leaves are dealt. Any other dim of any value, on any number of axes: each rank has an equal
   * part of the dim; the ops that read it follow by their rules, and what they read in another
   * layout is moved. Ranks of an axis that deals the batch, of which one may be so used, work on
   * the samples of all of them there. Gradients and states follow their parameters. */
  orr_status* (*place)(orr_program*, int32_t value, const char* axis, int32_t dim);
  /* Asks for gradients to be summed over `axis` and kept replicated, in buckets of about `bucket`
   * bytes, started as soon as their last member is complete. */
  orr_status* (*reduce)(orr_program*, int32_t value, const char* axis, int64_t bucket);
  /* Records a remark for `orrery plan`. */
  orr_status* (*diag)(orr_program*, const char* message);
  /* Runs a rank's leaves one after another instead of in one call: less memory, more calls. */
  orr_status* (*loop)(orr_program*);
  /* Deals the model to `n` chunks, chunk c to the ranks with coordinate where[c] on `axis`, and
   * runs the leaves one after another in the order that the strategy's `schedule` gives. modules[c]
   * names the chunk's modules: "tok,pos,blocks.1-6". modules NULL: about equal cost for each
   * chunk. */
  orr_status* (*stage)(orr_program*, const char* axis, int32_t n, const int32_t* where,
                       const char* const* modules);

  /* -- lives of activations ---- */
  /* Where a forward activation waits for backward: ORR_LIFE_HOST and _DISK copy it to that tier
   * after its last use in forward, and back before its first in backward. ORR_LIFE_KEEP and
   * _RECOMPUTE have left for copies of ops (`copy`, `replace`); `region` is not read. */
  orr_status* (*life)(orr_program*, int32_t value, const char* region, int32_t life);

  /* -- ops, and cutting them over ranks ---- */
  /* The values that the op which makes `value` reads: writes at most `capacity` of them, returns
   * how many there are. */
  int32_t (*inputs)(orr_program*, int32_t value, int32_t* out, int32_t capacity);
  /* The op's factor map: the factor that each dim of its input number `input` (-1: of its first
   * output) runs over, -1 where the op cannot work on parts of the dim. Factors that the output
   * does not have are summed. Writes at most `capacity` of them, returns the rank. */
  int32_t (*rule)(orr_program*, int32_t value, int32_t input, int32_t* factors, int32_t capacity);
  /* Lets activations that the ranks of `axis` hold summands of be completed in shares of `dim`,
   * kept so as long as ops can work on them, instead of whole on every rank. */
  orr_status* (*scatter)(orr_program*, const char* axis, int32_t dim);

  /* -- pieces of training state ---- */
  /* Ranks on an axis, 0 if there is none; "batch": on all so far that gradients are summed over. */
  int32_t (*axis_size)(orr_program*, const char* axis);
  /* Sees an axis as two: `inner_size` neighbours form `inner`, equal places in them `outer`. */
  orr_status* (*halve)(orr_program*, const char* axis, const char* outer, const char* inner,
                       int32_t inner_size);
  /* Cuts a parameter's training over the ranks that share the batch. Scalars stay whole. */
  orr_status* (*shard)(orr_program*, int32_t value, const orr_shard*);
  /* Refuses; it has left for `retype`. */
  orr_status* (*compute)(orr_program*, int32_t value, int32_t dtype);

  /* Lets the ranks of `axis`, which deals the batch, train apart (`independent`). After every
   * `every` steps parameters, with `states` also optimizer states, become their means. */
  orr_status* (*average)(orr_program*, const char* axis, int32_t every, int32_t states);
  /* Refuses; it has left for `cotangent` and `complete`. */
  orr_status* (*loss_scale)(orr_program*, double initial, int64_t growth_interval);
  /* Deals no leaves to the first `n` ranks of `axis`, which deals the batch: they take part in what
   * is exchanged, and compute what no sample is needed for. */
  orr_status* (*idle)(orr_program*, const char* axis, int32_t n);
  /* Not carried out any more: who serves brings a driver (`drive`). ORR_UNIMPLEMENTED. */
  orr_status* (*serve)(orr_program*, const orr_serve*);
  /* Computes every sum over a dim that is cut over `axis` as `chunks` sums over equal pieces of the
   * dim, added in the binary tree over their index (ops.h), with one rank on the axis as well: any
   * number of ranks has the same bits. `chunks` is a power of two times the ranks. */
  orr_status* (*chunk)(orr_program*, const char* axis, int32_t chunks);
  /* Keeps a parameter or state in memory of `tier`, ORR_TIER_HOST or _DISK, between uses: it is
   * copied to the device before it is read, and back after it was replaced, meanwhile other work
   * goes on. Files are made in `directory` ("": the run's, or the system's for temporary files; one
   * for all) and end with the process. */
  orr_status* (*offload)(orr_program*, int32_t value, int32_t tier, const char* directory);
  /* Refuses; it has left for `retype`. */
  orr_status* (*wire)(orr_program*, int32_t dtype);

  /* -- ops, states, and parts of the update of one's own ---- */
  /* Adds an op at the end of the program; writes its outputs, at most `capacity` of them, and sets
   * *n to their number. */
  orr_status* (*op)(orr_program*, const orr_op_desc*, int32_t* out, int32_t capacity, int32_t* n);
  /* The current value of a state, which is made if there is none of that name yet. */
  orr_status* (*state)(orr_program*, const orr_state_desc*, int32_t* out);
  /* What a parameter or state will hold after the program; a later call replaces an earlier one.
   * Its own current value: it stays as it is. */
  orr_status* (*update)(orr_program*, int32_t state, int32_t value);
  /* That value, or the current one if nothing updates it. */
  int32_t (*updated)(orr_program*, int32_t state);
  /* Gives the hook every gradient, summed over all axes that deal the batch but `axis`, in place of
   * its sum over this one. */
  orr_status* (*exchange)(orr_program*, const char* axis, const orr_gradient_hook*);
  /* Lets the coordinates of `axis`, which deals the batch, train apart, each on gradients, weights
   * and norms of its own part: parameters and states vary on it. */
  orr_status* (*independent)(orr_program*, const char* axis);
  /* Runs a program of the strategy's own after every `every` steps that were tried; `rounds` of
   * them take turns. */
  orr_status* (*every)(orr_program*, int32_t every, int32_t rounds, const orr_program_hook*);

  /* -- ops that are there ---- */
  /* What `each` tells of a value; set out->size. */
  orr_status* (*info)(orr_program*, int32_t value, orr_value_info* out);
  /* Calls visit once with the op that makes the value, as it would be added again. */
  orr_status* (*maker)(orr_program*, int32_t value, void* arg,
                       orr_status* (*visit)(void* arg, const orr_op_desc*));
  /* Says where ops that are added from now on belong: to the module, and the stage, of `value`'s op
   * and to `phase`; of ORR_PHASE_BACKWARD, to the derivative of that op. -1: to none, as before.
   * They stand at the end, but those that something before them comes to read (`replace`) right
   * before the first that does. */
  orr_status* (*beside)(orr_program*, int32_t value, int32_t phase);
  /* Adds a copy of the op that makes `value`, to run in `phase`: the same attributes, random
   * numbers and rounding on other inputs of the same types, its outputs as the original's. */
  orr_status* (*copy)(orr_program*, int32_t value, int32_t phase, const int32_t* in, int32_t n_in,
                      int32_t* out, int32_t capacity, int32_t* n);
  /* Lets what reads `value` read `by`, of the same type and relation to the batch: `uses` says
   * which uses (ORR_USES_*); what `by` itself is computed from stays. With all uses of a gradient
   * `by` is the gradient. */
  orr_status* (*replace)(orr_program*, int32_t value, int32_t by, uint32_t uses);
  /* Lets the op that makes `of` alone read `by` for `value`, of the same shape. In another dtype
   * where the op is re-typed as well. */
  orr_status* (*reread)(orr_program*, int32_t of, int32_t value, int32_t by);
  /* Types the op that makes `value` anew, from what its inputs are now: where it computed in the
   * value's dtype it computes in `compute` (0: as before), and what it sums or casts is stored in
   * `store` (0: as follows). All that read the value have to fit when the call of the strategy
   * ends: casts do. */
  orr_status* (*retype)(orr_program*, int32_t value, int32_t compute, int32_t store);

  /* -- the whole step ---- */
  /* 1 if the program is that of a training step, 0 of an evaluation. */
  int32_t (*trains)(orr_program*);
  /* Only in transform_forward: differentiates the loss times this value, a real number of f32, and
   * divides gradients by it. */
  orr_status* (*cotangent)(orr_program*, int32_t value);
  /* Makes a value a result of the step. One named "skipped_steps" counts the steps whose loss or
   * gradients were not finite and that have changed nothing: they are no errors then, until many
   * follow one another. */
  orr_status* (*output)(orr_program*, const char* name, int32_t value);
  /* Calls the hook once the update is written, of training steps. Only in `transform`. */
  orr_status* (*complete)(orr_program*, const orr_complete_hook*);

  /* -- steps that ranks take in their own time (driver.h) ---- */
  /* Lets a driver take over how the ranks of the job run what they compute. */
  orr_status* (*drive)(orr_program*, const struct orr_driver*);
  /* Only in a driver's `write`: a new program without a batch that `rank` runs whenever its driver
   * says, and no other; valid for that call. */
  orr_status* (*program)(orr_program*, const char* name, int32_t rank, orr_program** out);
  /* Adds the ops that the wanted values are made of, down to those that are given, to such a
   * program; writes what the wanted ones are there. Other states and runtime numbers are the same
   * in both; of a sum over the batch it takes the sum that it is given. */
  orr_status* (*copy_part)(orr_program*, const orr_part*, int32_t* out);
  /* The gradient of a parameter as the optimizer gets it, -1 if it gets none. Once the update is
   * there. */
  int32_t (*gradient)(orr_program*, int32_t parameter);
} orr_edit;

/* Parts of a step of one chunk: all of backward in one, or its part for earlier stages (backward)
 * and the rest (weight) apart. */
enum { ORR_CELL_FORWARD = 1, ORR_CELL_BACKWARD = 2, ORR_CELL_WEIGHT = 3 };

typedef struct orr_cell {
  int32_t kind, chunk, leaf; /* leaf: from 0, of this rank's */
} orr_cell;

/* The user's options for one use of the strategy; unset ones hold their fallback. */
typedef struct orr_options {
  const void* self;
  int64_t (*integer)(const void* self, const char* name, int64_t fallback);
  double (*real)(const void* self, const char* name, double fallback);
  const char* (*text)(const void* self, const char* name, const char* fallback);
} orr_options;

/* Closed-form traffic, asked on the final program for each exchange that this strategy's edits
 * caused. */
typedef struct orr_predict_query {
  uint32_t size;
  int32_t axis_size; /* ranks on the strategy's axis */
  int32_t rank;      /* coordinate of the asked rank on it */
  uint64_t
      reduced_elements; /* of the exchange: elements, of one tree node if it adds over the batch */
  uint64_t reduced_bytes; /* the same in bytes of their dtype */
  int64_t nodes;          /* tree nodes that this rank exports (ops.h, LEAVES) */
  int64_t total_nodes;    /* of all ranks */
  int32_t op;             /* ORR_COLL_* (comm.h) */
  int32_t element_bytes;
  const int64_t* counts; /* elements of each rank where they differ, else NULL */
} orr_predict_query;

typedef struct orr_prediction {
  uint32_t size;
  uint64_t bytes_sent; /* per step by the asked rank */
} orr_prediction;

typedef struct orr_strategy_api {
  uint32_t size;
  void* self;
  /* Who the strategy is. Pure; texts and options live as long as the table. [main thread] */
  orr_status* (*describe)(void* self, orr_strategy_info* out);
  /* Edits the differentiated program. All ranks call it with equal arguments. A number of ranks, or
   * a program, that it does not train it refuses by ORR_INVALID and a sentence; any other error is
   * a failure of its own. [main thread] */
  orr_status* (*transform)(void* self, orr_program*, const orr_edit*, const orr_options*);
  /* Optional: a formula of one's own for what exchanges send. Pure. Compared by the core with the
   * counted program. [main thread] */
  orr_status* (*predict)(void* self, const orr_predict_query*, orr_prediction* out);
  /* What the ranks with `coordinate`, of `ranks`, on the axis given to `stage` do with `leaves`
   * leaves, in order: every leaf of every chunk they hold once. Writes at most `capacity` cells,
   * sets *n to their number. Pure. [main thread] */
  orr_status* (*schedule)(void* self, const orr_options*, int32_t coordinate, int32_t ranks,
                          int32_t leaves, orr_cell* out, int32_t capacity, int32_t* n);
  /* Optional: edits the program before differentiation, when it has forward ops alone. [main
   * thread] */
  orr_status* (*transform_forward)(void* self, orr_program*, const orr_edit*, const orr_options*);
} orr_strategy_api;

#ifdef __cplusplus
}
#endif
#endif
