// SPDX-License-Identifier: Apache-2.0
//
// Training where no step is common to all: this rank's part as a worker, which computes gradients
// of its leaves, pushes them to the servers and pulls weights; and as a server, if it is one.
// Between sessions nobody is at work, and all ranks have equal weights. [main thread]
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "run/door.h"
#include "run/reactor.h"
#include "run/runtime.h"

namespace orrery {

// A worker's way to one server.
class Server {
 public:
  virtual ~Server() = default;
  virtual void push(int64_t clock, int64_t read, const Reactor::Facts& facts,
                    const std::vector<std::byte>& values) = 0;
  // As Reactor::weights.
  virtual int64_t weights(Arrival::Kind kind, int64_t clock, std::vector<std::byte>& to) = 0;
};

class Served : public AtWork, public std::enable_shared_from_this<Served> {
 public:
  // Collective. `heading`: what runs, equal on all ranks and in every run of the same; `scalars`:
  // the names of the numbers that a step is given.
  Served(const Blueprint& trained, std::vector<std::string> scalars, const std::string& heading,
         Runtime& runtime);

  // A worker's program for batches of another shape. [no peer takes part]
  bool knows(const std::string& shape) const { return steps_.count(shape) > 0; }
  void add(const std::string& shape, const Blueprint& trained);
  // What `orrery plan` shows of it: a worker's step.
  static Blueprint worker(const Blueprint& trained);

  // Step `step` (from 1) on this rank's leaves: the outputs that it has, NaN if it has no samples;
  // on a dedicated server, as soon as workers have done theirs, the mean of what they had.
  std::map<std::string, double> step(const std::string& shape, const BatchFields& batch,
                                     int64_t step, const std::map<std::string, double>& scalars);
  // How many samples of the batch are this rank's.
  int64_t samples(const std::string& shape, const BatchFields& batch) const;
  // Ends the session: what has been computed is pushed, all ranks get the weights. Collective.
  void drain() override;

  // How many messages this rank has sent in the sessions that have ended, by their bytes.
  const std::map<uint64_t, uint64_t>& messages() const { return messages_; }
  const std::string& strategy() const { return how_.cause; }

  uint64_t arena_bytes() const;  // of the largest of this worker's programs
  // Bytes that this rank has sent in those sessions.
  uint64_t sent() const { return sent_; }
  void abandon(const std::string& why) override;

 private:
  struct Link {                  // to one server
    std::unique_ptr<Line> line;  // null: it is on this rank
    std::unique_ptr<Server> server;
    Parcel values, weights;
    std::vector<std::byte> outgoing;  // values, range by range
    int64_t version = 0;              // of the weights here
  };
  bool works() const { return setting_.ranges[static_cast<size_t>(rank_)] > 0; }
  void hold_states(const Blueprint& trained, const std::vector<ServerShare>& shares);
  void connect(const std::vector<ServerShare>& shares, const std::vector<ValueId>& values);
  void begin(int64_t steps_done);
  Reactor::Facts compute(const std::string& shape, const BatchFields& batch, int64_t step,
                         const std::map<std::string, double>& scalars);
  void push();
  void pull(Arrival::Kind kind);
  void count(uint64_t times, uint64_t bytes) { messages_[bytes] += times; }
  void count_session(uint64_t put_off);

  Runtime& runtime_;
  Serving how_;
  int rank_, world_;
  Reactor::Setting setting_;
  StateList gradients_, served_;    // what the worker leaves for servers; all states of the program
  std::vector<uint64_t> versions_;  // of those, when the session began
  std::map<std::string, std::vector<std::unique_ptr<Variant>>>
      steps_;                                 // by shape: for each range of leaves
  std::vector<Link> links_;                   // by server
  std::unique_ptr<Reactor> reactor_;          // null: this rank is no server
  std::vector<std::unique_ptr<Line>> lines_;  // of the reactor, by rank
  std::vector<std::unique_ptr<Door>> doors_;
  bool open_ = false, pending_ = false;    // pending: gradients that are not pushed yet
  int64_t begun_at_ = 0, clock_ = 0;       // steps before this session; of it
  uint64_t pushes_ = 0, asked_again_ = 0;  // of this session
  Reactor::Facts facts_;
  uint64_t sent_ = 0, sent_before_ = 0;
  std::map<uint64_t, uint64_t> messages_;
};

}  // namespace orrery
