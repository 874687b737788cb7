// SPDX-License-Identifier: Apache-2.0
//
// A comm plugin on 1 to 5 ranks: collectives against the scalar model, and what survivors say when
// something goes wrong.
#include <signal.h>

#include <cstdio>
#include <orrery/sdk/descriptor.hpp>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/process.h"
#include "conformance/comm/bodies.h"
#include "conformance/comm/peer.h"
#include "conformance/loaded.h"
#include "conformance/process.h"
#include "launch/affinity.h"
#include "launch/launch.h"

namespace orrery::judge {
namespace {

constexpr const char* waiting = "comm.h: \"Waiting. No call blocks past its deadline\"";

orr_comm_caps caps_of(const Subject& subject) {
  const orr_comm_api& api = registry_with(subject).comm(subject.name());
  orr_comm_caps caps{};
  caps.size = sizeof caps;
  char reason[256] = "no reason given";
  if (!api.probe(api.self, &caps, reason, sizeof reason))
    throw Skip(fmt::format("it does not work here: {}", reason));
  if (!(caps.tiers >> ORR_TIER_HOST & 1))
    throw Skip("it does not carry host memory, which is what is judged");
  return caps;
}

void probe(const Subject& subject) {
  const orr_comm_caps caps = caps_of(subject);
  bool adds = false;
  for (int op = ORR_COLL_BARRIER; op <= ORR_COLL_TREE_REDUCE_SCATTER; ++op) {
    const bool has = caps.ops >> op & 1;
    if (orr::is_paired(op) && !has)
      throw Fault("comm.h: orr_comm_caps.ops",
                  "sends and receives, of which all else can be composed",
                  fmt::format("bit {} is not set", op));
    adds = adds || (has && orr::adds(op));
  }
  if (adds && caps.dtypes == 0)
    throw Fault("comm.h: orr_comm_caps.dtypes", "dtypes that it adds", "none");
}

// A sum of one rank.
void add_alone(const orr_comm_api& api, orr_comm* comm, Fit fit) {
  float numbers[2] = {1, 2};
  Guarded<orr_memory> memory(
      {sizeof(orr_memory), ORR_TIER_HOST, sizeof numbers, numbers, numbers, "host", nullptr}, fit);
  orr_coll plain = comm_suite::Peer::make(ORR_COLL_ALL_REDUCE);
  plain.count = 2;
  plain.send = plain.recv = {memory.get(), 0, sizeof numbers};
  plain.name = plain.where = "alone";
  Guarded<orr_coll> coll(plain, fit);
  orr_work* work = nullptr;
  check(api.post(comm, coll.get(), 1, &work));
  check(api.wait(comm, work));
  if (numbers[0] != 1 || numbers[1] != 2)
    throw Fault("comm.h: ORR_COLL_ALL_REDUCE", "1, 2 of one rank alone",
                fmt::format("{}, {}", numbers[0], numbers[1]));
}

// One rank alone, with structs of other hosts.
void structs(const Subject& subject, Fit fit) {
  Loaded plugin(subject, fit);
  const orr_comm_api& api = plugin.table<orr_comm_api>(ORR_KIND_COMM);
  Guarded<orr_comm_caps> caps({}, fit);
  char reason[256] = "";
  if (!api.probe(api.self, caps.get(), reason, sizeof reason))
    throw Skip(fmt::format("it does not work here: {}", reason));
  const World world = detect();
  const std::unique_ptr<Store> store = Store::open(world);
  Guarded<orr_comm_boot> boot(store->boot(world), fit);
  orr_comm* comm = nullptr;
  check(api.world(api.self, boot.get(), &comm));
  if (caps.get()->ops >> ORR_COLL_ALL_REDUCE & 1) add_alone(api, comm, fit);
  api.destroy(comm);
  if (!caps.tail_intact())
    throw Fault("types.h: structs carry their size", "nothing written beyond what the plugin knows",
                "bytes of a newer host's were overwritten");
}
void exact_structs(const Subject& subject) { structs(subject, Fit::kExact); }
void longer_structs(const Subject& subject) { structs(subject, Fit::kLonger); }

Ended run_ranks(const Subject& subject, int ranks, const char* body, const std::string& argument,
                const std::string& deadline, int seconds) {
  return run_orrery({"check", subject.path.string(), "--ranks", std::to_string(ranks), "--body",
                     body, "--argument", argument, "--seed", std::to_string(subject.seed)},
                    {"ORRERY_DEADLINE=" + deadline}, seconds);
}

std::string words_of(const Ended& ended) {
  std::string text = ended.output;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.empty() ? describe_code(ended.code) : text;
}

// A backend whose library wants a launcher of its own.
void skip_unavailable(const Ended& ended) {
  if (ended.code == ORR_UNAVAILABLE && !ended.late)
    throw Skip("it does not work among ranks that this program starts");
}

// The body succeeds on each of these numbers of ranks.
Test succeeds(const char* name, const char* contract, const char* body, std::vector<int> sizes,
              int seconds = 240) {
  return {name, seconds, [=](const Subject& subject) {
            caps_of(subject);
            for (int ranks : sizes) {
              const Ended ended = run_ranks(subject, ranks, body, "", "20", seconds);
              skip_unavailable(ended);
              if (ended.code != 0 || ended.late)
                throw Fault(contract, fmt::format("success on {} ranks", ranks),
                            ended.late ? "ranks that still ran" : words_of(ended));
            }
          }};
}

// How many ranks said `word` in the sentence that they ended with: "rank 1: <sentence>", behind the
// launcher's mark of the rank.
int speakers(const std::string& output, const std::string& word) {
  std::istringstream lines(output);
  std::set<int> ranks;
  for (std::string line; std::getline(lines, line);) {
    int rank = -1, at = 0;
    const char* text = line.c_str();
    if (std::sscanf(text, "[rank %*d] rank %d: %n", &rank, &at) != 1)
      std::sscanf(text, "rank %d: %n", &rank, &at);
    if (rank >= 0 && line.find(word, static_cast<size_t>(at)) != std::string::npos)
      ranks.insert(rank);
  }
  return static_cast<int>(ranks.size());
}

struct Trouble {
  const char *body, *argument, *deadline;
  int ranks;
  std::string words;  // of every survivor
  int speakers;
  int code;         // of the job; 0: any failure
  double patience;  // seconds
};

void expect_trouble(const Subject& subject, const char* contract, const Trouble& t) {
  const Ended ended = run_ranks(subject, t.ranks, t.body, t.argument, t.deadline,
                                static_cast<int>(t.patience) + 10);
  const std::string expected = fmt::format("\"{}\" from {} of {} ranks, within {} s", t.words,
                                           t.speakers, t.ranks, t.patience);
  skip_unavailable(ended);
  if (ended.late || ended.seconds > t.patience)
    throw Fault(contract, expected, fmt::format("no end after {:.0f} s", ended.seconds));
  if (ended.code == 0) throw Fault(contract, expected, "success");
  if (t.code && ended.code != t.code)
    throw Fault(contract, fmt::format("{}, and code {}", expected, t.code),
                fmt::format("code {}: {}", ended.code, words_of(ended)));
  if (speakers(ended.output, t.words) < t.speakers)
    throw Fault(contract, expected, words_of(ended));
}

Test troubles(const char* name, const char* contract, std::vector<Trouble> cases) {
  return {name, 120, [=](const Subject& subject) {
            caps_of(subject);
            for (const Trouble& t : cases) expect_trouble(subject, contract, t);
          }};
}

std::string stop() { return std::to_string(SIGSTOP) + " 100"; }

std::vector<Test> trouble_tests() {
  static const std::string stopped = stop();
  return {
      troubles(
          "comm.peer_dies",
          "comm.h: \"When it passes, or a peer dies, the call returns\" with the culprit's rank",
          {{"falls", "9 100000", "8", 2, "rank 1", 1, 137, 11},
           {"falls", "9 100000", "8", 4, "rank 3", 3, 137, 11}}),
      troubles("comm.peer_freezes", waiting,
               {{"falls", stopped.c_str(), "1", 3, "rank 2", 1, 0, 11}}),
      troubles("comm.deadlock", waiting, {{"embrace", "", "1", 2, "rank", 1, ORR_DEADLINE, 7}}),
      troubles("comm.deadline", waiting, {{"late", "4000", "1", 3, "rank 1", 2, 0, 8}}),
      troubles("comm.mismatch", "comm.h: \"All ranks post the same operations in the same order\"",
               {{"otherwise", "count", "5", 3, "all_reduce", 3, 0, 11},
                {"otherwise", "operation", "5", 3, "all_reduce", 2, 0, 11}})};
}

}  // namespace

std::vector<Test> comm_tests() {
  std::vector<Test> tests = {
      {"comm.probe", 10, probe},
      {"comm.exact_structs", 10, exact_structs},
      {"comm.longer_structs", 10, longer_structs},
      succeeds("comm.collectives", "comm.h: operations, against one element at a time",
               "collectives", {1, 2, 3, 4, 5}),
      succeeds("comm.empty_parts", "types.h: orr_buffer.memory, \"NULL only where bytes is 0\"",
               "empties", {1, 2, 3}),
      succeeds("comm.splits", "comm.h: \"ranks with equal color >= 0 form one communicator\"",
               "splits", {1, 2, 3, 4, 5}),
      succeeds("comm.siblings", "comm.h: split, many communicators at once", "siblings", {4}),
      succeeds("comm.several_at_once",
               "comm.h: \"an operation must not wait for one of another communicator\"",
               "several at once", {2, 3, 4}),
      succeeds("comm.shared", "comm.h: allocate_shared", "shared", {1, 2, 3, 4, 5}),
      succeeds("comm.messages", "comm.h: ORR_COLL_SEND, ORR_COLL_RECV", "pairs", {2, 3, 4}),
      succeeds("comm.any_source", "comm.h: ORR_COMM_ANY_SOURCE", "any source", {2, 4}),
      succeeds("comm.buffers", "comm.h: \"buffers are borrowed until the work is done\"", "reuses",
               {2}),
      succeeds("comm.refusals", "comm.h: a wrong descriptor moves nothing", "refused", {2}),
      succeeds("comm.leaks", "comm.h: \"frees the handle\"", "steps", {2}),
      succeeds("comm.abort_from_a_thread", "comm.h: abort, \"[any thread]\"", "is aborted", {2}),
      troubles("comm.abort", "comm.h: \"pending and later calls end with ORR_RETRY and `reason`\"",
               {{"gives up", "", "10", 3, "loss is not finite", 3, ORR_RETRY, 9}})};
  for (Test& test : trouble_tests()) tests.push_back(std::move(test));
  return tests;
}

int start_ranks(const Subject& subject, int ranks, const std::string& body,
                const std::string& argument) {
  pinning() = {.on = false, .asked = false};  // other tests run beside
  return launch({ranks,
                 {"orrery check", subject.path.string(), "--body", body, "--argument", argument,
                  "--seed", std::to_string(subject.seed)},
                 "",
                 0});
}

int run_body(const Subject& subject, const std::string& name, const std::string& argument) {
  registry_with(subject);
  comm_suite::data_seed = subject.seed;
  for (const comm_suite::NamedBody& body : comm_suite::all_bodies()) {
    if (body.name != name) continue;
    try {
      return body.run(subject.name(), argument);
    } catch (const Error& e) {
      fmt::print(stderr, "rank {}: {}\n", detect().rank, e.what());
      return e.code();
    }
  }
  fail(ORR_INVALID, "there is no body '{}'", name);
}

}  // namespace orrery::judge
