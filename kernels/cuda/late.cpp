// SPDX-License-Identifier: Apache-2.0
#include "late.h"

#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include <orrery/sdk/plugin.hpp>

#include "driver.h"

namespace orr_cuda {
namespace {

// Never destroyed: the device's work may outlive main.
struct Reports {
  std::mutex mutex;
  std::map<unsigned, std::pair<std::string, LateSource::Text>> sources;
  unsigned next = 1;
  LateWord* word = nullptr;
};
Reports& reports() {
  static Reports& all = *new Reports;
  return all;
}

}  // namespace

void open_late() {
  void* place = nullptr;
  check(driver().cuMemHostAlloc(&place, sizeof(LateWord),
                                CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP),
        "cuMemHostAlloc");
  reports().word = new (place) LateWord{};
}

LateSource::LateSource(const orr_op& op, Text text) {
  Reports& all = reports();
  std::lock_guard lock(all.mutex);
  id_ = all.next++;
  all.sources[id_] = {op.where ? op.where : "", std::move(text)};
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
  if (source == all.sources.end())
    throw orr::Error(ORR_INVALID, "an op that was released reported bad data: row " +
                                      std::to_string(report.row) + ", value " +
                                      std::to_string(report.value));
  const auto& [where, text] = source->second;
  throw orr::Error(ORR_INVALID,
                   (where.empty() ? "" : where + ": ") + text(report.row, report.value));
}

}  // namespace orr_cuda
