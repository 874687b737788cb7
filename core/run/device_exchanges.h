// SPDX-License-Identifier: Apache-2.0
//
// Exchanges of tensors that lie on a device, beside its compute. Each goes one of four ways:
// - staged: copied to pinned memory, sent and received there by the communication lane, copied
//   back;
// - ordered: enqueued on a stream by a backend that takes the device's memory, sums over the batch
//   as messages, with launches between them that fold;
// - moved: copied between the device and memory of the host, in stream order;
// - filed: staged on its way between the device and a file, by the copy lane.
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
  // `posted` belongs to the plan's exchanges, in order. REQUIRES: all four outlive this object.
  DeviceExchanges(const RankPlan& plan, std::vector<Posted>& posted, Runtime& runtime,
                  const Stream& compute);

  void begin();  // of a run [compute thread]
  void post(const Step& step);
  void wait(const Step& step);  // compute waits; the caller only for what the host must order
  // Returns when backends are done with all that was enqueued on streams; throws what they have
  // met.
  void finish();
  // After an error: ends what is under way, also on peers, and returns when nothing is pending any
  // more or it cannot be awaited.
  void abandon(const std::string& why) noexcept;

 private:
  enum class Way { staged, ordered, moved, filed };
  struct Flight {  // one microbatch's
    Event ready, out, done;
  };
  struct Carried {
    Way way = Way::staged;
    std::unique_ptr<DeviceSum> sum = nullptr;  // of an ordered one that the core composes
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
  // Towards the host and back, of the compute thread; of the communication lane; of the copy lane.
  Stream out_, back_, lane_, disk_;
  std::vector<Carried> carried_;
  orr_memory host_view_{};  // the staging as backends see it: ordinary memory
  bool enqueued_ = false, sent_ = false;
  CopyLane::Ticket filed_ = 0;  // the last
};

}  // namespace orrery
