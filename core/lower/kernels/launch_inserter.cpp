// SPDX-License-Identifier: Apache-2.0
#include "lower/kernels/launch_inserter.h"

#include <algorithm>

#include "base/error.h"

namespace orrery {

// Notes who writes which storage now. Launches that are added later write only storages that are
// made later, and a storage that is moved is moved into one of those.
LaunchInserter::LaunchInserter(RankPlan& plan, const MovedStorages& moves)
    : plan_(plan), moves_(moves) {
  makers_.resize(plan_.storages.size(), {Step::wait, Segment::backward, kNone});
  const auto note = [&](const Place& at, const Step& s) {
    if (at.storage == kNone) return;
    Step& first = makers_[static_cast<size_t>(at.storage)];
    if (first.index == kNone) first = s;
  };
  for (const Step& s : plan_.order) {
    if (s.kind == Step::post)
      note(plan_.exchanges[static_cast<size_t>(s.index)].recv, s);
    else
      for (const Place& at : plan_.launches[static_cast<size_t>(s.index)].out_at) note(at, s);
  }
}

// Whether a step is the first one that writes the storage; of a storage that was made later,
// whether it writes it at all.
bool LaunchInserter::writes(const Step& s, int storage) const {
  if (static_cast<size_t>(storage) < makers_.size()) {
    const Step& first = makers_[static_cast<size_t>(storage)];
    return s.kind == first.kind && s.index == first.index;
  }
  if (s.kind == Step::post)
    return moves_.moved(plan_.exchanges[static_cast<size_t>(s.index)].recv.storage) == storage;
  const std::vector<Place>& out = plan_.launches[static_cast<size_t>(s.index)].out_at;
  return std::any_of(out.begin(), out.end(),
                     [&](const Place& at) { return moves_.moved(at.storage) == storage; });
}

// The index in the plan's order of the first step that writes the storage.
size_t LaunchInserter::maker_of(int storage) const {
  const auto at = std::find_if(plan_.order.begin(), plan_.order.end(),
                               [&](const Step& s) { return writes(s, storage); });
  if (at == plan_.order.end()) fail(ORR_FAILED, "nothing writes a sum of the batch");
  return static_cast<size_t>(at - plan_.order.begin());
}

// Where launches are put that read what this step of the order makes. Behind a launch: after those
// that were added there before. Behind an exchange that receives pieces: just before the next such
// exchange of the action, so that it has time to arrive.
size_t LaunchInserter::place_behind(size_t maker) const {
  const Step& made = plan_.order[maker];
  size_t next = maker + 1;
  for (; next < plan_.order.size(); ++next) {
    const Step& s = plan_.order[next];
    if (made.kind == Step::launch && !added_.count(s.kind == Step::launch ? s.index : kNone)) break;
    if (made.kind == Step::post && s.kind == Step::post && s.segment == made.segment &&
        s.chunk == made.chunk &&
        plan_.exchanges[static_cast<size_t>(s.index)].op ==
            plan_.exchanges[static_cast<size_t>(made.index)].op)
      break;
  }
  return next;
}

void LaunchInserter::behind_maker(int storage, const Add& add) {
  const size_t maker = maker_of(storage);
  const auto after = static_cast<int64_t>(place_behind(maker)),
             end = static_cast<int64_t>(plan_.order.size());
  const Step step = plan_.order[maker];
  Launcher launcher(plan_);
  launcher.at(step.segment, step.chunk);
  Op op;
  op.phase = Phase::backward;
  if (step.kind == Step::launch)
    op = plan_.launches[static_cast<size_t>(step.index)].op;
  else
    op.site.line = plan_.exchanges[static_cast<size_t>(step.index)].where;
  add(launcher, op);
  for (auto s = plan_.order.begin() + end; s != plan_.order.end(); ++s) added_.insert(s->index);
  std::rotate(plan_.order.begin() + after, plan_.order.begin() + end, plan_.order.end());
}

}  // namespace orrery
