/* @name@: the ranks of one machine write each other letters. A letter is a file in a directory that all
 * of them see; a collective is a letter to everybody, and what each makes of those that it gets. See
 * orrery/comm.h for the calls. Put your wire where put_letter and take_letter are. */
#define _GNU_SOURCE
#include <orrery/comm.h>
#include <orrery/host.h>
#include <orrery/ops.h>
#include <orrery/plugin.h>

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const orr_host* host;

enum { NAME = 512, HEAD = 512 };

typedef struct member {
  int world;            /* its rank in the job */
  uint64_t sent, taken; /* letters to and from it */
} member;

struct orr_comm {
  orr_comm_boot boot;
  char place[NAME]; /* of its letters: "/dev/shm/letters-@name@-JOB/0." */
  int rank, size, splits, is_world;
  member* members;
  _Atomic uint64_t bytes_sent;
  pthread_mutex_t mutex; /* of the failure, which any thread may ask for */
  int32_t code;
  char failure[2 * HEAD + 64];
};

/* What came from a rank: the bytes behind the head. */
typedef struct part {
  char *letter, *bytes;
  int64_t size;
} part;

/* ---- operations ---- */

static const char* op_name(int32_t op) {
  static const char* const names[] = {"nothing", "barrier", "broadcast", "all_reduce", "reduce_scatter", "all_gather",
                                      "all_to_all", "send", "recv", "reduce", "tree_all_reduce", "tree_reduce_scatter"};
  return op > 0 && op <= ORR_COLL_TREE_REDUCE_SCATTER ? names[op] : "an unknown operation";
}

static int is_tree(int32_t op) { return op == ORR_COLL_TREE_ALL_REDUCE || op == ORR_COLL_TREE_REDUCE_SCATTER; }

static int adds(int32_t op) {
  return op == ORR_COLL_ALL_REDUCE || op == ORR_COLL_REDUCE || op == ORR_COLL_REDUCE_SCATTER || is_tree(op);
}

static int is_added(int32_t dtype) {
  return dtype == ORR_F32 || dtype == ORR_F64 || dtype == ORR_I32 || dtype == ORR_I64;
}

static int64_t sum(const int64_t* counts, int n) {
  int64_t total = 0;
  for (int r = 0; r < n; ++r) total += counts[r];
  return total;
}

static int64_t nodes(const orr_coll* c, const orr_comm* comm) {
  return is_tree(c->op) ? orr_tree_nodes(c->leaf_first[comm->rank], c->leaf_first[comm->rank + 1], c->leaf_first[comm->size]) : 1;
}

static const char* text(const char* words) { return words ? words : ""; }

/* All that ranks have to agree on, in words; what stands behind the bar is not for people. */
static void agreement(const orr_coll* c, int ranks, char* out) {
  uint64_t mark = 14695981039346656037u;
  for (int r = 0; r < ranks && c->counts && c->op != ORR_COLL_ALL_TO_ALL; ++r) mark = (mark ^ (uint64_t)c->counts[r]) * 1099511628211u;
  for (int r = 0; r <= ranks && c->leaf_first; ++r) mark = (mark ^ (uint64_t)c->leaf_first[r]) * 1099511628211u;
  snprintf(out, HEAD, "%s '%s' (%s) of %lld, dtype %d | %d %d %llx", op_name(c->op), text(c->name), text(c->where),
           (long long)c->count, c->dtype, c->redop, c->root_or_peer, (unsigned long long)mark);
}

/* The head of a message: what its two ends have to agree on. */
static void message(const orr_coll* c, char* out) {
  snprintf(out, HEAD, "message of %lld, dtype %d, tag %d", (long long)c->count, c->dtype, c->tag);
}

/* A part of `send`, in elements: [at, at + n), and again `step` further on, `times` in all. */
typedef struct piece {
  int64_t at, n, times, step;
} piece;

