/* SPDX-License-Identifier: Apache-2.0
 *
 * strategy/1: rewrites of a training step. A strategy does not handle tensors, streams or sockets:
 * it reads a program and edits it through the host's table. So the core can run, simulate and count
 * the result, and strategies compose as a stack.
 */
#ifndef ORRERY_STRATEGY_H
#define ORRERY_STRATEGY_H

#include <orrery/kernel.h>
#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a strategy's numbers relate to those of a run of one process. EXACT: the same bits. STALE:
 * gradients of older weights are used. APPROX: they are approximated in another way. */
enum { ORR_CLASS_EXACT = 1, ORR_CLASS_STALE = 2, ORR_CLASS_APPROX = 3 };

enum {
  ORR_ROLE_ACTIVATION = 0,
  ORR_ROLE_PARAM = 1,
  ORR_ROLE_GRAD = 2,
  ORR_ROLE_STATE = 3,
  ORR_ROLE_INPUT = 4,
  ORR_ROLE_LOSS = 5,
  ORR_ROLE_SCALAR = 6,
  ORR_ROLE_BATCH = 7,
  ORR_ROLE_WHOLE_BATCH = 8 /* a batch field with the rows of the whole batch, on every rank */
};

enum { ORR_PHASE_FORWARD = 0, ORR_PHASE_BACKWARD = 1, ORR_PHASE_UPDATE = 2 };

/* How a value relates to the batch: it is the same for all samples (NONE), there is one for each
 * sample (SAMPLES), it is a sum over the batch (SUM), or it is computed from such sums (MEAN). */
enum { ORR_BATCH_NONE = 0, ORR_BATCH_SAMPLES = 1, ORR_BATCH_SUM = 2, ORR_BATCH_MEAN = 3 };

enum { ORR_LIFE_KEEP = 0, ORR_LIFE_RECOMPUTE = 1, ORR_LIFE_HOST = 2, ORR_LIFE_DISK = 3 };

/* One option of a strategy, which the user may give in its table. */
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
  /* For each option the texts that it may have, with commas between ("flat,tensor"), NULL for one
   * that may have any; the host refuses others. NULL: every option may have any. */
  const char* const* choices;
} orr_strategy_info;

/* The handle of a program that is being edited; valid for the call. Values are numbered from 0. */
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
  int64_t op;         /* the op's number, the same for all its outputs, for the call; -1: given */
  int32_t output;     /* which output of the op, from 0 */
  int32_t runs;       /* the phase in which the op runs: forward also for derivatives that a loss
                         reads, whose `phase` is backward */
  int32_t batch;      /* ORR_BATCH_* */
  int32_t batch_dim;  /* ORR_BATCH_SAMPLES: the dim, from 0, that runs over samples; else -1 */
  const char* beside; /* states: the parameter that it is updated with, "" if none is known */
  int32_t chunk;      /* of the op: the chunk of the model that it belongs to (`stage`), from 0; -1:
                         given */
} orr_value_info;

/* What of a parameter's training is sharded; each includes the ones before. */
enum {
  ORR_SHARD_STATE = 1,    /* optimizer state and update: each owner gets its piece of the summed
                             gradient, and new values are gathered */
  ORR_SHARD_GRADIENT = 2, /* memory of summed gradients, too: it is freed as soon as the owners have
                             their pieces */
  ORR_SHARD_PARAM = 3     /* the parameter, too: it is gathered where the op `unshard` says
                             (docs/ops.md), or else before its first reader in forward and again in
                             backward */
};

typedef struct orr_shard {
  uint32_t size;
  int32_t what;
  const char* axis; /* "batch"; or an axis that deals the batch, or its inner half */
  int32_t unit;     /* parameters of equal unit are gathered and reduced together */
  int32_t owner;    /* the coordinate that holds it whole; -1: it is cut evenly, at multiples of
                       ORR_SUM_BLOCK elements (ops.h), which needs an elementwise update */
  int32_t keep;     /* not followed any more: write `unshard` (docs/ops.md) and give 0 */
  int64_t ahead;    /* likewise: give 0 or 1 */
  int32_t each;     /* 1: for each microbatch, where these run one after another: parameters are
                       gathered for it (ORR_SHARD_PARAM) and freed after their last reader, and
                       gradients leave as pieces (ORR_SHARD_GRADIENT), if sums over the batch may
                       be added in any order. 0: once a step; so if `size` ends before it */
  int32_t reserved; /* 0 */
  int32_t rows;     /* 1: cuts lie between rows, which are the elements of one index of the first
                       dim, besides at multiples of ORR_SUM_BLOCK elements: a rank has whole rows.
                       0: they may lie inside of rows; so if `size` ends before it */
} orr_shard;

