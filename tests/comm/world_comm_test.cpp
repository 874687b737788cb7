// SPDX-License-Identifier: Apache-2.0
#include "comm/world_comm.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/error.h"
#include "launch/forming.h"
#include "plugin/registry.h"
#include "ranks.h"

namespace orrery {
namespace {

orr_coll all_reduce(const orr_memory* memory, int64_t n) {
  orr_coll c{};
  c.size = sizeof c;
  c.op = ORR_COLL_ALL_REDUCE;
  c.dtype = ORR_F32;
  c.redop = ORR_RED_SUM;
  c.count = n;
  c.send = c.recv = {memory, 0, static_cast<uint64_t>(n) * 4};
  c.name = "bucket";
  return c;
}

TEST(WorldComm, AWorldOfOneIsTheIdentity) {
  WorldComm comm(World{}, "no such backend");
  orr_memory* memory = comm.allocate(64);
  float* x = static_cast<float*>(memory->host);
  for (int i = 0; i < 16; ++i) x[i] = static_cast<float>(i);
  comm.run({all_reduce(memory, 8)});
  EXPECT_EQ(x[7], 7);
  orr_coll gather = all_reduce(memory, 0);
  const int64_t counts[] = {4};
  gather.op = ORR_COLL_ALL_GATHER;
  gather.counts = counts;
  gather.recv = {memory, 32, 16};
  comm.run({gather});
  EXPECT_EQ(x[8], 0);
  EXPECT_EQ(x[11], 3);
  EXPECT_EQ(comm.bytes_sent(), 0u);
}

const ranks::Body believes("believes", [](const std::string& what) {
  Registry::get().add(LYING_COMM);
  try {
    WorldComm comm(detect(), "lying");
  } catch (const Error& e) {
    if (std::string(e.what()).find(what) != std::string::npos) return 0;
    throw;
  }
  return 1;
});

TEST(WorldComm, AWorldThatWasNotAskedForIsRefused) {
  for (const auto& [lie, words] :
       {std::pair{"none", "comm 'lying': world gave no communicator"},
        std::pair{"five", "its world has this as rank 0 of 5, but it is rank "}}) {
    const auto outcome = ranks::run(2, "believes", words, {std::string("ORRERY_TEST_LIE=") + lie});
    EXPECT_EQ(outcome.code, 0) << outcome.output;
  }
}

// Many operations in flight, in order; the sum of n ranks' ones, doubled each time.
const ranks::Body lane("lane", [](const std::string&) {
  WorldComm comm(detect(), "local");
  orr_memory* memory = comm.allocate(40000);
  float* x = static_cast<float*>(memory->host);
  for (int i = 0; i < 10000; ++i) x[i] = 1;
  WorldComm::Ticket last;
  for (int i = 0; i < 5; ++i) last = comm.submit({all_reduce(memory, 10000)});
  comm.wait(last);
  float want = 1;
  for (int i = 0; i < 5; ++i) want *= static_cast<float>(comm.size());
  return x[0] != want || x[9999] != want;
});

TEST(WorldComm, RunsInTheOrderOfSubmission) {
  for (int n : {2, 3}) {
    const auto outcome = ranks::run(n, "lane", "", {"ORRERY_DEADLINE=60"});
    EXPECT_EQ(outcome.code, 0) << outcome.output;
  }
}

// A later wait says again what the first failure was.
const ranks::Body sticky("sticky", [](const std::string&) {
  WorldComm comm(detect(), "local");
  if (comm.rank() == 1) raise(SIGKILL);
  orr_memory* memory = nullptr;
  orr_memory own{};
  float x[4] = {};
  own.host = x;
  own.bytes = sizeof x;
  memory = &own;
  const auto first = comm.submit({all_reduce(memory, 4)});
  const auto second = comm.submit({all_reduce(memory, 4)});
  std::string words[2];
  for (auto [ticket, word] : {std::pair{second, &words[0]}, std::pair{first, &words[1]}}) {
    try {
      comm.wait(ticket);
      return 1;
    } catch (const Error& e) {
      *word = e.what();
    }
  }
  if (words[0] != words[1]) return 2;
  throw Error(ORR_RETRY, words[0]);
});

TEST(WorldComm, ErrorsAreSticky) {
  const auto outcome = ranks::run(2, "sticky", "", {"ORRERY_DEADLINE=60"});
  EXPECT_NE(outcome.output.find("rank 0: rank 1 died in all_reduce 'bucket'"), std::string::npos)
      << outcome.output;
}

// One rank never comes; another comes late, and waits for it yet when others have waited long.
const ranks::Body absent("absent", [](const std::string& who) {
  const World world = detect();
  const auto store = Store::open(world);
  if (std::to_string(world.rank) == who) raise(SIGSTOP);
  if (world.rank == (who == "0")) std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  try {
    form(*store, world, [&] {
      store->put("here." + std::to_string(world.rank), "");
      for (int r = 0; r < world.size; ++r)
        store->get("here." + std::to_string(r), int64_t{20} * 1000000000);
    });
  } catch (const Error& e) {
    store->report(e.what());  // as whoever runs a script does
    throw;
  }
  return 0;
});

TEST(WorldComm, NamesWhoNeverComes) {
  for (const std::string who : {"0", "3"}) {
    const auto outcome = ranks::run(4, "absent", who, {"ORRERY_DEADLINE=2"});
    EXPECT_EQ(outcome.code, ORR_DEADLINE);
    // Three ranks, by themselves or by what forming the world threw. The launcher says it too,
    // unless it ends the stopped rank before any of the others has failed.
    EXPECT_GE(ranks::count(outcome.output, "rank " + who + " has not answered for 2 s"), 3)
        << outcome.output;
  }
}

// One rank is stopped; the others begin so late that the launcher mostly ends it before they miss
// it. Where they are first, the launcher passes on what the first of them said.
const ranks::Body stopped_early("stopped_early", [](const std::string& who) {
  const World world = detect();
  const auto store = Store::open(world);
  if (std::to_string(world.rank) == who) raise(SIGSTOP);
  std::this_thread::sleep_for(std::chrono::milliseconds(2200));
  form(*store, world, [&] { store->get("here." + who, int64_t{20} * 1000000000); });
  return 0;
});

TEST(WorldComm, NamesWhoWasStoppedBeforeOthersBegan) {
  const auto outcome = ranks::run(3, "stopped_early", "1", {"ORRERY_DEADLINE=2"});
  EXPECT_EQ(outcome.code, ORR_DEADLINE);
  EXPECT_GE(ranks::count(outcome.output, "rank 1 has not answered for 2 s"), 2) << outcome.output;
}

// A library that waits forever for a rank that has frozen inside of it, on all ranks but one.
const ranks::Body stuck("stuck", [](const std::string& free) {
  const World world = detect();
  const auto store = Store::open(world);
  form(*store, world, [&] {
    if (world.rank == 3) raise(SIGSTOP);
    while (std::to_string(world.rank) != free) pause();
  });
  for (;;) pause();
  return 0;
});

TEST(WorldComm, NamesWhoFreezesWhileTheWorldForms) {
  for (const char* free : {"1", "0"}) {
    const auto outcome = ranks::run(4, "stuck", free, {"ORRERY_DEADLINE=2"});
    EXPECT_EQ(outcome.code, ORR_DEADLINE);
    EXPECT_EQ(ranks::count(outcome.output,
                           "error: rank 3 has not answered for 2 s while the world was forming"),
              2)
        << free << "\n"
        << outcome.output;
  }
}

// A library whose own deadline passes at another moment on each rank, and names nobody.
const ranks::Body overdue("overdue", [](const std::string&) {
  const World world = detect();
  const auto store = Store::open(world);
  form(*store, world, [&] {
    if (world.rank == 3) raise(SIGSTOP);
    std::this_thread::sleep_for(std::chrono::milliseconds(2300 + 400 * (2 - world.rank)));
    throw Error(ORR_DEADLINE, "the ranks have not met");
  });
  return 0;
});

TEST(WorldComm, NamesWhoFreezesWhereTheLibraryNamesNobody) {
  const std::string named = "rank 3 has not answered for 2 s while the world was forming";
  const auto outcome = ranks::run(4, "overdue", "", {"ORRERY_DEADLINE=2"});
  EXPECT_EQ(outcome.code, ORR_DEADLINE);
  const int by_launcher = ranks::count(outcome.output, "code 124: " + named);
  EXPECT_EQ(ranks::count(outcome.output, named) - by_launcher, 3) << outcome.output;
}

const ranks::Body unknown("unknown", [](const std::string&) {
  WorldComm comm(detect(), "locl");
  return 0;
});

TEST(WorldComm, AnUnknownBackendIsAnError) {
  const auto outcome = ranks::run(2, "unknown");
  EXPECT_NE(outcome.code, 0);
  EXPECT_NE(outcome.output.find("local"), std::string::npos) << outcome.output;
}

}  // namespace
}  // namespace orrery
