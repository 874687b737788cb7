// SPDX-License-Identifier: Apache-2.0
#include "connect.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sodium.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <orrery/sdk/plugin.hpp>
#include <string>

#include "../shared/blame.h"
#include "../shared/operation.h"

namespace local {
namespace {

constexpr size_t most_visitors = 512;  // who comes and says nothing makes room for the next

using Secret = std::array<unsigned char, crypto_auth_KEYBYTES>;
using Nonce = std::array<unsigned char, 32>;

// What a rank sends first, after it has received a nonce.
struct Hello {
  int32_t rank;
  unsigned char proof[crypto_auth_BYTES];
};

// Who means to have said it, to whom, and to what question.
struct Claim {
  Nonce nonce;
  int32_t from, to;
};

Hello hello_of(const Secret& secret, const Claim& claim) {
  Hello hello{claim.from, {}};
  crypto_auth(hello.proof, reinterpret_cast<const unsigned char*>(&claim), sizeof claim,
              secret.data());
  return hello;
}

class Connector {
 public:
  Connector(const orr_comm_boot& boot, const std::vector<int>& ranks, const std::string& name)
      : boot_(boot),
        ranks_(ranks),
        prefix_("comm.local/" + name + "/"),
        sockets_(static_cast<size_t>(boot.world_size), -1),
        end_(shared::now_ns() + boot.deadline_ns) {}
  ~Connector();
  std::vector<int> form();

 private:
  struct Visitor {
    int socket;
    Nonce nonce;
  };
  std::string fetch(const std::string& key) const;
  void put(const std::string& key, const void* value, uint64_t bytes) const;
  void agree_on_secret();
  void open();
  void reach(int rank, const std::string& place);
  void receive_all();
  void let_in();
  bool hear(const Visitor& visitor);
  int first_missing() const;
  int left_ms() const {
    return static_cast<int>(std::max<int64_t>((end_ - shared::now_ns()) / 1000000, 0));
  }
  [[noreturn]] void fail_waiting(int rank, const std::string& place) const;

  const orr_comm_boot& boot_;
  const std::vector<int>& ranks_;
  const std::string prefix_;  // of keys
  std::vector<int> sockets_;  // by rank
  std::vector<Visitor> visitors_;
  Secret secret_;
  int listener_ = -1;
  int64_t end_;
};

Connector::~Connector() {
  for (const Visitor& v : visitors_) close(v.socket);
  for (int fd : sockets_)
    if (fd >= 0) close(fd);
  if (listener_ >= 0) close(listener_);
}

std::string Connector::fetch(const std::string& key) const {
  char value[256];
  uint64_t bytes = 0;
  orr::check(boot_.get(boot_.store, key.c_str(), value, sizeof value, &bytes, boot_.deadline_ns));
  return std::string(value, bytes);
}

void Connector::put(const std::string& key, const void* value, uint64_t bytes) const {
  orr::check(boot_.put(boot_.store, key.c_str(), value, bytes));
}

void Connector::agree_on_secret() {
  if (sodium_init() < 0) throw orr::Error(ORR_FAILED, "no random numbers from this machine");
  if (boot_.rank == ranks_[0]) {
    randombytes_buf(secret_.data(), sizeof secret_);
    return put(prefix_ + "secret", secret_.data(), sizeof secret_);
  }
  const std::string got = fetch(prefix_ + "secret");
  if (got.size() != sizeof secret_)
    throw orr::Error(ORR_FAILED,
                     "rank " + std::to_string(ranks_[0]) + " has another version of comm 'local'");
  std::memcpy(secret_.data(), got.data(), sizeof secret_);
}

using Address = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Address parse(const std::string& host, const std::string& port) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0)
    throw orr::Error(ORR_FAILED, "the store names '" + host + "' as a rank's address");
  return Address(found, &freeaddrinfo);
}

int new_socket(int family) {
  const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0)
    throw orr::Error(ORR_FAILED,
                     std::string("no socket: ") + std::strerror(errno) + " (see ulimit -n)");
  return fd;
}

// Small messages leave at once; a host that vanishes without a word is noticed.
void tune(int socket) {
  const auto set = [socket](int level, int option, int value) {
    setsockopt(socket, level, option, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 4);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 30000);
}

void Connector::open() {
  const std::string host = fetch("address/" + std::to_string(boot_.rank));
  const Address at = parse(host, "0");
  listener_ = new_socket(at->ai_family);
  sockaddr_storage bound{};
  socklen_t bytes = sizeof bound;
  if (bind(listener_, at->ai_addr, at->ai_addrlen) != 0 || listen(listener_, SOMAXCONN) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&bound), &bytes) != 0)
    throw orr::Error(ORR_FAILED, "rank " + std::to_string(boot_.rank) + " cannot listen at " +
                                     host + ", where rank 0 has seen it: " + std::strerror(errno));
  char port[NI_MAXSERV];
  getnameinfo(reinterpret_cast<sockaddr*>(&bound), bytes, nullptr, 0, port, sizeof port,
              NI_NUMERICSERV);
  put(prefix_ + "port/" + std::to_string(boot_.rank), port, std::strlen(port));
}

void Connector::fail_waiting(int rank, const std::string& place) const {
  throw orr::Error(
      ORR_DEADLINE,
      "rank " + std::to_string(boot_.rank) + " has no connection with rank " +
          std::to_string(rank) + place + " after " + shared::seconds(boot_.deadline_ns) +
          ": do the hosts reach each other at these addresses, and no firewall between?");
}

