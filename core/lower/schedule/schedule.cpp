// SPDX-License-Identifier: Apache-2.0
//
// Orders the steps of the lanes. The compute lane follows the program, or its actions one
// microbatch after another (order_one_by_one). A bucket is posted as soon as its last member is
// complete. The update is reordered, so that steps that need only early buckets run while later
// ones still travel. Waits are added at the end: one before the first step that touches memory that
// is in use by an exchange.
#include <algorithm>
#include <map>
#include <utility>

#include "lower/lower.h"
#include "lower/schedule/touched.h"

namespace orrery {
namespace {

bool travels(const Exchange& e) { return !e.axis.empty(); }

// Orders forward and backward where all microbatches run in one call.
void order_one_call(RankPlan& plan) {
  for (const Step& s : plan.order)
    if (s.segment != Segment::update) plan.schedule.push_back(s);
}

// Posts each bucket after the last step that writes it.
void post_buckets(RankPlan& plan) {
  std::map<int, size_t> last_write;
  for (size_t i = 0; i < plan.schedule.size(); ++i)
    if (plan.schedule[i].kind == Step::launch)
      for (const Place& x : plan.launches[static_cast<size_t>(plan.schedule[i].index)].out_at)
        last_write[x.storage] = i;
  std::multimap<size_t, int> after;
  for (size_t e = 0; e < plan.exchanges.size(); ++e)
    if (plan.exchanges[e].is_bucket() && travels(plan.exchanges[e]))
      after.emplace(last_write.at(plan.exchanges[e].send.storage), static_cast<int>(e));
  std::vector<Step> steps, waiting;
  for (size_t i = 0; i < plan.schedule.size(); ++i) {
    steps.push_back(plan.schedule[i]);
    auto [begin, end] = after.equal_range(i);
    for (auto e = begin; e != end; ++e) {
      steps.push_back({Step::post, plan.schedule[i].segment, e->second});
      // Buckets with reused memory are awaited at the same place on all ranks, because registered
      // memory has the same layout everywhere: one bucket travels while the next is filled.
      if (!plan.storage(plan.exchanges[static_cast<size_t>(e->second)].send.storage).reused)
        continue;
      steps.insert(steps.end(), waiting.begin(), waiting.end());
      waiting = {{Step::wait, Segment::backward, e->second}};
    }
  }
  steps.insert(steps.end(), waiting.begin(), waiting.end());
  plan.schedule = std::move(steps);
}

// Removes the work on samples from the plan of a rank without microbatches. It takes part in the
// exchanges in the same order as the others, and computes what needs no sample.
void drop_samples(RankPlan& plan) {
  std::erase_if(plan.schedule, [](const Step& s) {
    return s.kind == Step::launch && s.segment != Segment::prologue && s.segment != Segment::update;
  });
}

// Sorts the update by the last bucket that each step needs. Exchanges keep their order.
void order_update(RankPlan& plan) {
  std::map<int, int> written, used;  // storage -> bucket that its last writer, or any user, needs
  int bucket = 0, posted = -1;
  for (const Step& s : plan.schedule)
    if (s.kind == Step::post && plan.exchanges[static_cast<size_t>(s.index)].is_bucket())
      written[plan.exchanges[static_cast<size_t>(s.index)].send.storage] = bucket++;
  auto level = [](const std::map<int, int>& m, int storage) {
    auto at = m.find(storage);
    return at == m.end() ? -1 : at->second;
  };
  std::vector<std::pair<int, Step>> update;
  for (const Step& s : plan.order) {
    if (s.segment != Segment::update) continue;
    int need = s.kind == Step::post ? posted : -1;
    each_touched(
        plan, s, [&](int x) { need = std::max(need, level(written, x)); },
        [&](int x) {
          need = std::max({need, level(used, x), level(written, x)});
        });
    each_touched(
        plan, s, [&](int x) { used[x] = std::max(level(used, x), need); },
        [&](int x) { written[x] = std::max(level(written, x), need); });
    if (s.kind == Step::post) posted = need;
    update.emplace_back(need, s);
  }
  std::stable_sort(update.begin(), update.end(),
                   [](auto& a, auto& b) { return a.first < b.first; });
  for (auto& [need, s] : update) plan.schedule.push_back(s);
}

// The slot of a storage that a step uses, as if there were a slot for every microbatch: how many
// there are is not known yet.
int instance(const Storage& s, const Step& step) {
  return s.by == Slots::ring ? step.microbatch : s.by == Slots::stack ? step.depth : 0;
}

void insert_waits(RankPlan& plan) {
  const size_t calls = static_cast<size_t>(plan.local.microbatches.calls());
  std::map<std::pair<int, int>, std::vector<Step>> travelling;  // (storage, instance) -> posts
  std::vector<char> ever(plan.storages.size());             // by storage: an exchange has used it
  std::vector<char> waited(plan.exchanges.size() * calls);  // by exchange and microbatch
  std::vector<Step> steps, posts;
  steps.reserve(plan.schedule.size() * 5 / 4);
  auto wait = [&](Step post, Segment segment) {
    char& done =
        waited[static_cast<size_t>(post.index) * calls + static_cast<size_t>(post.microbatch)];
    if (std::exchange(done, true)) return;
    post.kind = Step::wait, post.segment = segment;
    steps.push_back(post);
  };
  auto settle = [&](int storage, const Step& s) {
    if (!ever[static_cast<size_t>(storage)]) return;
    auto at = travelling.find({storage, instance(plan.storage(storage), s)});
    if (at == travelling.end()) return;
    for (const Step& post : at->second) wait(post, s.segment);
    travelling.erase(at);
  };
  for (const Step& s : plan.schedule) {
    if (s.kind == Step::wait) {
      wait(s, s.segment);
      continue;
    }
    auto before = [&](int x) { settle(x, s); };
    each_touched(plan, s, before, before);
    steps.push_back(s);
    if (s.kind != Step::post) continue;
    auto after = [&](int x) {
      ever[static_cast<size_t>(x)] = true;
      travelling[{x, instance(plan.storage(x), s)}].push_back(s);
    };
    each_touched(plan, s, after, after);
    posts.push_back(s);
  }
  for (const Step& post : posts) wait(post, Segment::update);
  plan.schedule = std::move(steps);
}

}  // namespace

void make_schedule(RankPlan& plan) {
  if (plan.local.microbatches.one_by_one)
    order_one_by_one(plan);
  else
    order_one_call(plan);
  post_buckets(plan);
  if (plan.local.microbatches.idle()) drop_samples(plan);
  order_update(plan);
  stream_states(plan);
  stash_activations(plan);
  insert_waits(plan);
}

}  // namespace orrery
