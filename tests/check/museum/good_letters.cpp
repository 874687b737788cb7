// SPDX-License-Identifier: Apache-2.0
//
// What bad backends spoil: the letters of the template (scripts/templates/comm.cpp), with every
// operation its own: a collective is a letter to everybody, and what each makes of those it gets.
#include <orrery/sdk/comm.hpp>
#include <orrery/sdk/descriptor.hpp>
#include <orrery/sdk/traffic.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace {

using Bytes = std::vector<char>;
using Clock = std::chrono::steady_clock;

constexpr int32_t kDtypes[] = {ORR_F32, ORR_F64, ORR_I32, ORR_I64};  // that are added here

// into = into (redop) from.
void fold(int32_t dtype, int32_t redop, const Bytes& from, Bytes& into) {
  const void* both[] = {into.data(), from.data()};
  orr::fold_for(dtype, redop)(into.data(), both, 2,
                              static_cast<int64_t>(into.size()) / orr_dtype_bytes(dtype));
}

// ---- what an operation moves ----

std::string describe(const orr_coll& c) {
  std::string text = orr::traffic::name(c.op);
  text += std::string(" '") + (c.name ? c.name : "") + "' (" + (c.where ? c.where : "") + ")";
  return text + " of " + std::to_string(c.count) + ", dtype " + std::to_string(c.dtype);
}

// All that ranks have to agree on, in words; what stands behind the bar is not for people.
std::string agreement(const orr_coll& c, int ranks) {
  std::string text =
      describe(c) + " | " + std::to_string(c.redop) + " " + std::to_string(c.root_or_peer);
  for (int r = 0; r < ranks && c.counts && c.op != ORR_COLL_ALL_TO_ALL; ++r)
    text += " " + std::to_string(c.counts[r]);
  for (int r = 0; r <= ranks && c.leaf_first; ++r) text += " " + std::to_string(c.leaf_first[r]);
  return text;
}

// A part of `send`, in elements: [at, at + n), and again `step` further on, `times` in all.
struct Piece {
  int64_t at = 0, n = 0, times = 1, step = 0;
};

// What rank p gets of this rank's data.
Piece piece_for(const orr_coll& c, int me, int ranks, int p) {
  switch (c.op) {
    case ORR_COLL_ALL_REDUCE: return {0, c.count};
    case ORR_COLL_REDUCE: return {0, p == c.root_or_peer ? c.count : 0};
    case ORR_COLL_BROADCAST: return {0, me == c.root_or_peer ? c.count : 0};
    case ORR_COLL_ALL_GATHER: return {0, c.counts[me]};
    case ORR_COLL_REDUCE_SCATTER:
    case ORR_COLL_ALL_TO_ALL: return {orr::traffic::sum(c.counts, p), c.counts[p]};
    case ORR_COLL_TREE_ALL_REDUCE: return {0, c.count, orr::traffic::nodes(c, me, ranks), c.count};
    case ORR_COLL_TREE_REDUCE_SCATTER:
      return {c.recv_counts[p], c.counts[p], orr::traffic::nodes(c, me, ranks), c.count};
    default: return {};
  }
}

Bytes cut(const orr_coll& c, const Piece& piece) {
  const int64_t unit = orr_dtype_bytes(c.dtype);
  Bytes out;
  for (int64_t i = 0; i < piece.times && piece.n > 0; ++i) {
    const char* from = orr::data<char>(c.send) + (piece.at + i * piece.step) * unit;
    out.insert(out.end(), from, from + piece.n * unit);
  }
  return out;
}

void check_descriptor(const orr_coll& c, int me, int ranks) {
  if (c.op < ORR_COLL_BARRIER || c.op > ORR_COLL_TREE_REDUCE_SCATTER)
    throw orr::Error(ORR_UNIMPLEMENTED, "operation " + std::to_string(c.op) + " is not known here");
  if (orr::adds(c.op) && std::count(std::begin(kDtypes), std::end(kDtypes), c.dtype) == 0)
    throw orr::Error(ORR_UNIMPLEMENTED, describe(c) + ": this dtype is not added here");
  const std::string why = orr::refusal(c, me, ranks, false);
  if (!why.empty()) throw orr::Error(ORR_INVALID, why);
}