/* What rank p gets of this rank's data. */
static piece piece_for(const orr_coll* c, const orr_comm* comm, int p) {
  piece all = {0, c->count, nodes(c, comm), c->count}, none = {0, 0, 0, 0};
  switch (c->op) {
    case ORR_COLL_ALL_REDUCE:
    case ORR_COLL_TREE_ALL_REDUCE: return all;
    case ORR_COLL_REDUCE: return p == c->root_or_peer ? all : none;
    case ORR_COLL_BROADCAST: return comm->rank == c->root_or_peer ? all : none;
    case ORR_COLL_ALL_GATHER: all.n = c->counts[comm->rank]; return all;
    case ORR_COLL_REDUCE_SCATTER:
    case ORR_COLL_ALL_TO_ALL: all.at = sum(c->counts, p), all.n = c->counts[p]; return all;
    case ORR_COLL_TREE_REDUCE_SCATTER: all.at = c->recv_counts[p], all.n = c->counts[p]; return all;
    default: return none;
  }
}

/* Bytes that this rank sends, by the definition of orrery/sdk/traffic.hpp. */
static int64_t share_begin(int64_t n, int64_t r, int64_t ranks) {
  const int64_t at = (n / ranks * r + (n % ranks * r + ranks - 1) / ranks + 15) / 16 * 16;
  return at < n ? at : n;
}

static uint64_t traffic(const orr_coll* c, const orr_comm* comm) {
  const int r = comm->rank, p = comm->size;
  const int64_t n = c->count, share = share_begin(n, r + 1, p) - share_begin(n, r, p);
  int64_t elements = 0;
  switch (c->op) {
    case ORR_COLL_TREE_ALL_REDUCE:
    case ORR_COLL_ALL_REDUCE: elements = nodes(c, comm) * (n - share) + share * (p - 1); break;
    case ORR_COLL_TREE_REDUCE_SCATTER: elements = nodes(c, comm) * (sum(c->counts, p) - c->counts[r]); break;
    case ORR_COLL_REDUCE: elements = n - share + (r == c->root_or_peer ? 0 : share); break;
    case ORR_COLL_REDUCE_SCATTER:
    case ORR_COLL_ALL_TO_ALL: elements = sum(c->counts, p) - c->counts[r]; break;
    case ORR_COLL_ALL_GATHER: elements = c->counts[r] * (p - 1); break;
    case ORR_COLL_BROADCAST: elements = r == c->root_or_peer ? n * (p - 1) : 0; break;
    case ORR_COLL_SEND: elements = r == c->root_or_peer ? 0 : n; break;
    default: break;
  }
  return (uint64_t)(elements * orr_dtype_bytes(c->dtype));
}

static orr_status* refuse(int32_t code, const orr_coll* c, const char* why) {
  char words[HEAD];
  snprintf(words, sizeof words, "%s '%s' (%s): %s", op_name(c->op), text(c->name), text(c->where), why);
  return host->error(code, words);
}

static int has_room(const orr_buffer* b, int64_t elements, int32_t dtype) {
  return elements <= 0 || (b->memory && b->bytes >= (uint64_t)(elements * orr_dtype_bytes(dtype)));
}

static orr_status* check_descriptor(const orr_coll* c, const orr_comm* comm) {
  const int rooted = c->op == ORR_COLL_BROADCAST || c->op == ORR_COLL_REDUCE, pair = c->op == ORR_COLL_SEND || c->op == ORR_COLL_RECV;
  if (c->op < ORR_COLL_BARRIER || c->op > ORR_COLL_TREE_REDUCE_SCATTER) return refuse(ORR_UNIMPLEMENTED, c, "not known here");
  if (adds(c->op) && !is_added(c->dtype)) return refuse(ORR_UNIMPLEMENTED, c, "this dtype is not added here");
  if ((rooted || pair) && (c->root_or_peer < 0 || c->root_or_peer >= comm->size)) return refuse(ORR_INVALID, c, "there is no such rank");
  if (c->op == ORR_COLL_RECV || c->op == ORR_COLL_ALL_REDUCE || (c->op == ORR_COLL_REDUCE && comm->rank == c->root_or_peer))
    if (!has_room(&c->recv, c->count, c->dtype)) return refuse(ORR_INVALID, c, "recv has no room for its elements");
  if (c->op == ORR_COLL_SEND && !has_room(&c->send, c->count, c->dtype)) return refuse(ORR_INVALID, c, "send has fewer elements");
  for (int p = 0; p < comm->size && !pair; ++p) {
    const piece one = piece_for(c, comm, p);
    if (one.n > 0 && one.times > 0 && !has_room(&c->send, one.at + one.n + (one.times - 1) * one.step, c->dtype))
      return refuse(ORR_INVALID, c, "send has fewer elements");
  }
  return NULL;
}