// Who is called speaks first.
void Connector::reach(int rank, const std::string& place) {
  const size_t colon = place.rfind(':');
  const Address at = parse(place.substr(0, colon), place.substr(colon + 1));
  const int fd = sockets_[rank] = new_socket(at->ai_family);
  tune(fd);
  Claim claim{{}, boot_.rank, rank};
  pollfd ready{fd, POLLIN, 0};
  ssize_t got = connect(fd, at->ai_addr, at->ai_addrlen);
  if (got == 0 || errno == EINPROGRESS) {
    if (poll(&ready, 1, left_ms()) <= 0) fail_waiting(rank, " at " + place);
    got = recv(fd, claim.nonce.data(), sizeof claim.nonce, MSG_DONTWAIT);
  }
  // It listened before it gave its address.
  if (got < 0 && (errno == ECONNREFUSED || errno == ECONNRESET))
    throw orr::Error(ORR_RETRY, "rank " + std::to_string(rank) +
                                    " died while forming communicators, or a firewall refuses " +
                                    place + ": " + std::strerror(errno));
  if (got < 0)
    throw orr::Error(ORR_RETRY, "rank " + std::to_string(boot_.rank) +
                                    " cannot connect with rank " + std::to_string(rank) + " at " +
                                    place + ": " + std::strerror(errno));
  const Hello hello = hello_of(secret_, claim);
  if (got != sizeof claim.nonce ||
      send(fd, &hello, sizeof hello, MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof hello)
    throw orr::Error(ORR_RETRY,
                     "rank " + std::to_string(rank) + " died while forming communicators");
}

void Connector::let_in() {
  Visitor v{accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK), {}};
  if (v.socket < 0) return;
  tune(v.socket);
  randombytes_buf(v.nonce.data(), sizeof v.nonce);
  if (send(v.socket, v.nonce.data(), sizeof v.nonce, MSG_NOSIGNAL | MSG_DONTWAIT) !=
      sizeof v.nonce) {
    close(v.socket);
    return;
  }
  if (visitors_.size() == most_visitors) {
    close(visitors_.front().socket);
    visitors_.erase(visitors_.begin());
  }
  visitors_.push_back(v);
}

// Whether the visitor is done with being one. A hello is sent at once, so that it comes whole.
bool Connector::hear(const Visitor& v) {
  Hello hello;
  const ssize_t n = recv(v.socket, &hello, sizeof hello, MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  const bool whole = n == sizeof hello && hello.rank > boot_.rank &&
                     std::find(ranks_.begin(), ranks_.end(), hello.rank) != ranks_.end();
  const Claim claim{v.nonce, hello.rank, boot_.rank};
  if (!whole || sockets_[hello.rank] >= 0 ||
      crypto_auth_verify(hello.proof, reinterpret_cast<const unsigned char*>(&claim), sizeof claim,
                         secret_.data()) != 0)
    close(v.socket);
  else
    sockets_[hello.rank] = v.socket;
  return true;
}

int Connector::first_missing() const {
  for (int r : ranks_)
    if (r > boot_.rank && sockets_[r] < 0) return r;
  return -1;
}

// A rank may have come, been content and ended before it is heard here: it is missed only when
// nothing of it is left to hear.
void Connector::receive_all() {
  for (int missing; (missing = first_missing()) >= 0;) {
    const bool dead = boot_.dead(boot_.store, missing);
    std::vector<pollfd> fds{{listener_, POLLIN, 0}};
    for (const Visitor& v : visitors_) fds.push_back({v.socket, POLLIN, 0});
    const bool quiet = poll(fds.data(), fds.size(), std::min(left_ms(), 20)) == 0;
    if (fds[0].revents) let_in();
    std::erase_if(visitors_, [this](const Visitor& v) { return hear(v); });
    if (left_ms() == 0) fail_waiting(missing, "");
    if (dead && quiet)
      throw orr::Error(ORR_RETRY,
                       "rank " + std::to_string(missing) + " died while forming communicators");
  }
}

// Lower ranks are called, higher ones call: the lowest only receives, so that nobody waits in a
// circle.
std::vector<int> Connector::form() {
  agree_on_secret();
  open();
  for (int r : ranks_) {
    if (r >= boot_.rank) continue;
    const std::string rank = std::to_string(r);
    reach(r, fetch("address/" + rank) + ":" + fetch(prefix_ + "port/" + rank));
  }
  receive_all();
  return std::exchange(sockets_, {});
}

}  // namespace

std::vector<int> connect_all(const orr_comm_boot& boot, const std::vector<int>& ranks,
                             const std::string& name) {
  Connector connector(boot, ranks, name);
  try {
    return connector.form();
  } catch (const orr::Error& e) {
    // All ranks ask now who does not answer. Before that is known, connections stay open: whoever
    // saw them closed would name this rank.
    std::string told;
    const int64_t end = shared::now_ns() + shared::time_to_answer_ns;
    while (e.code == ORR_DEADLINE && shared::now_ns() < end) {
      if (const int32_t code = shared::told_end(boot, told)) throw orr::Error(code, told);
      usleep(5000);
    }
    throw;
  }
}

}  // namespace local
