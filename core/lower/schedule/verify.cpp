// SPDX-License-Identifier: Apache-2.0
//
// Checks a plan before its first step: nothing is read before it is written, storages that are
// alive together share no bytes, every exchange is awaited and its memory not touched in between,
// and every bucket is sent once.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "lower/lower.h"

namespace orrery {
namespace {

[[noreturn]] void broken(const Launch& l, const std::string& what) {
  fail(ORR_FAILED, "{}{}: the plan is wrong: {}", l.op.site.prefix(), l.op.kind, what);
}

class Verifier {
 public:
  explicit Verifier(const RankPlan& plan)
      : plan_(plan), calls_(static_cast<size_t>(plan.local.microbatches.calls())) {
    written_.resize(plan.storages.size() * calls_);
    for (const Exchange& e : plan.exchanges)
      if (e.is_bucket() && !e.axis.empty() && !plan.local.microbatches.one_by_one)
        open_.insert(e.send.storage);
  }

  void run() {
    for (const Step& s : plan_.schedule) {
      if (s.kind == Step::launch)
        launch(s);
      else if (s.kind == Step::post)
        post(s);
      else
        wait(s);
    }
    if (!travelling_.empty())
      fail(ORR_FAILED, "the plan never waits for {}", travelling_.begin()->second);
    for (size_t e = 0; e < plan_.exchanges.size(); ++e) {
      const Exchange& b = plan_.exchanges[e];
      if (b.is_bucket() && !b.axis.empty() && posts_[static_cast<int>(e)] != 1)
        fail(ORR_FAILED, "the plan posts {} {} times", b.name, posts_[static_cast<int>(e)]);
    }
    for (Region region : {Region::arena, Region::comm, Region::host, Region::disk})
      overlaps(region);
  }

 private:
  using Copy = std::pair<int, int>;  // storage, microbatch

  Copy copy(const Place& x, const Step& s) const {
    return {x.storage, plan_.storage(x.storage).by == Slots::ring ? s.microbatch : 0};
  }

  size_t index(const Copy& c) const {
    return static_cast<size_t>(c.first) * calls_ + static_cast<size_t>(c.second);
  }

  bool is_written(const Copy& c) const {
    const Storage& s = plan_.storage(c.first);
    return s.category == "input" || s.region == Region::state || written_[index(c)];
  }

  // The name of the exchange that uses this memory at the moment, or null. Where microbatches run
  // in a call each, a bucket is sent when all of it is complete, so the verifier does not
  // distinguish its slots.
  const std::string* on_its_way(const Copy& c) const {
    auto at = travelling_.find(c);
    return at == travelling_.end() ? nullptr : &at->second;
  }

  void launch(const Step& s) {
    const Launch& l = plan_.launches[static_cast<size_t>(s.index)];
    for (const Place& x : l.in_at) {
      if (!is_written(copy(x, s))) broken(l, "it reads what nobody wrote");
      if (auto* name = on_its_way(copy(x, s))) broken(l, "it reads " + *name + " on its way");
      if (open_.count(x.storage)) broken(l, "it reads a sum that lacks what other ranks add");
    }
    for (const Place& x : l.out_at) {
      if (auto* name = on_its_way(copy(x, s))) broken(l, "it writes " + *name + " on its way");
      written_[index(copy(x, s))] = true;
    }
  }

  // Checks a post. Two exchanges may send the same memory, but none may receive into memory that
  // another one uses.
  void post(const Step& s) {
    const Exchange& e = plan_.exchanges[static_cast<size_t>(s.index)];
    ++posts_[s.index];
    if (e.send.storage != kNone && e.nodes > 0 && !is_written(copy(e.send, s)))
      fail(ORR_FAILED, "the plan sends {} empty", e.name);
    for (const Place* x : {&e.send, &e.recv}) {
      if (x->storage == kNone) continue;
      if (auto* name = on_its_way(copy(*x, s)); name && (x == &e.recv || *name != e.name))
        fail(ORR_FAILED, "the plan posts {} {}", e.name,
             *name == e.name ? "twice" : "into " + *name + " on its way");
    }
    if (e.send.storage != kNone) travelling_[copy(e.send, s)] = e.name;
    if (e.recv.storage != kNone) {
      travelling_[copy(e.recv, s)] = e.name;
      written_[index(copy(e.recv, s))] = true;
    }
  }

  void wait(const Step& s) {
    const Exchange& e = plan_.exchanges[static_cast<size_t>(s.index)];
    size_t known = 0;
    if (e.send.storage != kNone) known += travelling_.erase(copy(e.send, s));
    if (e.recv.storage != kNone) known += travelling_.erase(copy(e.recv, s));
    if (e.is_bucket()) open_.erase(e.send.storage);
    if (!known) fail(ORR_FAILED, "the plan waits for {} before it is posted", e.name);
  }

  // Goes through the steps with the storages that are alive, by offset: a new one may only meet its
  // neighbours.
  void overlaps(Region region) const {
    std::vector<std::tuple<int, int, const Storage*>> spans;  // from, to
    for (const Storage& s : plan_.storages)
      if (s.region == region && s.bytes)
        for (auto [from, to] : s.alive) spans.emplace_back(from, to, &s);
    std::sort(spans.begin(), spans.end());
    std::map<uint64_t, const Storage*> here;
    std::multimap<int, const Storage*> ends;
    for (const auto& [from, to, s] : spans) {
      for (; !ends.empty() && ends.begin()->first < from; ends.erase(ends.begin()))
        here.erase(ends.begin()->second->offset);
      const auto [at, alone] = here.emplace(s->offset, s);
      const auto next = std::next(at);
      if (!alone || (next != here.end() && next->first < s->offset + s->whole()) ||
          (at != here.begin() && s->offset < std::prev(at)->first + std::prev(at)->second->whole()))
        fail(ORR_FAILED, "the memory plan gives the same bytes to two living tensors");
      ends.emplace(to, s);
    }
  }

  const RankPlan& plan_;
  size_t calls_;
  std::vector<bool> written_;  // by index(copy)
  std::map<Copy, std::string> travelling_;
  std::map<int, int> posts_;
  // Storages of buckets that are not awaited yet, where all microbatches run in one call.
  std::set<int> open_;
};

}  // namespace

void verify(const RankPlan& plan) { Verifier(plan).run(); }

}  // namespace orrery