/* ---- elements ---- */

#define DEFINE_FOLD(T, U)                                                      \
  static void fold_##T(int32_t redop, const char* from, char* into, int64_t n) { \
    for (int64_t i = 0; i < n; ++i, from += sizeof(T), into += sizeof(T)) {    \
      T a, b, c;                                                               \
      memcpy(&a, into, sizeof a);                                              \
      memcpy(&b, from, sizeof b);                                              \
      if (redop == ORR_RED_SUM) c = (T)((U)a + (U)b); /* U: integers wrap */   \
      else if (redop == ORR_RED_PROD) c = (T)((U)a * (U)b);                    \
      else if (redop == ORR_RED_MIN) c = b < a ? b : a;                        \
      else c = b > a ? b : a;                                                  \
      memcpy(into, &c, sizeof c);                                              \
    }                                                                          \
  }
DEFINE_FOLD(float, float)
DEFINE_FOLD(double, double)
DEFINE_FOLD(int32_t, uint32_t)
DEFINE_FOLD(int64_t, uint64_t)

/* into = into (redop) from, n elements. */
static void fold(int32_t dtype, int32_t redop, const char* from, char* into, int64_t n) {
  switch (dtype) {
    case ORR_F32: fold_float(redop, from, into, n); break;
    case ORR_F64: fold_double(redop, from, into, n); break;
    case ORR_I32: fold_int32_t(redop, from, into, n); break;
    default: fold_int64_t(redop, from, into, n);
  }
}

/* Copies the piece of `send` to `out`; returns its bytes. */
static int64_t cut(const orr_coll* c, piece p, char* out) {
  const int64_t bytes = p.n * orr_dtype_bytes(c->dtype);
  for (int64_t i = 0; bytes > 0 && i < p.times; ++i)
    memcpy(out + i * bytes, (char*)orr_buffer_host(&c->send) + (p.at + i * p.step) * orr_dtype_bytes(c->dtype), (size_t)bytes);
  return bytes > 0 ? bytes * p.times : 0;
}

/* The node over the leaves [lo, lo + width), n elements to `out`: some rank's own, or the sum of its
 * halves. `spare` has room for one node per level. */
static void tree_node(const orr_coll* c, const part* parts, int ranks, int64_t n, int64_t lo, int64_t width, char* out, char* spare) {
  const int64_t bytes = n * orr_dtype_bytes(c->dtype), total = c->leaf_first[ranks];
  const int64_t leaves = lo + width < total ? width : total - lo;
  for (int r = 0; r < ranks; ++r) {
    int64_t at = c->leaf_first[r], first = at, k = 0, found;
    for (; (found = orr_tree_node(&at, c->leaf_first[r + 1], total)); first = at, ++k)
      if (first == lo && found == leaves) {
        memcpy(out, parts[r].bytes + k * bytes, (size_t)bytes);
        return;
      }
  }
  tree_node(c, parts, ranks, n, lo, width / 2, out, spare);
  if (lo + width / 2 >= total) return;
  tree_node(c, parts, ranks, n, lo + width / 2, width / 2, spare, spare + bytes);
  fold(c->dtype, ORR_RED_SUM, spare, out, n);
}

static orr_status* assemble_tree(const orr_coll* c, const orr_comm* comm, const part* parts) {
  const int64_t n = c->op == ORR_COLL_TREE_ALL_REDUCE ? c->count : c->counts[comm->rank], bytes = n * orr_dtype_bytes(c->dtype);
  int64_t width = 1, levels = 1;
  char* room;
  if (n <= 0) return NULL;
  for (; width < c->leaf_first[comm->size]; width *= 2) ++levels;
  room = malloc((size_t)(bytes * levels));
  if (!room) return refuse(ORR_FAILED, c, "no memory");
  tree_node(c, parts, comm->size, n, 0, width, orr_buffer_host(&c->recv), room);
  free(room);
  return NULL;
}

