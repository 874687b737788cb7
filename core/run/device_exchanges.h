// SPDX-License-Identifier: Apache-2.0
//
// Carries out exchanges of tensors that lie on a device, while it computes. Each exchange goes one
// of four ways:
// - staged: it is copied to pinned memory, sent and received there by the communication lane, and
//   copied back;
// - ordered: a backend that works on the device's memory enqueues it on a stream; sums over the
//   batch are messages, with launches between them that add;
// - moved: it is copied between the device and memory of the host, in stream order;
// - filed: the copy lane copies it between the device and a file, through pinned memory.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "run/bound.h"
#include "run/device.h"
#include "run/device_sum.h"
#include "run/runtime.h"
#include "run/staging.h"

namespace orrery {

class DeviceExchanges {
 public:
  // `posted` has an entry for each of the plan's exchanges, in order. REQUIRES: all four outlive
  // this object.
  DeviceExchanges(const RankPlan& plan, std::vector<Posted>& posted, Runtime& runtime,
                  const Stream& compute);

  void begin();  // called when a run of the plan begins [compute thread]
  void post(const Step& step);
  // Makes the compute stream wait for the exchange. The caller waits only where the host carries
  // out a part of it.
  void wait(const Step& step);
  // Returns when backends are done with all work that they have enqueued on streams; throws their
  // errors.
  void finish();
  // After an error: aborts exchanges that are under way, also on peers. Returns when no work is
  // pending any more, or it cannot be awaited.
  void abandon(const std::string& why) noexcept;

 private:
  enum class Way { staged, ordered, moved, filed };
  struct Flight {  // the events of one microbatch's exchange
    Event ready, out, done;
  };
  struct Carried {
    Way way = Way::staged;
    std::unique_ptr<DeviceSum> sum = nullptr;  // for an ordered one that the core composes
    Bound send, recv;                          // in pinned memory, if it is staged
    StagedBytes bytes;
    std::vector<Flight> flights;
  };
  Carried carry(const Exchange& e, const Posted& p) const;
  void choose_way(Carried& c, const Exchange& e, const Posted& p) const;
  void lay_staging();
  void note() const;
  orr_buffer on_host(orr_buffer b) const;
  void stage(const Step& step, Carried& c, Posted& p, Flight& f);
  void enqueue(const Step& step, Carried& c, Posted& p, Flight& f);
  void move(const Step& step, Posted& p, Flight& f);

  const RankPlan& plan_;
  std::vector<Posted>& posted_;
  Runtime& runtime_;
  const Device& device_;
  const Stream& compute_;
  // Streams for copies of the compute thread to the host and back, for the communication lane, and
  // for the copy lane.
  Stream out_, back_, lane_, disk_;
  std::vector<Carried> carried_;
  orr_memory host_view_{};  // the staging as backends see it: ordinary memory
  bool enqueued_ = false, sent_ = false;
  CopyLane::Ticket filed_ = 0;  // of the last copy that was submitted
};

}  // namespace orrery
