// SPDX-License-Identifier: Apache-2.0
#include "run/recording.h"

#include "base/error.h"
#include "plugin/host.h"

namespace orrery {

Recording::Recording(const RankPlan& plan, const Device& device, const Stream& stream)
    : device_(device), stream_(stream), span_at_(plan.schedule.size(), kNone) {
  find_spans(plan);
}

Recording::~Recording() { forget(); }

// Recording a single launch would gain nothing.
void Recording::find_spans(const RankPlan& plan) {
  auto recordable = [&](size_t i) {
    const Step& s = plan.schedule[i];
    return s.kind == Step::launch && plan.launches[static_cast<size_t>(s.index)].capturable;
  };
  for (size_t i = 0; i < plan.schedule.size();) {
    size_t end = i;
    while (end < plan.schedule.size() && recordable(end)) ++end;
    if (end - i >= 2) {
      span_at_[i] = static_cast<int>(spans_.size());
      spans_.push_back({i, end});
    }
    i = std::max(end, i + 1);
  }
}

void Recording::forget() {
  for (Span& s : spans_) {
    if (s.graph) device_.api().graph_destroy(device_.api().self, s.graph);
    s.graph = nullptr;
  }
}

size_t Recording::play(size_t i, const std::function<void(size_t)>& launch) {
  if (!offered_ || span_at_[i] == kNone) return i;
  Span& span = spans_[static_cast<size_t>(span_at_[i])];
  if (!span.graph && !record(span, launch)) return i;
  check(device_.api().graph_launch(device_.api().self, span.graph, stream_.get()));
  return span.end;
}

bool Recording::record(Span& span, const std::function<void(size_t)>& launch) {
  const orr_device_api& api = device_.api();
  try {
    check(api.capture_begin(api.self, stream_.get()));
  } catch (const Error& e) {
    if (e.code() != ORR_UNIMPLEMENTED) throw;
    return offered_ = false;
  }
  try {
    for (size_t i = span.begin; i < span.end; ++i) launch(i);
  } catch (...) {
    orr_graph* part = nullptr;  // ends the recording, so that the stream works as before
    host_table().error_release(api.capture_end(api.self, stream_.get(), &part));
    if (part) api.graph_destroy(api.self, part);
    throw;
  }
  check(api.capture_end(api.self, stream_.get(), &span.graph));
  return true;
}

}  // namespace orrery