/* The argument of orr_edit.serve. */
typedef struct orr_serve {
  uint32_t size;
  const char* axis;   /* the job's only axis, which deals the batch */
  int32_t servers;    /* how many first ranks of it serve the parameters that `shard` gave them */
  int32_t push, pull; /* steps between two pushes of gradients, between two pulls of weights */
  int32_t bound;   /* -1: gradients are applied as they come. Else those of one step together, and a
                         worker is at most this many steps ahead of the weights that it reads */
  const char* log; /* file that arrivals are written to, "" none */
  const char* replay; /* file whose arrivals are followed, "" none */
} orr_serve;

/* An op to be added, with kinds, inputs and attributes as in orrery/ops.h and docs/ops.md. `expr`
 * is for pointwise, else NULL. Texts and lists are copied. */
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

/* A tensor that a strategy keeps between steps, as an optimizer does: it is saved in checkpoints
 * and shown in plans. */
typedef struct orr_state_desc {
  uint32_t size;
  const char* name;    /* "anchor"; the full name begins with the strategy's and `like`'s */
  int32_t like;        /* the parameter or state that it belongs to and whose dtype it has; -1: it
                          belongs to none, and has `dtype`, `rank` and `dims` */
  int32_t init;        /* ORR_INIT_ZEROS; _LIKE: the initial value of `like`; _NORMAL: N(0, 1);
                          _CONSTANT: `value` */
  const char* varying; /* the axis on which every coordinate has its own value, "" none */
  int32_t leave;       /* ORR_LEAVE_*: how the coordinates' values become one if a checkpoint is
                          loaded on another number of ranks */
  int32_t rank;        /* how many dims it has; -1: the shape of `like` */
  const int64_t* dims; /* `rank` of them */
  double value;        /* ORR_INIT_CONSTANT */
  int32_t dtype;       /* if there is no `like` */
  int32_t passing;     /* 1: it is not saved in checkpoints: it has no value between sessions of a
                          driver (driver.h) */
} orr_state_desc;

/* A part of a program, to be copied into another (driver.h). */
typedef struct orr_part {
  uint32_t size;
  int32_t n_given, n_wanted;
  orr_program* from;
  const int32_t* given;  /* values of `from` */
  const int32_t* as;     /* the values of the other program that stand for them there */
  const int32_t* wanted; /* values of `from` */
} orr_part;

/* Selects uses of a value: bit 1 << ORR_PHASE_* for those by ops that run in that phase (`runs`),
 * ORR_USES_RESULTS for results of the step and new values of states. */
enum { ORR_USES_RESULTS = 8, ORR_USES_ALL = 15 };

struct orr_edit;
struct orr_driver;

/* A hook is called later, on the same thread, with a program that it may add ops to. When the host
 * does not need the hook any more, it calls `release`, which may be NULL. */
typedef struct orr_gradient_hook {
  uint32_t size;
  void* arg;
  void (*release)(void* arg);
  /* Called once for each parameter, also if there is only one rank. `gradient` is this coordinate's
   * summand of the mean gradient. *out is a value of the same shape and dtype that is equal on all
   * coordinates of `axis`. */
  orr_status* (*exchange)(void* arg, orr_program*, const struct orr_edit*, int32_t parameter,
                          int32_t gradient, int32_t* out);
} orr_gradient_hook;

typedef struct orr_program_hook {
  uint32_t size;
  void* arg;
  void (*release)(void* arg);
  /* Writes the program of round `round`, from 0. The program is empty but has all parameters and
   * states of the step, which `each` finds. */
  orr_status* (*write)(void* arg, orr_program*, const struct orr_edit*, int32_t round);
} orr_program_hook;