// The node over the leaves [lo, lo + width): some rank's own, or the sum of its halves.
Bytes tree_node(const orr_coll& c, const std::vector<Bytes>& parts, int64_t bytes, int64_t lo,
                int64_t width) {
  const int ranks = static_cast<int>(parts.size());
  const int64_t total = c.leaf_first[ranks], n = std::min(width, total - lo);
  for (int r = 0; r < ranks; ++r) {
    int64_t at = c.leaf_first[r], k = 0;
    for (int64_t first = at, leaves; (leaves = orr_tree_node(&at, c.leaf_first[r + 1], total));
         first = at, ++k)
      if (first == lo && leaves == n)
        return Bytes(parts[r].begin() + k * bytes, parts[r].begin() + (k + 1) * bytes);
  }
  Bytes left = tree_node(c, parts, bytes, lo, width / 2);
  if (lo + width / 2 < total)
    fold(c.dtype, ORR_RED_SUM, tree_node(c, parts, bytes, lo + width / 2, width / 2), left);
  return left;
}

void store(const orr_coll& c, int64_t at, const Bytes& bytes) {
  if (!bytes.empty())
    std::memcpy(orr::data<char>(c.recv) + at * orr_dtype_bytes(c.dtype), bytes.data(),
                bytes.size());
}

// What this rank makes of the parts that it got, one of each rank.
void assemble(const orr_coll& c, int me, const std::vector<Bytes>& parts) {
  const int ranks = static_cast<int>(parts.size());
  const int64_t unit = orr_dtype_bytes(c.dtype);
  switch (c.op) {
    case ORR_COLL_REDUCE:
      if (me != c.root_or_peer) return;
      [[fallthrough]];
    case ORR_COLL_ALL_REDUCE:
    case ORR_COLL_REDUCE_SCATTER: {
      Bytes sum = parts[0];
      for (int r = 1; r < ranks; ++r) fold(c.dtype, c.redop, parts[r], sum);
      return store(c, 0, sum);
    }
    case ORR_COLL_BROADCAST: return store(c, 0, parts[c.root_or_peer]);
    case ORR_COLL_ALL_GATHER:
      for (int r = 0; r < ranks; ++r) store(c, orr::traffic::sum(c.counts, r), parts[r]);
      return;
    case ORR_COLL_ALL_TO_ALL:
      for (int r = 0; r < ranks; ++r) store(c, orr::traffic::sum(c.recv_counts, r), parts[r]);
      return;
    case ORR_COLL_TREE_ALL_REDUCE:
    case ORR_COLL_TREE_REDUCE_SCATTER: {
      const int64_t n = c.op == ORR_COLL_TREE_ALL_REDUCE ? c.count : c.counts[me];
      int64_t width = 1;
      while (width < c.leaf_first[ranks]) width *= 2;
      if (n > 0) store(c, 0, tree_node(c, parts, n * unit, 0, width));
      return;
    }
    default: return;
  }
}

// ---- the communicator ----

class Comm {
 public:
  Comm(const orr_comm_boot& boot, std::string place, int rank, std::vector<int> world)
      : boot_(boot),
        place_(std::move(place)),
        rank_(rank),
        world_(std::move(world)),
        sent_(world_.size()),
        taken_(world_.size()) {}

  ~Comm();
  Comm(const Comm&) = delete;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(world_.size()); }
  uint64_t bytes_sent() const { return bytes_.load(); }

  void arrive();  // of the world: makes the directory, and waits for all
  std::unique_ptr<Comm> split(int32_t color, int32_t key);
  void run(const orr_coll* ops, int32_t n);
  void abort(const char* reason) {
    write_file(place_ + "abort", "rank " + std::to_string(rank_) + " aborted: " + reason);
  }
  orr_status* async_error() {
    const std::lock_guard lock(mutex_);
    if (code_ == ORR_OK) look_for_abort();
    return code_ == ORR_OK ? nullptr : orr::host->error(code_, failure_.c_str());
  }

 private:
  static void write_file(const std::string& name, const std::string& bytes);
  static bool read_file(const std::string& name, std::string& bytes);
  std::string here(int rank) const { return place_ + "here." + std::to_string(rank); }
  std::string letter_name(int from, int to, uint64_t n) const {
    return place_ + std::to_string(from) + "." + std::to_string(to) + "." + std::to_string(n);
  }
  void put_letter(int to, const std::string& head, const Bytes& bytes);
  std::string take_letter(int from, const orr_coll& c);
  Bytes open_letter(int from, const orr_coll& c, const std::string& head);
  void collective(const orr_coll& c);
  void look_for_abort();
  [[noreturn]] void poison(int32_t code, const std::string& text);
  void expect_health();

  orr_comm_boot boot_;
  std::string place_;  // of this communicator's letters: "/dev/shm/letters-museum-JOB/0."
  int rank_;
  std::vector<int> world_;  // the ranks of the job that are ranks here
  std::vector<uint64_t> sent_, taken_;
  std::atomic<uint64_t> bytes_{0};
  int splits_ = 0;
  bool is_world_ = false;
  std::mutex mutex_;  // of the failure, which any thread may ask for
  int32_t code_ = ORR_OK;
  std::string failure_;
};

