// SPDX-License-Identifier: Apache-2.0
#include "late.h"

#include <atomic>
#include <map>
#include <mutex>

#include <orrery/sdk/plugin.hpp>

#include "memory.h"

namespace orr_cuda {
namespace {

// Never destroyed: the device's work may outlive main.
struct Reports {
  std::mutex mutex;
  std::map<unsigned, std::string> sources;
  unsigned next = 1;
  LateWord* word = nullptr;
};
Reports& reports() {
  static Reports& all = *new Reports;
  return all;
}

}  // namespace

void open_late() { reports().word = new (allocate_pinned(sizeof(LateWord))) LateWord{}; }

LateSource::LateSource(const orr_op& op, const std::string& text) {
  Reports& all = reports();
  std::lock_guard lock(all.mutex);
  id_ = all.next++;
  const std::string where = op.where && *op.where ? std::string(op.where) + ": " : "";
  all.sources[id_] = where + op.kind + ": " + text;
}

LateSource::~LateSource() {
  std::lock_guard lock(reports().mutex);
  reports().sources.erase(id_);
}

// Pinned memory has one address, the host's, on both sides.
LateArgs LateSource::args() const { return {reports().word, id_}; }

void throw_late() {
  Reports& all = reports();
  std::lock_guard lock(all.mutex);
  if (!all.word) return;
  std::atomic_ref<unsigned> state(all.word->state);
  if (state.load() != 2) return;
  const LateWord report = *all.word;
  state.store(0);
  const auto source = all.sources.find(report.op);
  const char* released = "an op that was released reported bad data: row {row}, value {value}";
  throw orr::Error(ORR_INVALID,
                   filled(source == all.sources.end() ? released : source->second, report));
}

}  // namespace orr_cuda
