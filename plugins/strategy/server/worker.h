// SPDX-License-Identifier: Apache-2.0
//
// What one rank does in the modes without a common step. As a worker it computes gradients of its
// leaves (microbatches), pushes them to the servers and pulls weights. If it is a server, it also
// runs the server.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "handler.h"

namespace server {

class Worker : public orr::Driver {
 public:
  explicit Worker(Pace pace) : pace_(std::move(pace)) {}

  void write(const orr::Program& step, const std::vector<int64_t>& leaf_first) override {
    shares_ = cut(step, pace_, leaf_first);
  }
  void open(const orr_driver_host& host) override;
  void step(const orr_driver_step& step, double* outputs) override;
  void settle() override;
  void stop(const std::string& why) override;
  uint64_t predicted() const override { return predicted_; }

 private:
  struct Link {                        // the worker's side of the connection to one server
    std::unique_ptr<Channel> channel;  // null: the server is on this rank
    orr::PackedStates values, weights;
    std::vector<std::byte> outgoing;  // the values of all ranges of leaves, one after another
    int64_t version = 0;              // of the weights that this rank has
  };
  bool works() const { return !pieces_.empty(); }
  std::string heading() const;
  void connect();
  void begin(int64_t steps_done);
  void compute(const orr_driver_step& step, double* outputs);
  void push();
  void push_to(Link& link);
  void pull(Arrival::Kind kind);
  int64_t weights_of(Link& link, Arrival::Kind kind, std::byte* to);
  uint64_t sent_in_session(uint64_t put_off) const;

  const Pace pace_;
  std::vector<Share> shares_;  // by server
  const orr_driver_host* host_ = nullptr;
  std::vector<int32_t> pieces_;       // pieces of the batch: one for each range that it pushes
  std::vector<Link> links_;           // by server
  std::unique_ptr<Reactor> reactor_;  // null: this rank is no server
  std::vector<std::unique_ptr<Channel>> channels_;  // by rank: the server's side of connections
  std::vector<std::unique_ptr<Handler>> handlers_;
  bool open_ = false;                      // a session is
  bool pending_ = false;                   // there are gradients that were not pushed
  int64_t begun_at_ = 0;                   // how many steps the run had done before this session
  int64_t clock_ = 0;                      // how many steps this rank has done in this session
  uint64_t pushes_ = 0, asked_again_ = 0;  // in this session
  Facts facts_;                            // of the newest step
  uint64_t predicted_ = 0;
};

}  // namespace server
