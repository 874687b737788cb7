// SPDX-License-Identifier: Apache-2.0
#include "product_race.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <random>

#include <orrery/sdk/float8.hpp>
#include <orrery/sdk/plugin.hpp>

#include "blas.h"
#include "device.h"
#include "function.h"
#include "memory.h"
#include "modules.h"
#include "shared/disk_cache.h"
#include "start_cost.h"
#include "stream.h"

namespace orr_cuda {
namespace {

// An algorithm whose first lap takes so much longer than the shortest first lap gets no other.
constexpr float hopeless = 1.3f;
// The fastest heat counts. A heat lasts about this long.
constexpr int heats = 3, most_laps = 8;
constexpr float heat_ms = 2;
// A prime number of f64, so that rows of a matrix, whose lengths are rarely multiples of it,
// differ.
constexpr size_t pattern_bytes = 8191 * 8;

// Notes where two results have other bits.
const char* const differ_source = R"(
struct Args { const unsigned short *a, *b; int* differ; };
extern "C" __global__ void __launch_bounds__(256) differ(const Args x, unsigned long long words) {
  const unsigned long long i = blockIdx.x * 256ull + threadIdx.x;
  if (i < words && x.a[i] != x.b[i]) *x.differ = 1;
})";

std::vector<char> normal(int32_t dtype, unsigned seed) {
  std::mt19937 bits(seed);
  std::normal_distribution<float> normal;
  std::vector<char> pattern(pattern_bytes);
  const auto bytes = static_cast<size_t>(orr_dtype_bytes(dtype));
  for (size_t at = 0; at < pattern_bytes; at += bytes) {
    const float x = normal(bits);
    const double f64 = x;
    const __nv_bfloat16 bf16(x);
    const __half f16(x);
    const uint8_t f8 = dtype == ORR_F8_E4M3 ? orr::f32_to_e4m3(x) : orr::f32_to_e5m2(x);
    const void* const forms[] = {&x, &f64, &bf16, &f16};
    std::memcpy(&pattern[at], bytes == 1 ? &f8 : forms[dtype - ORR_F32], bytes);
  }
  return pattern;
}

// Memory with normal numbers: zeros would flatter, and hide the order of sums.
class Filled : public OwnMemory {
 public:
  Filled(size_t bytes, int32_t dtype, unsigned seed, const OwnStream& stream) : OwnMemory(bytes) {
    const std::vector<char> pattern = normal(dtype, seed);
    auto from = reinterpret_cast<CUdeviceptr>(pattern.data());
    // Each copy doubles what is there.
    for (size_t at = 0, n = pattern_bytes; at < bytes; at += n) {
      if (at > 0) from = get(), n = at;
      n = std::min(n, bytes - at);
      ORR_DRIVER(cuMemcpyAsync, get() + at, from, n, stream.get());
    }
    stream.drain();
  }
};

class Race {
 public:
  Race(const RaceTrack& track, const RaceLaunch& launch) : track_(track), launch_(launch) {}
  // The race's memory is in use until here.
  ~Race() {
    try {
      stream_.drain();
    } catch (const orr::Error&) {  // the next call says it too
    }
  }
  Race(const Race&) = delete;

  size_t winner(const std::vector<cublasLtMatmulAlgo_t>& candidates) {
    size_t best = 0;
    float best_ms = std::numeric_limits<float>::infinity();
    for (size_t i = 0; i < candidates.size(); ++i) {
      const bool exact = track_.exact > 0;
      lap(candidates[i], exact && i == 0 ? wanted_ : y_);  // it loads the kernel, too
      if (exact && i > 0 && differ()) continue;
      const float ms = time(candidates[i]);
      if (ms < best_ms) best_ms = ms, best = i;
    }
    return best;
  }

 private:
  void lap(const cublasLtMatmulAlgo_t& algorithm, const OwnMemory& y) {
    launch_(stream_.get(), {a_.get(), b_.get(), y.get(), workspace_.get()}, algorithm);
  }

  // Milliseconds of one lap of several.
  float heat(const cublasLtMatmulAlgo_t& algorithm, int laps) {
    ORR_DRIVER(cuEventRecord, begin_.get(), stream_.get());
    for (int n = 0; n < laps; ++n) lap(algorithm, y_);
    ORR_DRIVER(cuEventRecord, end_.get(), stream_.get());
    await(end_.get(), own_deadline);
    float taken = 0;
    ORR_DRIVER(cuEventElapsedTime, &taken, begin_.get(), end_.get());
    return taken / static_cast<float>(laps);
  }

