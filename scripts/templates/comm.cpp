// @name@: the ranks of one machine write each other messages. A message is a file in a directory
// that all of them see. Sends and receives are all that a backend must have: reductions and
// gathers are composed of them by Orrery, until you claim and write a faster one. See
// orrery/comm.h for the calls. Put your wire where put_message and take_message are.
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

using Clock = std::chrono::steady_clock;

// The head of a message, on which its two ends have to agree; what stands behind the bar is for
// people.
std::string head_of(const orr_coll& c) {
  return "message of " + std::to_string(c.count) + ", dtype " + std::to_string(c.dtype) + ", tag " +
         std::to_string(c.tag) + " | '" + (c.name ? c.name : "") + "' (" +
         (c.where ? c.where : "") + ")";
}

bool agree(const std::string& head, const std::string& other) {
  return head.substr(0, head.find('|')) == other.substr(0, other.find('|'));
}

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
  std::string message_name(int from, int to, uint64_t n) const {
    return place_ + std::to_string(from) + "." + std::to_string(to) + "." + std::to_string(n);
  }
  void put_message(int to, const std::string& head, std::string_view bytes);
  std::string take_message(int from, const orr_coll& c);
  std::string open_message(int from, const orr_coll& c, const std::string& head);
  std::vector<std::string> tell_all(const char* name, const std::string& mine);
  void look_for_abort();
  [[noreturn]] void poison(int32_t code, const std::string& text);
  void expect_health();

  orr_comm_boot boot_;
  std::string place_;  // of this communicator's messages: "/dev/shm/messages-@name@-JOB/0."
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

void Comm::put_message(int to, const std::string& head, std::string_view bytes) {
  write_file(message_name(rank_, to, sent_[to]++), head + '\n' + std::string(bytes));
}

std::string Comm::take_message(int from, const orr_coll& c) {
  const std::string name = message_name(from, rank_, taken_[from]++);
  const int64_t patience = c.deadline_ns > 0 ? c.deadline_ns : boot_.deadline_ns;
  const auto begun = Clock::now();
  std::string message;
  for (int round = 0;; ++round) {
    const bool dead =
        boot_.dead(boot_.store, world_[from]);  // asked first: its last message still counts
    if (read_file(name, message)) break;
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
  return message;
}

// What came behind the head.
std::string Comm::open_message(int from, const orr_coll& c, const std::string& head) {
  const std::string message = take_message(from, c);
  const size_t end = message.find('\n');
  const std::string theirs = message.substr(0, end);
  if (!agree(head, theirs))
    poison(ORR_FAILED, "ranks disagree: rank " + std::to_string(rank_) + " " + head + ", rank " +
                           std::to_string(from) + " " + theirs);
  return message.substr(end + 1);
}

void Comm::run(const orr_coll* ops, int32_t n) {
  expect_health();
  for (int32_t i = 0; i < n; ++i) {
    const orr_coll& c = ops[i];
    if (!orr::is_paired(c.op))
      throw orr::Error(ORR_UNIMPLEMENTED, "operation " + std::to_string(c.op) + " is not here");
    const std::string why = orr::refusal(c, rank_, size(), false);
    if (!why.empty()) throw orr::Error(ORR_INVALID, why);
  }
  // Messages wait, so that all sends of a group can go first.
  for (int32_t i = 0; i < n; ++i) {
    const orr_coll& c = ops[i];
    bytes_ += orr::traffic::bytes_sent(c, rank_, size());
    if (c.op != ORR_COLL_SEND) continue;
    const size_t bytes = static_cast<size_t>(c.count * orr_dtype_bytes(c.dtype));
    put_message(c.root_or_peer, head_of(c),
                bytes ? std::string_view(orr::data<char>(c.send), bytes) : std::string_view());
  }
  for (int32_t i = 0; i < n; ++i) {
    const orr_coll& c = ops[i];
    if (c.op != ORR_COLL_RECV) continue;
    const std::string bytes = open_message(c.root_or_peer, c, head_of(c));
    if (!bytes.empty()) std::memcpy(orr::data<char>(c.recv), bytes.data(), bytes.size());
    if (c.source) *c.source = c.root_or_peer;
  }
}

// What every rank has to say, by rank.
std::vector<std::string> Comm::tell_all(const char* name, const std::string& mine) {
  orr_coll c{};
  c.size = sizeof c, c.op = ORR_COLL_RECV, c.name = name;
  std::vector<std::string> all(world_.size(), mine);
  for (int r = 0; r < size(); ++r)
    if (r != rank_) put_message(r, name, mine);
  for (int r = 0; r < size(); ++r)
    if (r != rank_) all[r] = open_message(r, c, name);
  return all;
}

std::unique_ptr<Comm> Comm::split(int32_t color, int32_t key) {
  const std::vector<std::string> all =
      tell_all("split", std::to_string(color) + " " + std::to_string(key));
  const std::string place = place_ + std::to_string(splits_++) + "-" + std::to_string(color) + ".";
  if (color < 0) return nullptr;
  std::map<std::pair<int, int>, int> order;  // (key, rank) -> rank, of those with this color
  for (int r = 0; r < size(); ++r) {
    size_t end = 0;
    if (std::stoi(all[r], &end) == color) order[{std::stoi(all[r].substr(end)), r}] = r;
  }
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
  tell_all("start", "");
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
  const std::string place = std::string("/dev/shm/messages-@name@-") + boot.job + "/";
  auto comm = std::make_unique<Comm>(boot, place, boot.rank, world);
  comm->arrive();
  return comm;
}

int32_t probe(void*, orr_comm_caps* out, char* reason, uint32_t reason_bytes) {
  const uint32_t size = out->size;
  *out = orr::host_caps(ORR_COMM_DETERMINISTIC | ORR_COMM_PEER_DEATH | ORR_COMM_PAIR_ORDER);
  out->size = size;
  out->ops = uint64_t{1} << ORR_COLL_SEND | uint64_t{1} << ORR_COLL_RECV;
  out->dtypes = 0;  // nothing is added here
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

ORR_PLUGIN(ORR_KIND_COMM, "@name@", "0.1.0", "Messages between the ranks of one machine",
           orr::comm_entry<table>, 1, {{"comm", 1, 1}})