/* When a hook is called. DECIDES: it decides whether the whole step counts; it is called after
 * those with STEP, and gets `norm`. LAST: all other edits are done; it is called for evaluations,
 * too, and gets neither `loss` nor `norm`. */
enum { ORR_COMPLETE_STEP = 0, ORR_COMPLETE_DECIDES = 1, ORR_COMPLETE_LAST = 2 };

typedef struct orr_complete_hook {
  uint32_t size;
  int32_t decides; /* ORR_COMPLETE_* */
  void* arg;
  void (*release)(void* arg);
  /* If it decides: the name of the number that all ranks must share, such as "loss scale", for the
   * error where ranks train apart; else NULL. */
  const char* what;
  /* Called when the update is written. The program has all parameters and states of the step.
   * `loss` is its loss, `norm` the squared norm of all gradients as clipping measures it, f32 (-1:
   * there are none). */
  orr_status* (*complete)(void* arg, orr_program*, const struct orr_edit*, int32_t loss,
                          int32_t norm);
} orr_complete_hook;

/* The host's editing calls. The table may grow. Texts and structs that a strategy passes are
 * copied. An edit that is not possible returns an error that says why, and the strategy must return
 * it; the program is then discarded. Valid during `transform` and `transform_forward`. [main
 * thread] */
