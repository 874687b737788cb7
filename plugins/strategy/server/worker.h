// SPDX-License-Identifier: Apache-2.0
//
// This rank's part where no step is common to all: as a worker, which computes gradients of its
// leaves, pushes them to the servers and pulls weights; and as a server, if it is one.
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
  struct Link {                        // to one server
    std::unique_ptr<Channel> channel;  // null: it is on this rank
    orr::PackedStates values, weights;
    std::vector<std::byte> outgoing;  // values, range by range
    int64_t version = 0;              // of the weights here
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
  std::vector<int32_t> pieces_;       // of this rank: one for each range of leaves that it pushes
  std::vector<Link> links_;           // by server
  std::unique_ptr<Reactor> reactor_;  // null: this rank is no server
  std::vector<std::unique_ptr<Channel>> channels_;  // of the reactor, by rank
  std::vector<std::unique_ptr<Handler>> handlers_;
  bool open_ = false, pending_ = false;    // pending: gradients that are not pushed yet
  int64_t begun_at_ = 0, clock_ = 0;       // steps before this session; of it
  uint64_t pushes_ = 0, asked_again_ = 0;  // of this session
  Facts facts_;                            // of the newest step
  uint64_t predicted_ = 0;
};

}  // namespace server
