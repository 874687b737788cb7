// SPDX-License-Identifier: Apache-2.0
#include "product_race.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include <orrery/sdk/plugin.hpp>

#include "device.h"
#include "memory.h"
#include "product_cache.h"
#include "stream.h"

namespace orr_cuda {
namespace {

constexpr int64_t deadline_ns = 60'000'000'000;
constexpr int heats = 3, laps = 4;  // of one heat; the fastest heat counts

// Numbers below 2 of either sign, of all exponents: zeros would flatter.
void fill(const OwnMemory& memory, size_t bytes, int64_t element, CUstream stream) {
  static constexpr size_t words = 8192;
  static std::vector<uint64_t> numbers(words);
  const uint64_t mask = element == 8   ? 0xbfffffffffffffff
                        : element == 4 ? 0xbfffffffbfffffff
                                       : 0xbfffbfffbfffbfff;
  uint64_t state = 0x9e3779b97f4a7c15;
  for (uint64_t& word : numbers) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    word = state & mask;
  }
  for (size_t at = 0; at < bytes; at += words * 8)
    check(driver().cuMemcpyAsync(memory.get() + at, reinterpret_cast<CUdeviceptr>(numbers.data()),
                                 std::min(words * 8, bytes - at), stream),
          "cuMemcpyAsync");
}

class Clock {
 public:
  Clock() {
    for (CUevent* e : {&begin_, &end_})
      check(driver().cuEventCreate(e, CU_EVENT_DEFAULT), "cuEventCreate");
  }
  ~Clock() {
    for (CUevent e : {begin_, end_}) driver().cuEventDestroy(e);
  }
  Clock(const Clock&) = delete;

  template <class F>
  float milliseconds(CUstream stream, F&& work) {
    check(driver().cuEventRecord(begin_, stream), "cuEventRecord");
    work();
    check(driver().cuEventRecord(end_, stream), "cuEventRecord");
    await(end_, deadline_ns);
    float taken = 0;
    check(driver().cuEventElapsedTime(&taken, begin_, end_), "cuEventElapsedTime");
    return taken;
  }

 private:
  CUevent begin_ = nullptr, end_ = nullptr;
};

size_t race(const std::vector<cublasLtMatmulAlgo_t>& candidates, const RaceTrack& track,
            const RaceLaunch& launch) {
  const OwnStream stream;
  const OwnMemory a(track.a), b(track.b), y(track.y), workspace(track.workspace);
  fill(a, track.a, track.element, stream.get());
  fill(b, track.b, track.element, stream.get());
  Clock clock;
  size_t best = 0;
  float best_ms = std::numeric_limits<float>::infinity();
  const auto lap = [&](size_t i) {
    launch(stream.get(), candidates[i], a.get(), b.get(), y.get(), workspace.get());
  };
  for (size_t i = 0; i < candidates.size(); ++i) {
    lap(i);  // warm
    for (int heat = 0; heat < heats; ++heat) {
      const float ms = clock.milliseconds(stream.get(), [&] {
        for (int n = 0; n < laps; ++n) lap(i);
      });
      if (ms < best_ms) best_ms = ms, best = i;
    }
  }
  stream.drain(deadline_ns);
  return best;
}

}  // namespace

cublasLtMatmulAlgo_t fastest_of(const std::vector<cublasLtMatmulAlgo_t>& candidates,
                                const std::string& shape, const RaceTrack& track,
                                const RaceLaunch& launch) {
  if (candidates.size() == 1) return candidates.front();
  ProductCache& cache = ProductCache::get();
  for (const cublasLtMatmulAlgo_t& c : candidates)
    if (cache.holds(shape, c)) return c;
  try {
    const cublasLtMatmulAlgo_t won = candidates[race(candidates, track, launch)];
    cache.keep(shape, won);
    return won;
  } catch (const orr::Error& e) {  // no memory for it, say
    const std::string text =
        "cuda: a product was not measured, the library's first choice serves: " +
        std::string(e.what()) + " (" + shape + ")";
    orr::host->log(ORR_LOG_WARN, text.c_str());
    return candidates.front();
  }
}

}  // namespace orr_cuda