typedef struct orr_edit {
  uint32_t size;
  /* Calls visit(arg, value, info) for every value with one of the roles (bit mask of 1 << role), in
   * the natural order of their names. */
  orr_status* (*each)(orr_program*, uint32_t roles, void* arg,
                      orr_status* (*visit)(void* arg, int32_t value, const orr_value_info*));
  /* How many ranks are left in each group that the axes made so far form: a new axis can have so
   * many. */
  int32_t (*ranks_left)(orr_program*);
  /* Makes a mesh axis over `size` ranks (0: all that are left), inside those made before. */
  orr_status* (*axis)(orr_program*, const char* name, int32_t size);
  /* Places a value on an axis: dim >= 0 cuts that dim, -1 keeps the value whole. Placing a batch
   * field along dim 0 deals the batch's leaves over the axis. Any other dim, of any value, may be
   * cut over any number of axes: each rank then has an equal part of the dim. Ops that read the
   * value work on parts as their rules allow, and values that they need in another layout are
   * moved. The axis may also be one that deals the batch (at most one): its ranks then work on the
   * samples of all of them. Gradients and states follow their parameters. */
  orr_status* (*place)(orr_program*, int32_t value, const char* axis, int32_t dim);
  /* Sums a gradient over `axis`, so that all its ranks have the sum. Gradients travel in buckets of
   * about `bucket` bytes; a bucket is sent as soon as its last member is complete. */
  orr_status* (*reduce)(orr_program*, int32_t value, const char* axis, int64_t bucket);
  /* Records a remark for `orrery plan`. */
  orr_status* (*diag)(orr_program*, const char* message);
  /* Runs a rank's leaves one after another instead of in one call: it takes less memory and more
   * calls. */
  orr_status* (*loop)(orr_program*);
  /* Divides the model into `n` chunks. The ranks with coordinate where[c] on `axis` hold chunk c.
   * Leaves run one after another, in the order that the strategy's `schedule` gives. modules[c]
   * names the chunk's modules: "tok,pos,blocks.1-6". If `modules` is NULL, chunks have about equal
   * cost. */
  orr_status* (*stage)(orr_program*, const char* axis, int32_t n, const int32_t* where,
                       const char* const* modules);

  /* -- activations ---- */
  /* Says where an activation of forward waits for backward: ORR_LIFE_HOST and _DISK copy it to that
   * tier after its last use in forward, and back before its first use in backward. ORR_LIFE_KEEP
   * and _RECOMPUTE are refused: `copy` and `replace` do that. `region` is ignored. */
  orr_status* (*life)(orr_program*, int32_t value, const char* region, int32_t life);

  /* -- ops, and cutting them over ranks ---- */
  /* Writes the inputs of the op that makes `value`, at most `capacity` of them; returns how many
   * there are. */
  int32_t (*inputs)(orr_program*, int32_t value, int32_t* out, int32_t capacity);
  /* Writes the op's factor map for its input number `input` (-1: its first output): the factor that
   * each dim belongs to, or -1 if the op cannot work on parts of the dim. Factors that the output
   * does not have are summed. Writes at most `capacity` of them; returns the number of dims. */
  int32_t (*rule)(orr_program*, int32_t value, int32_t input, int32_t* factors, int32_t capacity);
  /* Concerns activations of which the ranks of `axis` hold summands. They are not completed whole
   * on every rank: each rank completes its part of `dim`, as long as ops can work on parts. */
  orr_status* (*scatter)(orr_program*, const char* axis, int32_t dim);

  /* -- sharded training state ---- */
  /* The number of ranks on an axis; 0 if there is none. "batch": on the product of the axes so far
   * over which gradients are summed. */
  int32_t (*axis_size)(orr_program*, const char* axis);
  /* Makes names for two parts of an axis: groups of `inner_size` neighbours form `inner`, ranks
   * with the same place in their group form `outer`. */
  orr_status* (*halve)(orr_program*, const char* axis, const char* outer, const char* inner,
                       int32_t inner_size);
  /* Shards a parameter's training state over the ranks that share the batch. Scalars stay whole. */
  orr_status* (*shard)(orr_program*, int32_t value, const orr_shard*);
  /* Not supported any more: use `retype`. */
  orr_status* (*compute)(orr_program*, int32_t value, int32_t dtype);

  /* Lets the ranks of `axis`, which deals the batch, train apart (`independent`). After every
   * `every` steps, parameters become the means of the ranks' values; with `states` optimizer states
   * too. */
  orr_status* (*average)(orr_program*, const char* axis, int32_t every, int32_t states);
  /* Not supported any more: use `cotangent` and `complete`. */
  orr_status* (*loss_scale)(orr_program*, double initial, int64_t growth_interval);
  /* Deals no leaves to the first `n` ranks of `axis`, which deals the batch. They take part in
   * exchanges, and compute what needs no sample. */
  orr_status* (*idle)(orr_program*, const char* axis, int32_t n);
  /* Not supported any more (ORR_UNIMPLEMENTED): bring a driver (`drive`). */
  orr_status* (*serve)(orr_program*, const orr_serve*);
  /* Computes every sum over a dim that is cut over `axis` as `chunks` sums over equal pieces of the
   * dim, which are added in the binary tree over their index (ops.h). So the bits are the same for
   * any number of ranks, also for one. `chunks` is a power of two times the number of ranks. */
  orr_status* (*chunk)(orr_program*, const char* axis, int32_t chunks);
  /* Keeps a parameter or state in memory of `tier`, ORR_TIER_HOST or _DISK, between uses. It is
   * copied to the device before it is read, and back after it was replaced, while other work goes
   * on. Files are made in `directory`, the same for all ("": the run's directory, or the system's
   * for temporary files); they end with the process. */
  orr_status* (*offload)(orr_program*, int32_t value, int32_t tier, const char* directory);
  /* Not supported any more: use `retype`. */
  orr_status* (*wire)(orr_program*, int32_t dtype);

  /* -- the strategy's own ops, states and parts of the update ---- */
  /* Adds an op at the end of the program; writes its outputs, at most `capacity` of them, and sets
   * *n to their number. */
  orr_status* (*op)(orr_program*, const orr_op_desc*, int32_t* out, int32_t capacity, int32_t* n);
  /* The current value of a state, which is made if there is none of that name yet. */
  orr_status* (*state)(orr_program*, const orr_state_desc*, int32_t* out);
  /* Sets the value that a parameter or state will hold after the program; a later call replaces an
   * earlier one. With its current value it stays as it is. */
  orr_status* (*update)(orr_program*, int32_t state, int32_t value);
  /* The value that the parameter or state will hold: the current one if nothing updates it. */
  int32_t (*updated)(orr_program*, int32_t state);
  /* Calls the hook for every gradient in place of summing it over `axis`. The hook gets the
   * gradient summed over all other axes that deal the batch. */
  orr_status* (*exchange)(orr_program*, const char* axis, const orr_gradient_hook*);
  /* Lets the coordinates of `axis`, which deals the batch, train apart, each with gradients,
   * weights and norms of its own part of the batch: parameters and states vary on the axis. */
  orr_status* (*independent)(orr_program*, const char* axis);
  /* Runs a program of the strategy after every `every` steps, skipped ones included. `rounds`
   * programs take turns. */
  orr_status* (*every)(orr_program*, int32_t every, int32_t rounds, const orr_program_hook*);

  /* -- reading and changing ops ---- */
  /* The facts of a value that `each` gives; set out->size. */
  orr_status* (*info)(orr_program*, int32_t value, orr_value_info* out);
  /* Calls visit once with the op that makes the value, in the form in which `op` would add it. */
  orr_status* (*maker)(orr_program*, int32_t value, void* arg,
                       orr_status* (*visit)(void* arg, const orr_op_desc*));
  /* Says where ops that are added from now on belong: to the module and stage of the op that makes
   * `value`, and to `phase`; with ORR_PHASE_BACKWARD to the derivative of that op. -1: to none, as
   * at first. New ops are at the end of the program; but if an earlier op is made to read one
   * (`replace`), this is moved right before the first such op. */
  orr_status* (*beside)(orr_program*, int32_t value, int32_t phase);
  /* Adds a copy of the op that makes `value`, to run in `phase`: with the same attributes, random
   * numbers and rounding, on other inputs of the same types. Its outputs are like the original's.
   * */
  orr_status* (*copy)(orr_program*, int32_t value, int32_t phase, const int32_t* in, int32_t n_in,
                      int32_t* out, int32_t capacity, int32_t* n);
  /* Makes readers of `value` read `by`, which has the same type and relation to the batch. `uses`
   * selects the readers (ORR_USES_*); ops from which `by` is computed are not changed. If all uses
   * of a gradient are replaced, `by` becomes the gradient. */
  orr_status* (*replace)(orr_program*, int32_t value, int32_t by, uint32_t uses);
  /* Makes only the op that makes `of` read `by`, of the same shape, instead of `value`. `by` may
   * have another dtype if the op is retyped as well. */
  orr_status* (*reread)(orr_program*, int32_t of, int32_t value, int32_t by);
  /* Changes the dtypes of the op that makes `value`, by those that its inputs have now. Where it
   * computed in the value's dtype it computes in `compute` (0: as before); its sums or casts are
   * stored in `store` (0: as follows from that). When the strategy's function returns, all readers
   * of the value must fit; casts do. */
  orr_status* (*retype)(orr_program*, int32_t value, int32_t compute, int32_t store);

  /* -- the whole step ---- */
  /* 1 if the program is that of a training step, 0 if of an evaluation. */
  int32_t (*trains)(orr_program*);
  /* Only in transform_forward: differentiates the loss times this value, a scalar of f32, and
   * divides gradients by it. */
  orr_status* (*cotangent)(orr_program*, int32_t value);
  /* Makes a value a result of the step. A result named "skipped_steps" counts the steps that
   * changed nothing because their loss or gradients were not finite. Such steps are then no errors,
   * unless many follow one another. */
  orr_status* (*output)(orr_program*, const char* name, int32_t value);
  /* Calls the hook once the update of a training step is written. Only in `transform`. */
  orr_status* (*complete)(orr_program*, const orr_complete_hook*);

  /* -- steps that ranks take in their own time (driver.h) ---- */
  /* Lets a driver decide when the ranks of the job run which program. */
  orr_status* (*drive)(orr_program*, const struct orr_driver*);
  /* Only in a driver's `write`: makes a program without a batch, which only `rank` runs, whenever
   * its driver says so. The handle is valid for that call. */
  orr_status* (*program)(orr_program*, const char* name, int32_t rank, orr_program** out);
  /* Adds to such a program the ops from which the wanted values are computed, down to those that
   * are given; writes the values that stand for the wanted ones. Other states and runtime numbers
   * are the same in both programs. Every sum over the batch that is needed must be given. */
  orr_status* (*copy_part)(orr_program*, const orr_part*, int32_t* out);
  /* The gradient of a parameter as the optimizer gets it; -1 if it gets none. Valid once the update
   * is written. */
  int32_t (*gradient)(orr_program*, int32_t parameter);

  /* Deals the leaves of the batch to the `n` ranks of `axis`, which deals it, in proportion to the
   * `shares`, each at least 1. Without it, all get as many. */
  orr_status* (*deal)(orr_program*, const char* axis, const int32_t* shares, int32_t n);

  /* Ops that are added from now on stand right before the op that makes `value`, in the order in
   * which they are added; -1: as `beside` says. */
  orr_status* (*before)(orr_program*, int32_t value);
} orr_edit;