// Appears whole or not at all.
void Comm::write_file(const std::string& name, const std::string& bytes) {
  const std::string part = name + "." + std::to_string(getpid()) + ".part";
  const int fd = open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  size_t at = 0;
  while (fd >= 0 && at < bytes.size()) {
    const ssize_t n = write(fd, bytes.data() + at, bytes.size() - at);
    if (n <= 0) break;
    at += static_cast<size_t>(n);
  }
  if (fd >= 0) close(fd);
  if (fd < 0 || at < bytes.size() || rename(part.c_str(), name.c_str()) != 0)
    throw orr::Error(ORR_FAILED, "cannot write " + name + "; is there room?");
}

bool Comm::read_file(const std::string& name, std::string& bytes) {
  const int fd = open(name.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  struct stat facts;
  fstat(fd, &facts);
  bytes.resize(static_cast<size_t>(facts.st_size));
  size_t at = 0;
  for (ssize_t n; at < bytes.size() && (n = read(fd, bytes.data() + at, bytes.size() - at)) > 0;)
    at += static_cast<size_t>(n);
  close(fd);
  return at == bytes.size();
}

void Comm::look_for_abort() {
  if (read_file(place_ + "abort", failure_)) code_ = ORR_RETRY;
}

void Comm::poison(int32_t code, const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (code_ == ORR_OK) code_ = code, failure_ = text;
  throw orr::Error(code_, failure_);
}

void Comm::expect_health() {
  const std::lock_guard lock(mutex_);
  if (code_ == ORR_OK) look_for_abort();
  if (code_ != ORR_OK) throw orr::Error(code_, failure_);
}

void Comm::put_letter(int to, const std::string& head, const Bytes& bytes) {
  write_file(letter_name(rank_, to, sent_[to]++),
             head + '\n' + std::string(bytes.begin(), bytes.end()));
}

std::string Comm::take_letter(int from, const orr_coll& c) {
  const std::string name = letter_name(from, rank_, taken_[from]++);
  const int64_t patience = c.deadline_ns > 0 ? c.deadline_ns : boot_.deadline_ns;
  const auto begun = Clock::now();
  std::string letter;
  for (int round = 0;; ++round) {
    const bool dead =
        boot_.dead(boot_.store, world_[from]);  // asked first: its last letter still counts
    if (read_file(name, letter)) break;
    expect_health();
    const std::string where = std::string(" in ") + orr::traffic::name(c.op) + " '" +
                              (c.name ? c.name : "") + "' (" + (c.where ? c.where : "") + ")";
    if (dead) poison(ORR_RETRY, "rank " + std::to_string(from) + " died" + where);
    if ((Clock::now() - begun).count() > patience) {
      char seconds[32];
      std::snprintf(seconds, sizeof seconds, "%g", static_cast<double>(patience) * 1e-9);
      poison(ORR_DEADLINE,
             "rank " + std::to_string(from) + " has not answered for " + seconds + " s" + where);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(round < 100 ? 20 : 500));
  }
  unlink(name.c_str());
  return letter;
}

Bytes Comm::open_letter(int from, const orr_coll& c, const std::string& head) {
  const std::string letter = take_letter(from, c);
  const size_t end = letter.find('\n');
  const std::string theirs = letter.substr(0, end);
  if (theirs != head)
    poison(ORR_FAILED, "ranks disagree: rank " + std::to_string(rank_) + " " + head + ", rank " +
                           std::to_string(from) + " " + theirs);
  return Bytes(letter.begin() + static_cast<ptrdiff_t>(end) + 1, letter.end());
}

void Comm::collective(const orr_coll& c) {
  const std::string head = agreement(c, size());
  std::vector<Bytes> parts(world_.size());
  parts[rank_] = cut(c, piece_for(c, rank_, size(), rank_));
  for (int p = 0; p < size(); ++p)
    if (p != rank_) put_letter(p, head, cut(c, piece_for(c, rank_, size(), p)));
  for (int p = 0; p < size(); ++p)
    if (p != rank_) parts[p] = open_letter(p, c, head);
  assemble(c, rank_, parts);
}

// The head of a message: what its two ends have to agree on.
std::string message(const orr_coll& c) {
  return "message of " + std::to_string(c.count) + ", dtype " + std::to_string(c.dtype) + ", tag " +
         std::to_string(c.tag);
}

void Comm::run(const orr_coll* ops, int32_t n) {
  expect_health();
  for (int32_t i = 0; i < n; ++i) check_descriptor(ops[i], rank_, size());
  for (int32_t i = 0; i < n; ++i)  // letters wait, so that all sends of a group can go first
    if (ops[i].op == ORR_COLL_SEND)
      put_letter(ops[i].root_or_peer, message(ops[i]), cut(ops[i], {0, ops[i].count}));
  for (int32_t i = 0; i < n; ++i) {
    const orr_coll& c = ops[i];
    if (c.op == ORR_COLL_RECV) {
      store(c, 0, open_letter(c.root_or_peer, c, message(c)));
      if (c.source) *c.source = c.root_or_peer;
    } else if (c.op != ORR_COLL_SEND) {
      collective(c);
    }
    bytes_ += orr::traffic::bytes_sent(c, rank_, size());
  }
}

std::unique_ptr<Comm> Comm::split(int32_t color, int32_t key) {
  const std::vector<int64_t> each(world_.size(), 2);
  std::vector<int32_t> all(2 * world_.size());
  const int32_t mine[2] = {color, key};
  orr_memory from{sizeof from, ORR_TIER_HOST, sizeof mine, const_cast<int32_t*>(mine),
                  nullptr,     "host",        nullptr};
  orr_memory to{sizeof to, ORR_TIER_HOST, all.size() * 4, all.data(), nullptr, "host", nullptr};
  orr_coll c{};
  c.size = sizeof c, c.op = ORR_COLL_ALL_GATHER, c.dtype = ORR_I32;
  c.send = {&from, 0, sizeof mine}, c.recv = {&to, 0, all.size() * 4};
  c.counts = each.data(), c.name = "split";
  run(&c, 1);
  const std::string place = place_ + std::to_string(splits_++) + "-" + std::to_string(color) + ".";
  if (color < 0) return nullptr;
  std::map<std::pair<int32_t, int>, int> order;
  for (int r = 0; r < size(); ++r)
    if (all[2 * r] == color) order[{all[2 * r + 1], r}] = r;
  std::vector<int> world;
  int rank = 0;
  for (const auto& [place_in_order, r] : order) {
    if (r == rank_) rank = static_cast<int>(world.size());
    world.push_back(world_[r]);
  }
  return std::make_unique<Comm>(boot_, place, rank, world);
}

void Comm::arrive() {
  const std::string directory = place_.substr(0, place_.size() - 1);
  mkdir(directory.c_str(), 0700);
  struct stat facts;
  if (lstat(directory.c_str(), &facts) != 0 || !S_ISDIR(facts.st_mode) || facts.st_uid != geteuid())
    throw orr::Error(ORR_FAILED, directory + " is not a directory of this user's");
  write_file(here(rank_), "");
  is_world_ = true;
  orr_coll barrier{};
  barrier.size = sizeof barrier, barrier.op = ORR_COLL_BARRIER, barrier.dtype = ORR_U8,
  barrier.name = "start";
  run(&barrier, 1);
}

// The last one out takes the directory along, with what nobody will read any more.
Comm::~Comm() {
  if (!is_world_) return;
  unlink(here(rank_).c_str());
  for (int r = 0; r < size(); ++r)
    if (r != rank_ && access(here(r).c_str(), F_OK) == 0 && !boot_.dead(boot_.store, r)) return;
  std::error_code error;
  std::filesystem::remove_all(place_, error);
}

std::unique_ptr<Comm> form_world(const orr_comm_boot& boot) {
  std::vector<int> world(static_cast<size_t>(boot.world_size));
  std::iota(world.begin(), world.end(), 0);
  auto comm = std::make_unique<Comm>(boot, std::string("/dev/shm/letters-museum-") + boot.job + "/",
                                     boot.rank, world);
  comm->arrive();
  return comm;
}

int32_t probe(void*, orr_comm_caps* out, char* reason, uint32_t reason_bytes) {
  const uint32_t size = out->size;
  *out = orr::host_caps(ORR_COMM_DETERMINISTIC | ORR_COMM_PEER_DEATH | ORR_COMM_PAIR_ORDER);
  out->size = size;
  out->dtypes = 0;
  for (int32_t dtype : kDtypes) out->dtypes |= uint64_t{1} << dtype;
  if (reason_bytes > 0) reason[0] = 0;
  return 1;
}

constexpr orr_comm_api table = [] {
  orr_comm_api t = orr::comm_table<Comm, form_world>(probe);
  orr::set_host_ordered<Comm>(t);
  t.abort = [](orr_comm* comm, const char* reason) {
    orr::host->error_release(orr::guard([&] { orr::comm_of<Comm>(comm).abort(reason); }));
  };
  t.async_error = [](orr_comm* comm) { return orr::comm_of<Comm>(comm).async_error(); };
  return t;
}();

}  // namespace

ORR_PLUGIN(ORR_KIND_COMM, "museum", "0.1.0", "Letters between the ranks of one machine",
           orr::comm_entry<table>, 1, {{"comm", 1, 1}})
