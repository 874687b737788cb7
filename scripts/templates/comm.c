/* @name@: the ranks of one machine write each other messages. A message is a file in a directory
 * that all of them see. Sends and receives are all that a backend must have: reductions and
 * gathers are composed of them by Orrery, until you claim and write a faster one. See
 * orrery/comm.h for the calls. Put your wire where put_message and take_message are. */
#define _GNU_SOURCE
#include <orrery/comm.h>
#include <orrery/host.h>
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
  uint64_t sent, taken; /* messages to and from it */
} member;

struct orr_comm {
  orr_comm_boot boot;
  char place[NAME]; /* of its messages: "/dev/shm/messages-@name@-JOB/0." */
  int rank, size, splits, is_world;
  member* members;
  _Atomic uint64_t bytes_sent;
  pthread_mutex_t mutex; /* of the failure, which any thread may ask for */
  int32_t code;
  char failure[2 * HEAD + 64];
};

/* What came from a rank: the bytes behind the head. */
typedef struct part {
  char *message, *bytes;
  int64_t size;
} part;

/* ---- descriptors ---- */

static const char* op_name(int32_t op) {
  return op == ORR_COLL_SEND ? "send" : op == ORR_COLL_RECV ? "recv" : "an unknown operation";
}

static const char* text(const char* words) { return words ? words : ""; }

/* The head of a message: what its two ends have to agree on, a bar, and words for people. */
static void message(const orr_coll* c, char* out) {
  snprintf(out, HEAD, "%lld of dtype %d, tag %d | '%s' (%s)", (long long)c->count, c->dtype, c->tag,
           text(c->name), text(c->where));
}

static int agree(const char* head, const char* other) {
  const size_t n = strcspn(head, "|");
  return n == strcspn(other, "|") && strncmp(head, other, n) == 0;
}

static orr_status* refuse(int32_t code, const orr_coll* c, const char* why) {
  char words[HEAD];
  snprintf(words, sizeof words, "%s '%s' (%s): %s", op_name(c->op), text(c->name), text(c->where),
           why);
  return host->error(code, words);
}

static orr_status* check_descriptor(const orr_coll* c, const orr_comm* comm) {
  const orr_buffer* b = c->op == ORR_COLL_SEND ? &c->send : &c->recv;
  if (c->op != ORR_COLL_SEND && c->op != ORR_COLL_RECV)
    return refuse(ORR_UNIMPLEMENTED, c, "not known here");
  if (c->root_or_peer < 0 || c->root_or_peer >= comm->size)
    return refuse(ORR_INVALID, c, "there is no such rank");
  if (orr_dtype_bytes(c->dtype) == 0) return refuse(ORR_INVALID, c, "there is no such dtype");
  if (c->count > 0 && (!b->memory || b->bytes < (uint64_t)(c->count * orr_dtype_bytes(c->dtype))))
    return refuse(ORR_INVALID, c, "the buffer has no room for its elements");
  return NULL;
}

/* ---- messages ---- */

