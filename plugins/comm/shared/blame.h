// SPDX-License-Identifier: Apache-2.0
//
// Ranks that do not come are asked over the job's store, apart from the backend, before one of them
// is blamed: who is at work of its own is waited for.
#pragma once

#include <orrery/comm.h>

#include <string>
#include <vector>

namespace shared {

// Whom to blame of all who may be absent in the operation under way (null: while communicators
// form) of a communicator whose ranks are `world_of`, and have been waited for so long: "rank 2 has
// not answered for 30 s", with what it is at if it lives and has taken longer than it may. `silent`
// have not said that they wait, too; where all have, two of them wait for each other. "" if all are
// to be waited for. Where nobody can be asked all are named: one that froze may have muted others.
std::string judge_wait(const orr_comm_boot& boot, const std::vector<int>& silent, int64_t waited_ns,
                       const orr_coll* current, const std::vector<int>& world_of);

// A wait of this rank for others, of which the job's store learns: others that wait for this rank,
// and ask, are told that it is not at work. Counts its own looking time only: a pause of this very
// process is no sign against its peers.
class Wait {
 public:
  // `current`: the operation that it belongs to; null: while communicators form.
  Wait(const orr_comm_boot& boot, const orr_coll* current);
  ~Wait();
  Wait(const Wait&) = delete;
  // Somebody who is waited for has shown a sign of life.
  void begin_anew();
  // To be called again and again while `rank` is waited for. At each deadline all ranks are asked:
  // says whom to blame then, or that two wait for each other; "": to be waited on.
  std::string look(int rank);

 private:
  const orr_comm_boot& boot_;
  const orr_coll* current_;
  const int64_t deadline_;
  int64_t last_, waited_ = 0, allowed_;
  bool told_ = false;  // that this rank waits
};

// Tells all ranks why the world has ended; the first reason counts.
void tell_end(const orr_comm_boot& boot, int32_t code, const std::string& why);
// The code of that reason, and the reason itself; 0 while there is none.
int32_t told_end(const orr_comm_boot& boot, std::string& why);

// When a rank that waits asks the others whether they wait, too, and when it judges by their
// answers: at each deadline, and some time later.
class Patience {
 public:
  enum Step { wait, ask, judge };
  Step step(int64_t waited_ns, int64_t deadline_ns);
  // How long it had waited when it last asked, in whole deadlines.
  int64_t waited_ns() const { return waited_ns_; }

 private:
  bool asked_ = false;
  int64_t at_ns_ = 0;  // when it has asked, or before which it does not ask again
  int64_t waited_ns_ = 0;
};
// The operation's own, or the communicator's.
int64_t deadline_of(const orr_coll* current, const orr_comm_boot& boot);

// The first of `ranks` to have ended, -1 if none has: why the others have.
template <class Ranks>
int first_dead(const orr_comm_boot& boot, const Ranks& ranks) {
  int first = -1, place = 0;
  for (int r : ranks) {
    const int at = r == boot.rank ? 0 : boot.dead(boot.store, r);
    if (at != 0 && (first < 0 || at < place)) first = r, place = at;
  }
  return first;
}

}  // namespace shared
