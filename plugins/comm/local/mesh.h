// SPDX-License-Identifier: Apache-2.0
//
// Messages between any two ranks of a world that spans hosts. All communicators share the channels;
// a message names the lane that it belongs to, and one that comes before it is wanted is set aside.
#pragma once

#include <orrery/comm.h>

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "../shared/blame.h"
#include "channel.h"
#include "doors.h"
#include "notes.h"

namespace local {

struct Family;

// Messages of one lane, kind and tag between two ranks keep their order.
enum Kind : int32_t { card = 1, piece = 2, envelope = 3, body = 4 };

// Precedes the bytes of every message.
struct Head {
  uint64_t bytes, lane;
  int32_t kind, tag;
};

// One end of a message. Peers are world ranks.
struct Request {
  const orr_coll* coll;  // that it belongs to
  int peer;
  bool sends;
  Head head;
  char* data;
  bool begun = false, done = false;
  uint64_t moved = 0;  // bytes; when sending, of the head too
};

// What a wait has asked the other ranks.
struct Question {
  shared::Patience patience;
  int64_t asked_ns = 0;
};

// Several communicators may be under way at once, each on a thread of its own: one at a time looks
// after the channels, and takes what comes for the others.
class Mesh {
 public:
  // Takes over the lines.
  Mesh(Family& family, const std::vector<Line>& lines);

  // Starts all requests together and returns when all are done. `check` is called whenever some
  // have moved. Throws when a peer is lost.
  void run(std::vector<Request>& all, const std::function<void()>& check);

  // What every wait does now and then: `who` is waited for since `waited` ns, and nothing has
  // moved. Throws when the world is dead or when it is time to blame a rank. Returns one that has
  // died, or -1: what it sent before may still be on its way. `question` is the wait's own. [any
  // thread]
  int look_around(int who, const orr_coll* current, int64_t waited, Question& question);
  // Takes what others have told. [any thread]
  void listen();
  void tell_end(int32_t code, const std::string& text) { notes_.tell_end(code, text); }

 private:
  struct Stray {
    Head head;
    std::vector<char> bytes;
    bool complete = false;
  };
  // The message that is coming in from one peer, what has been read ahead, and the strays before
  // it.
  struct Inbound {
    bool open = false;
    Head head{};
    uint64_t got = 0;
    char* to = nullptr;
    Request* request = nullptr;  // else the last stray
    std::list<Stray> strays;
    std::vector<char> ahead;
    size_t begin = 0, end = 0;
  };

  void move(std::vector<Request>& all, const std::function<void()>& check);
  bool progress(std::vector<Request>& all);
  bool push(int peer, std::vector<Request>& all);
  bool pull(int peer, std::vector<Request>& all);
  bool take_strays(int peer, std::vector<Request>& all, bool& wanted);
  bool open_message(int peer, std::vector<Request>& all);
  bool fetch(int peer);
  bool fill(int peer);
  void sleep(const std::vector<Request>& all);
  void blame(int who, const orr_coll* current, const Question& question);

  Family& family_;
  Notes notes_;
  std::vector<std::unique_ptr<Channel>> channels_;  // by world rank
  std::atomic<int> lost_{-1};                       // a rank that has died
  std::atomic<int> running_{0};                     // communicators under way
  std::mutex mutex_;                                // for what follows, and all requests under way
  std::vector<Inbound> inbound_;
  std::vector<const std::vector<Request>*> writer_;  // whose message to a peer has left in part
  bool failed_ = false;                              // requests under way may be gone
};

}  // namespace local