/* What this rank makes of the parts that it got, one of each rank. */
static orr_status* assemble(const orr_coll* c, const orr_comm* comm, const part* parts) {
  const int64_t unit = orr_dtype_bytes(c->dtype);
  char* recv = c->recv.memory ? orr_buffer_host(&c->recv) : NULL;
  const int64_t* counts = c->op == ORR_COLL_ALL_TO_ALL ? c->recv_counts : c->counts;
  if (is_tree(c->op)) return assemble_tree(c, comm, parts);
  if (c->op == ORR_COLL_BROADCAST && c->count > 0) memcpy(recv, parts[c->root_or_peer].bytes, (size_t)(c->count * unit));
  for (int r = 0; r < comm->size && (c->op == ORR_COLL_ALL_GATHER || c->op == ORR_COLL_ALL_TO_ALL); ++r)
    if (parts[r].size > 0) memcpy(recv + sum(counts, r) * unit, parts[r].bytes, (size_t)parts[r].size);
  if (!adds(c->op) || parts[0].size == 0) return NULL;
  if (c->op == ORR_COLL_REDUCE && comm->rank != c->root_or_peer) return NULL;
  memcpy(recv, parts[0].bytes, (size_t)parts[0].size);
  for (int r = 1; r < comm->size; ++r) fold(c->dtype, c->redop, parts[r].bytes, recv, parts[0].size / unit);
  return NULL;
}

/* ---- letters ---- */

/* Makes the file appear whole or not at all: a head of one line, then the bytes. */
static orr_status* write_file(const char* name, const char* head, const char* bytes, int64_t size) {
  char unfinished[NAME + 32];
  FILE* file;
  int good;
  snprintf(unfinished, sizeof unfinished, "%s.%d.part", name, getpid());
  file = fopen(unfinished, "we");
  good = file && fprintf(file, "%s\n", head) > 0 && (size == 0 || fwrite(bytes, 1, (size_t)size, file) == (size_t)size);
  if (file && fclose(file) != 0) good = 0;
  if (good && rename(unfinished, name) == 0) return NULL;
  return host->error(ORR_FAILED, "cannot write a letter to /dev/shm; is there room?");
}

/* The whole file, with a 0 behind it, or NULL. The caller frees it. */
static char* read_file(const char* name, int64_t* size) {
  struct stat facts;
  char* text = NULL;
  const int fd = open(name, O_RDONLY | O_CLOEXEC);
  ssize_t n;
  if (fd < 0) return NULL;
  *size = 0;
  if (fstat(fd, &facts) == 0) text = malloc((size_t)facts.st_size + 1);
  while (text && (n = read(fd, text + *size, (size_t)(facts.st_size - *size))) > 0) *size += n;
  close(fd);
  if (text) text[*size] = 0;
  return text;
}

static void name_in(const orr_comm* comm, const char* word, char* out) { snprintf(out, 2 * NAME, "%s%s", comm->place, word); }

static orr_status* poison(orr_comm* comm, int32_t code, const char* words) {
  orr_status* status;
  pthread_mutex_lock(&comm->mutex);
  if (comm->code == ORR_OK) {
    comm->code = code;
    snprintf(comm->failure, sizeof comm->failure, "%s", words);
  }
  status = host->error(comm->code, comm->failure);
  pthread_mutex_unlock(&comm->mutex);
  return status;
}

/* NULL while healthy. Any rank's abort is a file. */
static orr_status* async_error(orr_comm* comm) {
  char name[2 * NAME];
  int64_t size;
  orr_status* status = NULL;
  pthread_mutex_lock(&comm->mutex);
  if (comm->code == ORR_OK) {
    char* reason;
    name_in(comm, "abort", name);
    if ((reason = read_file(name, &size))) {
      comm->code = ORR_RETRY;
      snprintf(comm->failure, sizeof comm->failure, "%.*s", (int)strcspn(reason, "\n"), reason);
      free(reason);
    }
  }
  if (comm->code != ORR_OK) status = host->error(comm->code, comm->failure);
  pthread_mutex_unlock(&comm->mutex);
  return status;
}

static void letter_name(const orr_comm* comm, int from, int to, uint64_t n, char* out) {
  snprintf(out, 2 * NAME, "%s%d.%d.%llu", comm->place, from, to, (unsigned long long)n);
}