/* Makes the file appear whole or not at all: a head of one line, then the bytes. */
static orr_status* write_file(const char* name, const char* head, const char* bytes, int64_t size) {
  char unfinished[NAME + 32];
  FILE* file;
  int good;
  snprintf(unfinished, sizeof unfinished, "%s.%d.part", name, getpid());
  file = fopen(unfinished, "we");
  good = file && fprintf(file, "%s\n", head) > 0 &&
         (size == 0 || fwrite(bytes, 1, (size_t)size, file) == (size_t)size);
  if (file && fclose(file) != 0) good = 0;
  if (good && rename(unfinished, name) == 0) return NULL;
  return host->error(ORR_FAILED, "cannot write a message to /dev/shm; is there room?");
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

static void name_in(const orr_comm* comm, const char* word, char* out) {
  snprintf(out, 2 * NAME, "%s%s", comm->place, word);
}

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

static void message_name(const orr_comm* comm, int from, int to, uint64_t n, char* out) {
  snprintf(out, 2 * NAME, "%s%d.%d.%llu", comm->place, from, to, (unsigned long long)n);
}

static orr_status* put_message(orr_comm* comm, int to, const char* head, const char* bytes,
                               int64_t size) {
  char name[2 * NAME];
  message_name(comm, comm->rank, to, comm->members[to].sent++, name);
  return write_file(name, head, bytes, size);
}

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static orr_status* complain(orr_comm* comm, int32_t code, int from, const orr_coll* c,
                            const char* what) {
  char words[HEAD];
  snprintf(words, sizeof words, "rank %d %s in %s '%s' (%s)", from, what, op_name(c->op),
           text(c->name), text(c->where));
  return poison(comm, code, words);
}

/* Waits for the next message of a rank, whose head has to be `head`. */
static orr_status* take_message(orr_comm* comm, int from, const orr_coll* c, const char* head,
                                part* out) {
  const int64_t patience = c->deadline_ns > 0 ? c->deadline_ns : comm->boot.deadline_ns,
                begun = now_ns();
  char name[2 * NAME], words[2 * HEAD + 64];
  int64_t size = 0, length;
  message_name(comm, from, comm->rank, comm->members[from].taken++, name);
  for (int round = 0;; ++round) {
    const struct timespec pause = {0, round < 100 ? 20000 : 500000};
    const int dead =
        comm->boot.dead(comm->boot.store,
                        comm->members[from].world); /* asked first: its last message still counts */
    orr_status* status;
    if ((out->message = read_file(name, &size))) break;
    if ((status = async_error(comm))) return status;
    if (dead) return complain(comm, ORR_RETRY, from, c, "died");
    if (now_ns() - begun > patience) {
      snprintf(words, sizeof words, "has not answered for %g s", (double)patience * 1e-9);
      return complain(comm, ORR_DEADLINE, from, c, words);
    }
    nanosleep(&pause, NULL);
  }
  unlink(name);
  length = (int64_t)strcspn(out->message, "\n");
  out->message[length] = 0;
  out->bytes = out->message + length + 1;
  out->size = size - length - 1;
  if (agree(head, out->message)) return NULL;
  snprintf(words, sizeof words, "ranks disagree: rank %d %s, rank %d %s", comm->rank, head, from,
           out->message);
  return poison(comm, ORR_FAILED, words);
}

/* ---- the table ---- */

static orr_status* receive(orr_comm* comm, const orr_coll* c) {
  char head[HEAD];
  part got = {NULL, NULL, 0};
  orr_status* status;
  message(c, head);
  status = take_message(comm, c->root_or_peer, c, head, &got);
  if (!status && got.size > 0) memcpy(orr_buffer_host(&c->recv), got.bytes, (size_t)got.size);
  if (!status && c->source) *c->source = c->root_or_peer;
  free(got.message);
  return status;
}

static orr_status* post(orr_comm* comm, const orr_coll* ops, int32_t n, orr_work** out) {
  orr_status* status = async_error(comm);
  for (int32_t i = 0; i < n && !status; ++i) status = check_descriptor(&ops[i], comm);
  for (int32_t i = 0; i < n && !status;
       ++i) { /* messages wait, so that all sends of a group can go first */
    char head[HEAD];
    if (ops[i].op != ORR_COLL_SEND) continue;
    message(&ops[i], head);
    status = put_message(comm, ops[i].root_or_peer, head,
                         ops[i].count > 0 ? orr_buffer_host(&ops[i].send) : NULL,
                         ops[i].count * orr_dtype_bytes(ops[i].dtype));
    if (ops[i].root_or_peer != comm->rank)
      atomic_fetch_add(&comm->bytes_sent, (uint64_t)(ops[i].count * orr_dtype_bytes(ops[i].dtype)));
  }
  for (int32_t i = 0; i < n && !status; ++i)
    if (ops[i].op == ORR_COLL_RECV) status = receive(comm, &ops[i]);
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

static void here(const orr_comm* comm, int rank, char* out) {
  snprintf(out, 2 * NAME, "%shere.%d", comm->place, rank);
}

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
  for (struct dirent* entry; directory && (entry = readdir(directory));)
    unlinkat(dirfd(directory), entry->d_name, 0);
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

/* This rank's words of n bytes to each other rank, and theirs into all[r * n]. */
static orr_status* tell_all(orr_comm* comm, const char* name, const void* mine, int64_t n,
                            char* all) {
  const orr_coll c = {.size = sizeof c, .op = ORR_COLL_RECV, .name = name};
  orr_status* status = NULL;
  for (int r = 0; r < comm->size && !status; ++r)
    if (r != comm->rank) status = put_message(comm, r, name, mine, n);
  memcpy(all + comm->rank * n, mine, (size_t)n);
  for (int r = 0; r < comm->size && !status; ++r) {
    part got = {NULL, NULL, 0};
    if (r == comm->rank) continue;
    status = take_message(comm, r, &c, name, &got);
    if (!status) memcpy(all + r * n, got.bytes, (size_t)n);
    free(got.message);
  }
  return status;
}

static orr_status* arrive(orr_comm* comm) {
  char name[2 * NAME], *all = malloc((size_t)comm->size);
  struct stat facts;
  orr_status* status;
  mkdir(comm->place, 0700);
  if (!all || stat(comm->place, &facts) != 0 || facts.st_uid != geteuid()) {
    free(all);
    return host->error(ORR_FAILED, "the directory of messages in /dev/shm is not this user's");
  }
  here(comm, comm->rank, name);
  status = write_file(name, "here", NULL, 0);
  comm->is_world = 1;
  if (!status) status = tell_all(comm, "start", "!", 1, all);
  free(all);
  return status;
}

static orr_status* world(void* self, const orr_comm_boot* boot, orr_comm** out) {
  char place[NAME];
  orr_comm* comm;
  orr_status* status;
  (void)self;
  snprintf(place, sizeof place, "/dev/shm/messages-@name@-%s/", boot->job);
  if (!(comm = make(boot, place, boot->rank, boot->world_size)))
    return host->error(ORR_FAILED, "no memory");
  if ((status = arrive(comm))) {
    destroy(comm);
    return status;
  }
  *out = comm;
  return NULL;
}

/* The child of those with this color, ordered by key, then rank. all: (color, key) of each rank. */
static orr_comm* child_of(const orr_comm* parent, const int32_t* all, int32_t color,
                          const char* place) {
  int size = 0, rank = 0;
  orr_comm* child;
  for (int r = 0; r < parent->size; ++r) size += all[2 * r] == color;
  if (!(child = make(&parent->boot, place, 0, size))) return NULL;
  for (int r = 0; r < parent->size; ++r) {
    int before = 0;
    if (all[2 * r] != color) continue;
    for (int q = 0; q < parent->size; ++q)
      before += all[2 * q] == color &&
                (all[2 * q + 1] < all[2 * r + 1] || (all[2 * q + 1] == all[2 * r + 1] && q < r));
    child->members[before].world = parent->members[r].world;
    if (r == parent->rank) rank = before;
  }
  child->rank = rank;
  return child;
}

static orr_status* split(orr_comm* parent, int32_t color, int32_t key, orr_comm** out) {
  const int32_t mine[2] = {color, key};
  int32_t* all = malloc((size_t)parent->size * sizeof mine);
  orr_status* status = all ? tell_all(parent, "split", mine, sizeof mine, (char*)all)
                           : host->error(ORR_FAILED, "no memory");
  char place[NAME];
  *out = NULL;
  snprintf(place, sizeof place, "%.400s%d-%d.", parent->place, parent->splits++, color);
  if (!status && color >= 0 && !(*out = child_of(parent, all, color, place)))
    status = host->error(ORR_FAILED, "no memory");
  free(all);
  return status;
}

static int32_t probe(void* self, orr_comm_caps* out, char* reason, uint32_t reason_bytes) {
  (void)self;
  out->flags = ORR_COMM_DETERMINISTIC | ORR_COMM_PEER_DEATH | ORR_COMM_PAIR_ORDER;
  out->ops = (uint64_t)1 << ORR_COLL_SEND | (uint64_t)1 << ORR_COLL_RECV;
  out->dtypes = 0; /* nothing is added here */
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

static const orr_comm_api table = {.size = sizeof(orr_comm_api),
                                   .probe = probe,
                                   .world = world,
                                   .split = split,
                                   .rank = rank,
                                   .world_size = world_size,
                                   .post = post,
                                   .wait = wait,
                                   .abort = abort_all,
                                   .async_error = async_error,
                                   .destroy = destroy,
                                   .bytes_sent = bytes_sent};

static const void* get(void* self, const char* id, uint32_t version) {
  (void)self;
  return strcmp(id, "comm") == 0 && version == 1 ? &table : NULL;
}

static orr_status* entry(const orr_bootstrap* boot, orr_exports* out) {
  host = boot->host("host", 1);
  out->get = get;
  return NULL;
}

ORR_PLUGIN(ORR_KIND_COMM, "@name@", "0.1.0", "Messages between the ranks of one machine", entry, 1,
           {{"comm", 1, 1}})
