// SPDX-License-Identifier: Apache-2.0
//
// Messages between any two ranks of a world that spans hosts. All communicators share the sockets;
// a message names the lane that it belongs to, and one that comes before it is wanted is set aside.
#pragma once

#include <orrery/comm.h>

#include <atomic>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <vector>

namespace local {

struct Family;

// Messages of one lane, kind and tag between two ranks keep their order.
enum Kind : int32_t { card = 1, piece = 2, header = 3, body = 4 };

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

// Several communicators may be under way at once, each on a thread of its own: one at a time looks
// after the sockets, and takes what comes for the others.
class Mesh {
 public:
  // Takes over the sockets, by world rank.
  Mesh(Family& family, std::vector<int> sockets);
  ~Mesh();

  // Starts all requests together and returns when all are done. `check` is called whenever some
  // have moved. Throws when a peer is lost.
  void run(std::vector<Request>& all, const std::function<void()>& check);

 private:
  struct Stray {
    Head head;
    std::vector<char> bytes;
    bool complete = false;
  };
  // The message that is coming in from one peer, and the strays before it.
  struct Inbound {
    bool open = false;  // its head is there
    Head head{};
    uint64_t got = 0;  // bytes, of the head or behind it
    char* to = nullptr;
    Request* request = nullptr;  // else the last stray
    std::list<Stray> strays;
  };

  void move(std::vector<Request>& all, const std::function<void()>& check);
  bool progress(std::vector<Request>& all);
  bool push(int peer, std::vector<Request>& all);
  bool pull(int peer, std::vector<Request>& all);
  bool take_strays(int peer, std::vector<Request>& all, bool& wanted);
  bool open_message(int peer, std::vector<Request>& all);
  bool fetch(int peer);
  void sleep(const std::vector<Request>& all);
  uint64_t read(int peer, void* to, uint64_t bytes);

  Family& family_;
  const std::vector<int> sockets_;  // by world rank
  std::atomic<int> running_{0};     // communicators under way
  std::mutex mutex_;                // for what follows, and all requests under way
  std::vector<bool> ended_;         // no more will come from this rank
  std::vector<Inbound> inbound_;
  std::vector<const std::vector<Request>*> writer_;  // whose message to a peer has left in part
  bool failed_ = false;                              // requests under way may be gone
};

}  // namespace local
