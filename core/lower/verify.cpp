// SPDX-License-Identifier: Apache-2.0
//
// Proves a plan before its first step: nothing is read before it is written, nothing that is alive
// shares bytes, every bucket is posted once, awaited once and not touched in between.
#include <map>
#include <set>

#include "base/error.h"
#include "lower/lower.h"

namespace orrery {
namespace {

[[noreturn]] void broken(const Launch& l, const std::string& what) {
  fail(ORR_FAILED, "{}{}: the plan is wrong: {}", l.op.site.prefix(), l.op.kind, what);
}

class Verifier {
 public:
  explicit Verifier(const RankPlan& plan) : plan_(plan) {
    for (size_t i = 0; i < plan.storages.size(); ++i)
      if (plan.storages[i].category == "input" || plan.storages[i].region == Region::state)
        written_.insert(static_cast<int>(i));
  }

  void run() {
    for (const Step& s : plan_.schedule) {
      if (s.kind == Step::launch) launch(plan_.launches[static_cast<size_t>(s.index)]);
      else bucket(s);
    }
    if (!travelling_.empty()) fail(ORR_FAILED, "the plan never waits for {}", travelling_.begin()->second);
    if (posts_ != plan_.buckets.size()) fail(ORR_FAILED, "the plan posts {} of {} buckets", posts_, plan_.buckets.size());
    overlaps();
  }

 private:
  void launch(const Launch& l) {
    for (const Place& x : l.in_at) {
      if (!written_.count(x.storage)) broken(l, "it reads what nobody wrote");
      if (travelling_.count(x.storage)) broken(l, "it reads " + travelling_[x.storage] + " on its way");
    }
    for (const Place& x : l.out_at) {
      if (travelling_.count(x.storage)) broken(l, "it writes " + travelling_[x.storage] + " on its way");
      written_.insert(x.storage);
    }
  }

  void bucket(const Step& s) {
    const Bucket& b = plan_.buckets[static_cast<size_t>(s.index)];
    if (s.kind == Step::post) {
      ++posts_;
      if (!written_.count(b.storage)) fail(ORR_FAILED, "the plan sends {} empty", b.name);
      if (!travelling_.emplace(b.storage, b.name).second) fail(ORR_FAILED, "the plan posts {} twice", b.name);
    } else if (!travelling_.erase(b.storage)) {
      fail(ORR_FAILED, "the plan waits for {} before it is posted", b.name);
    }
  }

  void overlaps() const {
    std::multimap<uint64_t, const Storage*> by_offset;
    for (const Storage& s : plan_.storages)
      if (s.region == Region::arena && s.bytes && s.last >= 0) by_offset.emplace(s.offset, &s);
    for (auto a = by_offset.begin(); a != by_offset.end(); ++a)
      for (auto b = std::next(a); b != by_offset.end() && b->first < a->first + a->second->bytes; ++b)
        if (a->second->first <= b->second->last && b->second->first <= a->second->last)
          fail(ORR_FAILED, "the memory plan gives the same bytes to two living tensors");
  }

  const RankPlan& plan_;
  std::set<int> written_;
  std::map<int, std::string> travelling_;
  size_t posts_ = 0;
};

}  // namespace

void verify(const RankPlan& plan) { Verifier(plan).run(); }

}  // namespace orrery