static orr_status* put_letter(orr_comm* comm, int to, const char* head, const char* bytes, int64_t size) {
  char name[2 * NAME];
  letter_name(comm, comm->rank, to, comm->members[to].sent++, name);
  return write_file(name, head, bytes, size);
}

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static orr_status* complain(orr_comm* comm, int32_t code, int from, const orr_coll* c, const char* what) {
  char words[HEAD];
  snprintf(words, sizeof words, "rank %d %s in %s '%s' (%s)", from, what, op_name(c->op), text(c->name), text(c->where));
  return poison(comm, code, words);
}

/* Waits for the next letter of a rank, whose head has to be `head`. */
static orr_status* take_letter(orr_comm* comm, int from, const orr_coll* c, const char* head, part* out) {
  const int64_t patience = c->deadline_ns > 0 ? c->deadline_ns : comm->boot.deadline_ns, begun = now_ns();
  char name[2 * NAME], words[2 * HEAD + 64];
  int64_t size = 0, length;
  letter_name(comm, from, comm->rank, comm->members[from].taken++, name);
  for (int round = 0;; ++round) {
    const struct timespec pause = {0, round < 100 ? 20000 : 500000};
    const int dead = comm->boot.dead(comm->boot.store, comm->members[from].world); /* asked first: its last letter still counts */
    orr_status* status;
    if ((out->letter = read_file(name, &size))) break;
    if ((status = async_error(comm))) return status;
    if (dead) return complain(comm, ORR_RETRY, from, c, "died");
    if (now_ns() - begun > patience) {
      snprintf(words, sizeof words, "has not answered for %g s", (double)patience * 1e-9);
      return complain(comm, ORR_DEADLINE, from, c, words);
    }
    nanosleep(&pause, NULL);
  }
  unlink(name);
  length = (int64_t)strcspn(out->letter, "\n");
  out->letter[length] = 0;
  out->bytes = out->letter + length + 1;
  out->size = size - length - 1;
  if (strcmp(out->letter, head) == 0) return NULL;
  snprintf(words, sizeof words, "ranks disagree: rank %d %s, rank %d %s", comm->rank, head, from, out->letter);
  return poison(comm, ORR_FAILED, words);
}

/* ---- the table ---- */

static orr_status* exchange(orr_comm* comm, const orr_coll* c, part* parts) {
  char head[HEAD];
  orr_status* status = NULL;
  int64_t longest = 0;
  char* room;
  agreement(c, comm->size, head);
  for (int p = 0; p < comm->size; ++p) {
    const piece one = piece_for(c, comm, p);
    if (one.n * one.times > longest) longest = one.n * one.times;
  }
  room = malloc((size_t)(longest * orr_dtype_bytes(c->dtype)) + 1);
  parts[comm->rank].letter = malloc((size_t)(longest * orr_dtype_bytes(c->dtype)) + 1);
  if (!room || !parts[comm->rank].letter) status = refuse(ORR_FAILED, c, "no memory");
  for (int p = 0; p < comm->size && !status; ++p)
    if (p != comm->rank) status = put_letter(comm, p, head, room, cut(c, piece_for(c, comm, p), room));
  free(room);
  if (status) return status;
  parts[comm->rank].bytes = parts[comm->rank].letter;
  parts[comm->rank].size = cut(c, piece_for(c, comm, comm->rank), parts[comm->rank].bytes);
  for (int p = 0; p < comm->size && !status; ++p)
    if (p != comm->rank) status = take_letter(comm, p, c, head, &parts[p]);
  return status ? status : assemble(c, comm, parts);
}

static orr_status* collective(orr_comm* comm, const orr_coll* c) {
  part* parts = calloc((size_t)comm->size, sizeof *parts);
  orr_status* status = parts ? exchange(comm, c, parts) : refuse(ORR_FAILED, c, "no memory");
  for (int p = 0; parts && p < comm->size; ++p) free(parts[p].letter);
  free(parts);
  return status;
}

static orr_status* receive(orr_comm* comm, const orr_coll* c) {
  char head[HEAD];
  part got = {NULL, NULL, 0};
  orr_status* status;
  message(c, head);
  status = take_letter(comm, c->root_or_peer, c, head, &got);
  if (!status && got.size > 0) memcpy(orr_buffer_host(&c->recv), got.bytes, (size_t)got.size);
  if (!status && c->source) *c->source = c->root_or_peer;
  free(got.letter);
  return status;
}

