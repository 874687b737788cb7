// SPDX-License-Identifier: Apache-2.0
//
// What survivors say when a peer dies, freezes, comes late, posts something else or gives up.
#include "conformance/comm/bodies.h"

#include <signal.h>
#include <time.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "conformance/growth.h"

#include "conformance/comm/model.h"
#include "conformance/comm/peer.h"

namespace comm_suite {
namespace {

orr_coll make(int op) {
  orr_coll c = Peer::make(op);
  const char* seconds = std::getenv("ORRERY_TEST_DEADLINE");
  c.deadline_ns = seconds ? static_cast<int64_t>(std::atof(seconds) * 1e9) : 0;
  return c;
}

orr_coll all_reduce(const Slab& slab, int64_t n, const char* name) {
  orr_coll c = make(ORR_COLL_ALL_REDUCE);
  c.count = n;
  c.send = c.recv = slab.part(0, static_cast<uint64_t>(n) * 4);
  c.name = name;
  c.where = "train.lua:12";
  return c;
}

orr_coll recv_from(const Slab& slab, int peer) {
  orr_coll c = make(ORR_COLL_RECV);
  c.root_or_peer = peer;
  c.count = 4;
  c.recv = slab.part(0, 16);
  c.name = "activation";
  return c;
}

// The last rank signals itself before the sixth of ten operations. Argument: signal and elements.
int fall(const std::string& backend, const std::string& argument, int op) {
  Peer peer(backend);
  const int64_t n = std::stoll(argument.substr(argument.find(' ')));
  std::vector<int64_t> leaf_first;
  for (int r = 0; r <= peer.size(); ++r) leaf_first.push_back(r);
  Slab slab(peer, false, static_cast<uint64_t>(n) * 4);
  for (int i = 0; i < 10; ++i) {
    if (i == 5 && peer.rank() == peer.size() - 1) raise(std::stoi(argument));
    orr_coll c = all_reduce(slab, n, "bucket 3");
    c.op = op;
    c.leaf_first = leaf_first.data();
    peer.post(c);
  }
  return 0;
}
int falls(const std::string& backend, const std::string& argument) {
  return fall(backend, argument, ORR_COLL_ALL_REDUCE);
}
int falls_in_a_tree(const std::string& backend, const std::string& argument) {
  return fall(backend, argument, ORR_COLL_TREE_ALL_REDUCE);
}

// Rank 0 waits for 1, which waits for 2, which is frozen: both name 2.
int chain(const std::string& backend, const std::string&) {
  Peer peer(backend);
  Slab slab(peer, false, 64);
  if (peer.rank() == 2) raise(SIGSTOP);
  peer.post(recv_from(slab, peer.rank() + 1));
  return 0;
}

int embrace(const std::string& backend, const std::string&) {
  Peer peer(backend);
  Slab slab(peer, false, 64);
  peer.post(recv_from(slab, 1 - peer.rank()));
  return 0;
}

// Argument: by how many milliseconds rank 1 is late.
int late(const std::string& backend, const std::string& argument) {
  Peer peer(backend);
  Slab slab(peer, false, 64);
  const int64_t ms = std::stoll(argument);
  const timespec pause{ms / 1000, ms % 1000 * 1000000};
  if (peer.rank() == 1) nanosleep(&pause, nullptr);
  peer.post(all_reduce(slab, 16, "late"));
  return 0;
}

// Argument: what rank 1 does otherwise.
int otherwise(const std::string& backend, const std::string& how) {
  Peer peer(backend);
  Slab slab(peer, false, 1 << 20);
  orr_coll c = all_reduce(slab, 100000, "gradients");
  if (peer.rank() == 1 && how == "count") c.count = 50000;
  if (peer.rank() == 1 && how == "name") c.name = "weights";
  if (peer.rank() == 1 && how == "redop") c.redop = ORR_RED_MAX;
  if (peer.rank() == 1 && how == "operation") {
    c.op = ORR_COLL_BROADCAST;
    c.root_or_peer = 1;
    c.where = "train.lua:99";
  }
  // The others' bytes meet before all words of what is posted have come.
  if (peer.rank() == 2) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  peer.post(c);
  return 0;
}

int unequal(const std::string& backend, const std::string&) {
  Peer peer(backend);
  Slab slab(peer, false, 1 << 20);
  orr_coll c = recv_from(slab, 0);
  if (peer.rank() == 0) {
    c = Peer::make(ORR_COLL_SEND);
    c.root_or_peer = 1;
    c.count = 5;
    c.send = slab.part(0, 20);
    c.name = "logits";
  }
  peer.post(c);
  peer.barrier();
  return 0;
}

// Rank 0 aborts while the others are in an operation; later calls fail at once with the same words.
int gives_up(const std::string& backend, const std::string&) {
  Peer peer(backend);
  Slab slab(peer, false, 64);
  if (peer.rank() == 0) peer.api.abort(peer.comm, "loss is not finite");
  for (int i = 0; i < 2; ++i) {
    try {
      peer.post(all_reduce(slab, 16, "bucket"));
      fail(ORR_FAILED, "an operation of a poisoned communicator succeeded");
    } catch (const orrery::Error& e) {
      if (e.code() != ORR_RETRY) throw;
      if (std::string(e.what()).find("loss is not finite") == std::string::npos) throw;
    }
  }
  orr_status* error = peer.api.async_error(peer.comm);
  if (!error) fail(ORR_FAILED, "async_error of a poisoned communicator is NULL");
  check(error);
  return 0;
}

// A refused descriptor moves nothing and leaves the communicator usable.
int refused(const std::string& backend, const std::string&) {
  Peer peer(backend);
  Slab slab(peer, false, 64);
  const auto code = [&](const orr_coll& c) {
    try {
      peer.post(c);
    } catch (const orrery::Error& e) {
      return e.code();
    }
    return 0;
  };
  orr_coll wide = all_reduce(slab, 16, "x");
  wide.count = 1000;
  orr_coll unknown = Peer::make(77);
  orr_coll root = all_reduce(slab, 4, "x");
  root.op = ORR_COLL_REDUCE;
  root.root_or_peer = 9;
  const auto expect = [&](const char* what, const orr_coll& c, int want) {
    if (const int got = code(c); got != want)
      fail(ORR_FAILED, "{}: code {} and not {}", what, got, want);
  };
  expect("a count beyond its buffer", wide, ORR_INVALID);
  expect("operation 77", unknown, ORR_UNIMPLEMENTED);
  expect("root 9", root, ORR_INVALID);
  peer.post(all_reduce(slab, 16, "fine"));
  return 0;
}

// Rank 0 sends and at once uses its buffer for something else; the others come late.
int reuses(const std::string& backend, const std::string&) {
  Peer peer(backend);
  Slab slab(peer, false, 1 << 20);
  constexpr int64_t n = 1000;
  float* numbers = reinterpret_cast<float*>(slab.at(0));
  for (int round = 0; round < 3; ++round) {
    orr_coll c = recv_from(slab, 0);
    c.count = n, c.recv = slab.part(0, n * 4);
    std::fill_n(numbers, n, peer.rank() == 0 ? 7.0f : 0.0f);
    if (peer.rank() == 0) c.op = ORR_COLL_SEND, c.root_or_peer = 1, c.send = c.recv;
    if (peer.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (peer.rank() < 2) peer.post(c);
    if (peer.rank() == 1 && std::count(numbers, numbers + n, 7.0f) != n)
      fail(ORR_FAILED, "what was sent came altered: its buffer was read after `wait`");
    std::fill_n(numbers, n, -1.0f);
    peer.barrier();
  }
  return 0;
}

// `abort` comes from a thread that looks on, while the rank waits for one that will not answer.
int is_aborted(const std::string& backend, const std::string&) {
  Peer peer(backend);
  Slab slab(peer, false, 64);
  std::thread watcher([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    if (peer.rank() == 0) peer.api.abort(peer.comm, "the watcher says so");
  });
  int code = 0;
  try {
    peer.post(recv_from(slab, 1 - peer.rank()));
  } catch (const orrery::Error& e) {
    code = e.code();
  }
  watcher.join();
  if (code != ORR_RETRY) fail(ORR_FAILED, "the wait ended with code {} and not ORR_RETRY", code);
  return 0;
}

// Many steps of the same: memory and files are as many as before.
int steps(const std::string& backend, const std::string&) {
  Peer peer(backend);
  Slab slab(peer, false, 1 << 16);
  const std::string grown =
      orrery::judge::growth([&] { peer.post(all_reduce(slab, 1000, "step")); }, 3);
  if (!grown.empty()) fail(ORR_FAILED, "each all_reduce keeps {}", grown);
  return 0;
}

}  // namespace

std::vector<NamedBody> failure_bodies() {
  return {{"falls", falls},
          {"falls in a tree", falls_in_a_tree},
          {"chain", chain},
          {"embrace", embrace},
          {"late", late},
          {"otherwise", otherwise},
          {"unequal", unequal},
          {"gives up", gives_up},
          {"refused", refused},
          {"reuses", reuses},
          {"is aborted", is_aborted},
          {"steps", steps}};
}

}  // namespace comm_suite