  float time(const cublasLtMatmulAlgo_t& algorithm) {
    float ms = heat(algorithm, 1);
    shortest_ = std::min(shortest_, ms);
    if (ms > hopeless * shortest_) return ms;
    const int laps = static_cast<int>(std::clamp(heat_ms / ms, 1.0f, float{most_laps}));
    for (int n = 0; n < heats; ++n) ms = std::min(ms, heat(algorithm, laps));
    return ms;
  }

  bool differ() {
    ORR_DRIVER(cuMemsetD8Async, differ_.get(), 0, sizeof(int32_t), stream_.get());
    const std::array args = {y_.get(), wanted_.get(), differ_.get()};
    const uint64_t words = track_.exact / sizeof(uint16_t);
    enqueue(stream_.get(), function_of(module_of(differ_source), "differ"),
            {static_cast<unsigned>((words + 255) / 256)}, {256}, 0, args, words);
    int32_t found = 1;
    ORR_DRIVER(cuMemcpyAsync, reinterpret_cast<CUdeviceptr>(&found), differ_.get(), sizeof found,
               stream_.get());
    stream_.drain();
    return found != 0;
  }

  const RaceTrack& track_;
  const RaceLaunch& launch_;
  const OwnStream stream_;
  const Filled a_{track_.a, track_.dtype, 1, stream_};
  const Filled b_{track_.b, track_.dtype, 2, stream_};
  // Alike at first, also in gaps between rows and behind the result, where an epilogue reads.
  const Filled y_{track_.y, track_.dtype, 3, stream_};
  const Filled wanted_{track_.exact > 0 ? track_.y : 0, track_.dtype, 3, stream_};
  const OwnMemory workspace_{track_.workspace}, differ_{sizeof(int32_t)};
  const DriverObject<CUevent> begin_{new_event(CU_EVENT_DEFAULT)},
      end_{new_event(CU_EVENT_DEFAULT)};
  float shortest_ = std::numeric_limits<float>::infinity();  // first lap, in milliseconds
};

// What a result holds for: "NVIDIA H200, driver 13000, cuBLASLt 130100".
std::string machine() {
  char name[64] = "";
  int version = 0;
  ORR_DRIVER(cuDeviceGetName, name, sizeof name, opened().device);
  ORR_DRIVER(cuDriverGetVersion, &version);
  return std::string(name) + ", driver " + std::to_string(version) + ", cuBLASLt " +
         std::to_string(blas().cublasLtGetVersion());
}

cublasLtMatmulAlgo_t find_fastest(const std::vector<cublasLtMatmulAlgo_t>& candidates,
                                  const std::string& shape, const RaceTrack& track,
                                  const RaceLaunch& launch) {
  const std::string key = "fastest algorithm: " + machine() + ": " + shape;
  const orr_kernels::DiskCache cache("cuda");
  const orr_kernels::DiskCache::Lock lock(cache, key);  // of ranks that want the same, one measures
  const std::string kept = cache.kept(key).value_or("");
  for (const cublasLtMatmulAlgo_t& c : candidates)
    if (kept.size() == sizeof c && std::memcmp(kept.data(), &c, sizeof c) == 0) return c;
  try {
    const Clock::time_point began = Clock::now();
    const cublasLtMatmulAlgo_t won = candidates[Race(track, launch).winner(candidates)];
    start_cost().measured(since(began));
    const std::string bytes(reinterpret_cast<const char*>(&won), sizeof won);
    // Ranks that cannot tell each other what has won, and whose bits depend on it, must not differ.
    return cache.keep(key, bytes) || track.exact > 0 ? won : candidates.front();
  } catch (const orr::Error& e) {  // no memory for it, say
    const std::string text =
        "cuda: a product was not measured, the library's first choice serves: " +
        std::string(e.what()) + " (" + shape + ")";
    orr::host->log(ORR_LOG_WARN, text.c_str());
    return candidates.front();
  }
}

}  // namespace

cublasLtMatmulAlgo_t fastest_of(const std::vector<cublasLtMatmulAlgo_t>& candidates,
                                const std::string& shape, const RaceTrack& track,
                                const RaceLaunch& launch) {
  if (candidates.size() == 1) return candidates.front();
  static std::map<std::string, cublasLtMatmulAlgo_t> found;
  const auto at = found.find(shape);
  if (at != found.end()) return at->second;
  return found[shape] = find_fastest(candidates, shape, track, launch);
}

}  // namespace orr_cuda