/* Parts of a step of one chunk. A schedule has all of backward as one cell (BACKWARD), or splits
 * it: the part that earlier stages wait for (BACKWARD), and the rest (WEIGHT). */
enum { ORR_CELL_FORWARD = 1, ORR_CELL_BACKWARD = 2, ORR_CELL_WEIGHT = 3 };

typedef struct orr_cell {
  int32_t kind, chunk, leaf; /* leaf: from 0, among those of this rank */
} orr_cell;

/* The user's options for one use of the strategy; options that are not set have their fallback. */
typedef struct orr_options {
  const void* self;
  int64_t (*integer)(const void* self, const char* name, int64_t fallback);
  double (*real)(const void* self, const char* name, double fallback);
  const char* (*text)(const void* self, const char* name, const char* fallback);
} orr_options;

/* The facts of an exchange for a strategy's formula of its traffic. The core asks for each exchange
 * of the final program that the strategy's edits have caused. */
typedef struct orr_predict_query {
  uint32_t size;
  int32_t axis_size;         /* ranks on the strategy's axis */
  int32_t rank;              /* the coordinate on it of the rank that is asked about */
  uint64_t reduced_elements; /* of the exchange; of one tree node if it adds over the batch */
  uint64_t reduced_bytes;    /* the same in bytes */
  int64_t nodes;             /* tree nodes that this rank exports (ops.h, LEAVES) */
  int64_t total_nodes;       /* of all ranks */
  int32_t op;                /* ORR_COLL_* (comm.h) */
  int32_t element_bytes;
  const int64_t* counts; /* elements of each rank if they differ, else NULL */
} orr_predict_query;