static orr_status* post(orr_comm* comm, const orr_coll* ops, int32_t n, orr_work** out) {
  orr_status* status = async_error(comm);
  for (int32_t i = 0; i < n && !status; ++i) status = check_descriptor(&ops[i], comm);
  for (int32_t i = 0; i < n && !status; ++i) { /* letters wait, so that all sends of a group can go first */
    char head[HEAD];
    if (ops[i].op != ORR_COLL_SEND) continue;
    message(&ops[i], head);
    status = put_letter(comm, ops[i].root_or_peer, head, ops[i].count > 0 ? orr_buffer_host(&ops[i].send) : NULL,
                        ops[i].count * orr_dtype_bytes(ops[i].dtype));
  }
  for (int32_t i = 0; i < n && !status; ++i) {
    if (ops[i].op == ORR_COLL_RECV) status = receive(comm, &ops[i]);
    else if (ops[i].op != ORR_COLL_SEND) status = collective(comm, &ops[i]);
    atomic_fetch_add(&comm->bytes_sent, traffic(&ops[i], comm));
  }
  *out = (orr_work*)comm; /* all is done at return: the handle says nothing */
  return status;
}

static orr_status* wait(orr_comm* comm, orr_work* work) {
  (void)comm, (void)work;
  return NULL;
}

static orr_comm* make(const orr_comm_boot* boot, const char* place, int rank, int size) {
  orr_comm* comm = calloc(1, sizeof *comm);
  member* members = calloc((size_t)size, sizeof *members);
  if (!comm || !members) {
    free(comm);
    free(members);
    return NULL;
  }
  memcpy(&comm->boot, boot, boot->size < sizeof *boot ? boot->size : sizeof *boot);
  snprintf(comm->place, sizeof comm->place, "%s", place);
  comm->rank = rank, comm->size = size, comm->members = members;
  for (int r = 0; r < size; ++r) members[r].world = r;
  pthread_mutex_init(&comm->mutex, NULL);
  return comm;
}

static void here(const orr_comm* comm, int rank, char* out) { snprintf(out, 2 * NAME, "%shere.%d", comm->place, rank); }

/* The last one out takes the directory along, with what nobody will read any more. */
static void clean_up(orr_comm* comm) {
  char name[2 * NAME];
  DIR* directory;
  here(comm, comm->rank, name);
  unlink(name);
  for (int r = 0; r < comm->size; ++r) {
    here(comm, r, name);
    if (r != comm->rank && access(name, F_OK) == 0 && !comm->boot.dead(comm->boot.store, r)) return;
  }
  directory = opendir(comm->place);
  for (struct dirent* entry; directory && (entry = readdir(directory));) unlinkat(dirfd(directory), entry->d_name, 0);
  if (directory) closedir(directory);
  rmdir(comm->place);
}

static void destroy(orr_comm* comm) {
  if (!comm) return;
  if (comm->is_world) clean_up(comm);
  pthread_mutex_destroy(&comm->mutex);
  free(comm->members);
  free(comm);
}

static orr_status* arrive(orr_comm* comm) {
  char name[2 * NAME];
  struct stat facts;
  orr_work* work;
  orr_status* status;
  orr_coll barrier = {.size = sizeof barrier, .op = ORR_COLL_BARRIER, .dtype = ORR_U8, .name = "start"};
  mkdir(comm->place, 0700);
  if (stat(comm->place, &facts) != 0 || facts.st_uid != geteuid())
    return host->error(ORR_FAILED, "the directory of letters in /dev/shm is not this user's");
  here(comm, comm->rank, name);
  status = write_file(name, "here", NULL, 0);
  comm->is_world = 1;
  return status ? status : post(comm, &barrier, 1, &work);
}

static orr_status* world(void* self, const orr_comm_boot* boot, orr_comm** out) {
  char place[NAME];
  orr_comm* comm;
  orr_status* status;
  (void)self;
  snprintf(place, sizeof place, "/dev/shm/letters-@name@-%s/", boot->job);
  if (!(comm = make(boot, place, boot->rank, boot->world_size))) return host->error(ORR_FAILED, "no memory");
  if ((status = arrive(comm))) {
    destroy(comm);
    return status;
  }
  *out = comm;
  return NULL;
}

