// SPDX-License-Identifier: Apache-2.0
#include "run/telling.h"

#include <utility>

#include "run/runtime.h"

namespace orrery {

using Clock = std::chrono::steady_clock;

void Telling::begin(int64_t step, bool by_driver) {
  begin_ = Clock::now();
  wanted_ = by_driver ? 0 : Runtime::get().observers().wants(step);
}

void Telling::tell_lanes(int64_t step, const Variant& variant) {
  Observers& to = Runtime::get().observers();
  const double loading = data_mark_.end - data_mark_.begin;
  if (spans()) {
    spans_.send(variant.plan(), step, to);
    orr_event_record data{};
    data.kind = ORR_EVENT_SPAN, data.step = step, data.lane = ORR_LANE_DATA;
    data.time = data_mark_.begin, data.seconds = loading;
    data.text = "batch", data.microbatch = -1;
    to.send(data);
  }
  to.metric(step, "data_seconds", loading);
}

void Telling::end(int64_t step, const RunSpec& spec, const Variant* variant,
                  const BatchFields& batch, const std::map<std::string, double>& scalars,
                  StepResult& result, const Counters& counters) {
  const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
  Runtime& runtime = Runtime::get();
  Observers& to = runtime.observers();
  const auto number = [&](const char* name, auto value) {
    to.metric(step, name, static_cast<double>(value));
  };
  const uint64_t sent = counters.bytes_sent - std::exchange(sent_, counters.bytes_sent);
  if (variant) {
    tell_lanes(step, *variant);
    if (runtime.world().size > 1) number("bytes_sent", sent);
    number("arena_bytes", runtime.arena().bytes());
  }
  if (wants_tensors()) {
    tell_tensors(spec.params, step, runtime);
    tell_gradients(result, to);
  }
  for (const std::string& name : result.names()) to.metric(step, name, result.get(name));
  if (const double waited = std::exchange(waited_, counters.checkpoint_seconds);
      counters.checkpoint_seconds > waited)
    number("checkpoint_seconds", counters.checkpoint_seconds - waited);
  vitals_.tell(step, seconds, batch, scalars, to);
  to.step_end(step, seconds);
}

}  // namespace orrery