typedef struct orr_prediction {
  uint32_t size;
  uint64_t bytes_sent; /* by that rank, per step */
} orr_prediction;

typedef struct orr_strategy_api {
  uint32_t size;
  void* self;
  /* Describes the strategy. Pure; texts and options live as long as the table. [main thread] */
  orr_status* (*describe)(void* self, orr_strategy_info* out);
  /* Edits the differentiated program. All ranks call it with equal arguments. If the strategy
   * cannot train this program, or on this number of ranks, it returns ORR_INVALID and a sentence;
   * any other error means that the strategy itself has failed. [main thread] */
  orr_status* (*transform)(void* self, orr_program*, const orr_edit*, const orr_options*);
  /* Optional: the strategy's formula for the bytes of an exchange. Pure. The core compares it with
   * the bytes that it counts. [main thread] */
  orr_status* (*predict)(void* self, const orr_predict_query*, orr_prediction* out);
  /* Writes the order in which the ranks with `coordinate`, of `ranks`, on the axis given to `stage`
   * run `leaves` leaves: each leaf of each chunk that they hold once. Writes at most `capacity`
   * cells and sets *n to their number. Pure. [main thread] */
  orr_status* (*schedule)(void* self, const orr_options*, int32_t coordinate, int32_t ranks,
                          int32_t leaves, orr_cell* out, int32_t capacity, int32_t* n);
  /* Optional: edits the program before differentiation, when it has only forward ops. [main
   * thread] */
  orr_status* (*transform_forward)(void* self, orr_program*, const orr_edit*, const orr_options*);
} orr_strategy_api;

#ifdef __cplusplus
}
#endif
#endif
