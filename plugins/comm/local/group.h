// SPDX-License-Identifier: Apache-2.0
//
// A communicator. Operations run to completion in `run`, on the caller's thread:
//
//   group.cpp     forming: the world over the store, children over their parent
//   messages.cpp  messages between two ranks, and the collectives that are made of them
//   waiting.cpp   the one wait loop
//
// Whose ranks are all on one host is a Comm (comm.h), the others are Wide (wide.h): these say how
// bytes get from one rank to another, how to sleep until some come, and what a collective is.
#pragma once

#include <orrery/comm.h>
#include <sys/uio.h>

#include <atomic>
#include <functional>
#include <memory>
#include <orrery/sdk/exchange.hpp>
#include <string>
#include <vector>

#include "family.h"
#include "messages.h"

namespace local {

// Ranks a wait is for: the first rank >= from that is still awaited, or -1.
using Missing = std::function<int(int from)>;

class Group : public orr::exchange::Messenger {
 public:
  int rank() const { return rank_; }
  int size() const { return size_; }
  uint64_t bytes_sent() const { return bytes_sent_.load(std::memory_order_relaxed); }
  Family& family() const { return *family_; }

  void run(const orr_coll* ops, int n);
  virtual orr_memory* allocate(uint64_t bytes, bool shared) = 0;
  void free(orr_memory* memory);
  std::unique_ptr<Group> split(int32_t color, int32_t key);
  // Messages of the collective under way; for what collectives are made of (sdk/exchange.hpp).
  void exchange(const std::vector<orr::exchange::Message>& sends,
                const std::vector<orr::exchange::Message>& recvs) override;

 protected:
  Group(std::shared_ptr<Family> family, std::vector<int> world_of, int rank, uint64_t id);

  virtual void collective(const orr_coll& c) = 0;
  // Of these bytes for the peer, as many as there is room for; of what has come from it, up to so
  // many bytes, which nobody reads if `to` is null. They say how many.
  virtual uint64_t write(int peer, const iovec* from, int n) = 0;
  virtual uint64_t read(int peer, void* to, uint64_t bytes) = 0;
  // Where the peers can fetch these bytes; none: they travel in the stream.
  virtual Place place_of_message(const char*, uint64_t) const { return {}; }
  virtual void fetch_message(int, const Place&, void*, uint64_t) {}
  // Messages ever that the peer has fetched.
  virtual uint64_t fetched(int) const { return 0; }
  // Whether all ranks are known to post the collective under way.
  virtual bool agree() { return true; }

  // For waits.
  virtual bool spins() const { return false; }
  virtual uint64_t pulse_of(int) const { return 0; }
  virtual void show_pulse() {}
  virtual void ring_bells() {}
  virtual bool has_closed(int) const { return false; }
  virtual void sleep(const Missing& missing, int64_t ns) = 0;

  // waiting.cpp
  template <class F>
  bool spin(F&& missing, bool heard) const;
  void await_slowly(const Missing& missing);

  // messages.cpp
  Request& add(const orr_coll& c, int peer, bool sends, Kind kind, int64_t count, void* data);
  void exchange_all();

  // Every rank's word, by rank; `name` is what the operation is called.
  std::vector<int64_t> gather_words(int64_t mine, const char* name);
  // Throws unless all ranks allocate as much.
  void check_equal(uint64_t bytes);

  std::shared_ptr<Family> family_;
  std::vector<int> world_of_;  // by rank
  int rank_, size_;
  uint64_t id_;
  const orr_coll* current_ = nullptr;
  std::vector<bool> far_;          // ranks that share no CPU with this one
  std::vector<Request> requests_;  // under way

 private:
  // waiting.cpp
  bool all_far(const Missing& missing, int first) const;
  void blame_dead(const Missing& missing, int first);

  // messages.cpp
  void transfer(const orr_coll* ops, int n);
  int awaited_peer(int from);
  bool progress();
  bool push(int peer);
  bool pull(int peer);
  bool take_strays(int peer, bool& wanted);
  bool open_message(int peer);
  bool receive(int peer);
  [[noreturn]] void refuse(const Request& mine, const Stray& theirs);

  uint64_t children_ = 0;
  std::vector<Inbound> inbound_;
  std::vector<uint64_t> placed_;  // messages ever that stayed in place, by receiver
  std::atomic<uint64_t> bytes_sent_{0};
};

// Forms the world; collective.
std::unique_ptr<Group> form_world(const orr_comm_boot& boot);

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Whether nobody is awaited who needs this CPU.
inline bool Group::all_far(const Missing& missing, int first) const {
  for (int r = first; r >= 0; r = missing(r + 1))
    if (!far_[r]) return false;
  return true;
}

// Looks again before the CPU is given away: for some 25 us where every rank has its own, which it
// may share with its compute thread. Where ranks share CPUs, for some 1.5 us, about a switch of
// ranks, when those of this CPU are `heard`: they have come to the collective, or have just had it.
template <class F>
bool Group::spin(F&& missing, bool heard) const {
  const bool own = spins();
  const int looks = own ? 2000 : heard ? 50 : 0;
  for (int i = 0;; ++i) {
    const int first = missing(0);
    if (first < 0) return true;
    if (i == looks || !(own || all_far(missing, first))) return false;
    relax();
  }
}

}  // namespace local
