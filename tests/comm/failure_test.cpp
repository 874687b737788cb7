// SPDX-License-Identifier: Apache-2.0
//
// What survivors say when a peer dies, freezes, comes late, posts something else or gives up.
#include <gtest/gtest.h>
#include <signal.h>
#include <time.h>

#include <cstdlib>
#include <filesystem>

#include "fixture.h"
#include "settings.h"

namespace comm_test {
namespace {

using ranks::count;

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
const Body falls("falls", [](const std::string& backend, const std::string& argument) {
  return fall(backend, argument, ORR_COLL_ALL_REDUCE);
});
const Body falls_in_a_tree("falls in a tree", [](const std::string& backend, const std::string& argument) {
  return fall(backend, argument, ORR_COLL_TREE_ALL_REDUCE);
});

// Shared memory with a name of ours.
int leftovers() {
  int n = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    n += entry.path().filename().string().find("orrery") != std::string::npos;
  return n;
}

// MPICH's mpiexec kills the others in the same moment: it may be the last to speak, and names no rank.
TEST_P(OnMain, DeadPeerIsNamedBySurvivors) {
  const int before = leftovers();
  for (int n : {2, 3, 4}) {
    const auto outcome = run(GetParam(), n, "falls", "9 100000", {"ORRERY_DEADLINE=20"});
    const std::string culprit = "rank " + std::to_string(n - 1);
    const std::string words = culprit + " died" + (all_speak() ? " in all_reduce 'bucket 3' (train.lua:12)" : "");
    const bool silenced = GetParam().launcher == "mpiexec.mpich" && count(outcome.output, "Killed (signal 9)");
    EXPECT_GE(count(outcome.output, words), silenced ? 0 : speakers(n - 1)) << outcome.output;
    EXPECT_NE(outcome.code, 0);
    EXPECT_LT(outcome.seconds, patience());
    if (!all_speak()) continue;
    EXPECT_EQ(outcome.code, 128 + 9) << outcome.output;
    EXPECT_NE(outcome.output.find("orrery: " + culprit + " was killed by signal 9"), std::string::npos);
  }
  EXPECT_EQ(leftovers(), before);
}

TEST_P(OnMain, FrozenPeerIsNamedBySurvivors) {
  const auto outcome = run(GetParam(), 3, "falls", std::to_string(SIGSTOP) + " 100", deadline("1"));
  // MPICH's mpiexec has to kill the frozen one, and may take that for the job's end.
  const bool killed = GetParam().launcher == "mpiexec.mpich" && outcome.code == SIGKILL;
  EXPECT_TRUE(outcome.code == ORR_DEADLINE || killed) << outcome.code << ": " << outcome.output;
  EXPECT_GE(count(outcome.output, "rank 2 has not answered for 1 s in all_reduce 'bucket 3'"), speakers(2))
      << outcome.output;
  EXPECT_LT(outcome.seconds, 6 + patience());
}

// Some wait for it, others for those who do, each in its own way.
TEST_P(OnMain, PeerThatFreezesInALargeTreeIsNamedBySurvivors) {
  const auto outcome = run(GetParam(), 4, "falls in a tree", std::to_string(SIGSTOP) + " 100000", deadline("1"));
  EXPECT_GE(count(outcome.output, "rank 3 has not answered for 1 s in tree_all_reduce 'bucket 3'"), speakers(3))
      << outcome.output;
  EXPECT_LT(outcome.seconds, 6 + patience());
}

TEST_P(OnMain, PeerThatDiesInALargeTreeIsNamedBySurvivors) {
  const auto outcome = run(GetParam(), 4, "falls in a tree", "9 100000", {"ORRERY_DEADLINE=20"});
  const bool silenced = GetParam().launcher == "mpiexec.mpich" && count(outcome.output, "Killed (signal 9)");
  EXPECT_GE(count(outcome.output, "rank 3 died"), silenced ? 0 : speakers(3)) << outcome.output;
  EXPECT_LT(outcome.seconds, patience());
}

// Rank 0 waits for 1, which waits for 2, which is frozen: both name 2.
const Body chain("chain", [](const std::string& backend, const std::string&) {
  Peer peer(backend);
  Slab slab(peer, false, 64);
  if (peer.rank() == 2) raise(SIGSTOP);
  peer.post(recv_from(slab, peer.rank() + 1));
  return 0;
});

TEST_P(OnMain, BlamePassesThroughThoseWhoWait) {
  const auto outcome = run(GetParam(), 3, "chain", "", deadline("1"));
  EXPECT_GE(count(outcome.output, "rank 2 has not answered for 1 s in recv 'activation'"), speakers(2))
      << outcome.output;
}

const Body embrace("embrace", [](const std::string& backend, const std::string&) {
  Peer peer(backend);
  Slab slab(peer, false, 64);
  peer.post(recv_from(slab, 1 - peer.rank()));
  return 0;
});

TEST_P(OnMain, DeadlockEndsAtTheDeadline) {
  const auto outcome = run(GetParam(), 2, "embrace", "", deadline("1"));
  EXPECT_EQ(outcome.code, ORR_DEADLINE) << outcome.output;
  EXPECT_GE(count(outcome.output, "wait for each other since 1 s in recv 'activation'"), speakers(2))
      << outcome.output;
  EXPECT_LT(outcome.seconds, 2 + patience());
}

// Argument: by how many milliseconds rank 1 is late.
const Body late("late", [](const std::string& backend, const std::string& argument) {
  Peer peer(backend);
  Slab slab(peer, false, 64);
  const int64_t ms = std::stoll(argument);
  const timespec pause{ms / 1000, ms % 1000 * 1000000};
  if (peer.rank() == 1) nanosleep(&pause, nullptr);
  peer.post(all_reduce(slab, 16, "late"));
  return 0;
});

TEST_P(OnMain, LatePeerBelowTheDeadlineIsNoFailure) {
  const auto outcome = run(GetParam(), 3, "late", "600", {"ORRERY_DEADLINE=5"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  const auto strict = run(GetParam(), 3, "late", "3000", deadline("0.2"));
  EXPECT_GE(count(strict.output, "rank 1 has not answered for 0.2 s in all_reduce 'late'"), speakers(2))
      << strict.output;
}

// Argument: what rank 1 does otherwise.
const Body otherwise("otherwise", [](const std::string& backend, const std::string& how) {
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
  peer.post(c);
  return 0;
});

TEST_P(OnMain, DisagreementNamesBothSides) {
  const std::string one = "rank 0 all_reduce 'gradients' (train.lua:12) of 100000 f32";
  const std::pair<const char*, const char*> cases[] = {
      {"count", "rank 1 all_reduce 'gradients' (train.lua:12) of 50000 f32"},
      {"name", "rank 1 all_reduce 'weights' (train.lua:12) of 100000 f32"},
      {"redop", "counts, leaves or the reduction differ"},
      {"operation", "rank 1 broadcast 'gradients' (train.lua:99) of 100000 f32, root 1"}};
  for (const auto& [how, other] : cases) {
    const auto outcome = run(GetParam(), 3, "otherwise", how, {"ORRERY_DEADLINE=10"});
    EXPECT_EQ(all_speak() ? outcome.code : outcome.code != 0, 1) << outcome.output;
    EXPECT_GE(count(outcome.output, one), speakers(3)) << outcome.output;
    EXPECT_GE(count(outcome.output, other), speakers(3)) << outcome.output;
    EXPECT_LT(outcome.seconds, patience());
  }
}

const Body unequal("unequal", [](const std::string& backend, const std::string&) {
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
});

TEST_P(OnMain, UnequalEndsOfAMessageAreNamed) {
  const auto outcome = run(GetParam(), 2, "unequal", "", {"ORRERY_DEADLINE=10"});
  EXPECT_GE(count(outcome.output, "rank 0 sends 5 f32 'logits' to rank 1, which receives 4 f32 'activation'"),
            speakers(2))
      << outcome.output;
}

// Rank 0 aborts while the others are in an operation; later calls fail at once with the same words.
const Body gives_up("gives up", [](const std::string& backend, const std::string&) {
  Peer peer(backend);
  Slab slab(peer, false, 64);
  if (peer.rank() == 0) peer.api.abort(peer.comm, "loss is not finite");
  for (int i = 0; i < 2; ++i) {
    try {
      peer.post(all_reduce(slab, 16, "bucket"));
      return 1;
    } catch (const orrery::Error& e) {
      if (e.code() != ORR_RETRY) throw;
      if (std::string(e.what()) != "rank 0 aborted: loss is not finite") throw;
    }
  }
  orr_status* error = peer.api.async_error(peer.comm);
  if (!error) return 2;
  check(error);
  return 0;
});

TEST_P(OnMain, AbortReachesPeersInFlight) {
  const auto outcome = run(GetParam(), 3, "gives up", "", {"ORRERY_DEADLINE=10"});
  EXPECT_GE(count(outcome.output, "rank 0 aborted: loss is not finite"), speakers(3)) << outcome.output;
  EXPECT_EQ(outcome.code, ORR_RETRY) << outcome.output;
  EXPECT_LT(outcome.seconds, patience());
}

// A refused descriptor moves nothing and leaves the communicator usable.
const Body refused("refused", [](const std::string& backend, const std::string&) {
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
  if (code(wide) != ORR_INVALID || code(unknown) != ORR_UNIMPLEMENTED || code(root) != ORR_INVALID) return 1;
  peer.post(all_reduce(slab, 16, "fine"));
  return 0;
});

TEST_P(OnMain, InvalidDescriptorsAreRefusedAndHarmless) {
  const auto outcome = run(GetParam(), 2, "refused", "", {"ORRERY_DEADLINE=10"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
}

}  // namespace
}  // namespace comm_test