/* The child of those with this color, ordered by key, then rank. all: (color, key) of each rank. */
static orr_comm* child_of(const orr_comm* parent, const int32_t* all, int32_t color, const char* place) {
  int size = 0, rank = 0;
  orr_comm* child;
  for (int r = 0; r < parent->size; ++r) size += all[2 * r] == color;
  if (!(child = make(&parent->boot, place, 0, size))) return NULL;
  for (int r = 0; r < parent->size; ++r) {
    int before = 0;
    if (all[2 * r] != color) continue;
    for (int q = 0; q < parent->size; ++q)
      before += all[2 * q] == color && (all[2 * q + 1] < all[2 * r + 1] || (all[2 * q + 1] == all[2 * r + 1] && q < r));
    child->members[before].world = parent->members[r].world;
    if (r == parent->rank) rank = before;
  }
  child->rank = rank;
  return child;
}

static orr_status* split(orr_comm* parent, int32_t color, int32_t key, orr_comm** out) {
  const size_t n = (size_t)parent->size;
  int32_t mine[2] = {color, key}, *all = malloc(n * sizeof mine);
  int64_t* each = malloc(n * sizeof *each);
  orr_memory from = {.size = sizeof from, .bytes = sizeof mine, .host = mine}, to = {.size = sizeof to, .bytes = n * sizeof mine, .host = all};
  orr_coll c = {.size = sizeof c, .op = ORR_COLL_ALL_GATHER, .dtype = ORR_I32, .send = {&from, 0, sizeof mine},
                .recv = {&to, 0, n * sizeof mine}, .counts = each, .name = "split"};
  orr_work* work;
  orr_status* status;
  char place[NAME];
  for (size_t r = 0; each && r < n; ++r) each[r] = 2;
  status = all && each ? post(parent, &c, 1, &work) : host->error(ORR_FAILED, "no memory");
  *out = NULL;
  snprintf(place, sizeof place, "%.400s%d-%d.", parent->place, parent->splits++, color);
  if (!status && color >= 0 && !(*out = child_of(parent, all, color, place))) status = host->error(ORR_FAILED, "no memory");
  free(all);
  free(each);
  return status;
}

static int32_t probe(void* self, orr_comm_caps* out, char* reason, uint32_t reason_bytes) {
  (void)self;
  out->flags = ORR_COMM_DETERMINISTIC | ORR_COMM_PEER_DEATH | ORR_COMM_PAIR_ORDER;
  out->ops = out->dtypes = 0;
  for (int op = ORR_COLL_BARRIER; op <= ORR_COLL_TREE_REDUCE_SCATTER; ++op) out->ops |= (uint64_t)1 << op;
  for (int dtype = ORR_F32; dtype <= ORR_U8; ++dtype) out->dtypes |= (uint64_t)is_added(dtype) << dtype;
  out->tiers = 1u << ORR_TIER_HOST;
  out->max_ranks = 0;
  if (reason_bytes > 0) reason[0] = 0;
  return 1;
}

static int32_t rank(orr_comm* comm) { return comm->rank; }
static int32_t world_size(orr_comm* comm) { return comm->size; }
static uint64_t bytes_sent(orr_comm* comm) { return atomic_load(&comm->bytes_sent); }

static void abort_all(orr_comm* comm, const char* reason) {
  char name[2 * NAME], words[HEAD];
  name_in(comm, "abort", name);
  snprintf(words, sizeof words, "rank %d aborted: %s", comm->rank, reason);
  host->error_release(write_file(name, words, NULL, 0));
}

static const orr_comm_api table = {.size = sizeof(orr_comm_api), .probe = probe, .world = world, .split = split, .rank = rank,
                                   .world_size = world_size, .post = post, .wait = wait, .abort = abort_all,
                                   .async_error = async_error, .destroy = destroy, .bytes_sent = bytes_sent};

static const void* get(void* self, const char* id, uint32_t version) {
  (void)self;
  return strcmp(id, "comm") == 0 && version == 1 ? &table : NULL;
}

static orr_status* entry(const orr_bootstrap* boot, orr_exports* out) {
  host = boot->host("host", 1);
  out->get = get;
  return NULL;
}

ORR_PLUGIN(ORR_KIND_COMM, "@name@", "0.1.0", "Letters between the ranks of one machine", entry, 1, {{"comm", 1, 1}})
