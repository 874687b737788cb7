// SPDX-License-Identifier: Apache-2.0
#include "plan/fit.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/in_parallel.h"
#include "base/text.h"
#include "lower/lower.h"
#include "plan/rank_kinds.h"

namespace orrery {
namespace {

struct Peak {
  uint64_t bytes = 0;
  int rank = 0;
};

Peak peak_of(const Blueprint& b, const std::vector<std::string>& kernels) {
  const RankKinds kinds(b);
  auto peaks = in_parallel<Peak>(kinds.planned_together().size(), [&](size_t i) {
    const LowerRequest request = kinds.request(kinds.planned_together()[i].front(), kernels);
    return Peak{lower(request).bytes(), request.rank};
  });
  return *std::max_element(peaks.begin(), peaks.end(),
                           [](const Peak& x, const Peak& y) { return x.bytes < y.bytes; });
}

class Fitter {
 public:
  Fitter(Blueprint& b, const std::vector<std::string>& kernels, uint64_t limit)
      : b_(b), kernels_(kernels), limit_(limit) {
    counts_ = counts();
    peaks_.resize(counts_.size());
  }

  std::string run() {
    size_t last = stride();
    if (!fits(last)) last = valley();
    size_t first = last;
    while (first > 0 && !(peaks_[first - 1] && !fits(first - 1)))
      --first;  // ends at the nearest smaller count that was tried and does not fit
    if (first == 0) return settle(last);
    for (--first; last - first > 1;) {
      const size_t middle = (first + last) / 2;
      (fits(middle) ? last : first) = middle;
    }
    return settle(last);
  }

 private:
  // For each possible size of a microbatch, largest first, the smallest number of microbatches.
  // If all microbatches run in one call, memory does not depend on their number.
  std::vector<int64_t> counts() const {
    const int64_t batch = b_.program.batch_size(), ranks = b_.mesh.workers();
    std::vector<int64_t> found = {ranks};
    for (int64_t rows = batch / ranks; b_.mesh.one_by_one && rows > 0; --rows)
      if (int64_t n = (batch + rows - 1) / rows; n > found.back() && legal(n)) found.push_back(n);
    if (found.size() > 1 && !legal(ranks)) found.erase(found.begin());
    return found;
  }

  // Whether the pipeline's schedule allows this number of microbatches.
  bool legal(int64_t n) const {
    if (!b_.mesh.make_timetable) return true;
    const std::vector<int64_t> first = deal_microbatches(n, b_.mesh);
    try {
      for (size_t r = 0; r + 1 < first.size(); ++r)
        b_.mesh.make_timetable(static_cast<int>(first[r + 1] - first[r]));
      return true;
    } catch (const Error& e) {
      return false;
    }
  }

  // The first of the indices 0, 1, 3, 7, ... whose count fits, or the last index.
  size_t stride() {
    size_t at = 0;
    for (size_t step = 1; at + 1 < counts_.size() && !fits(at); step *= 2)
      at = std::min(at + step, counts_.size() - 1);
    return at;
  }

  // Memory need not fall steadily: activations shrink with the microbatch, but more tree nodes
  // wait. So the counts around the best one that was tried may fit.
  size_t valley() {
    size_t least = 0;
    for (size_t i = 0; i < counts_.size(); ++i)
      if (peaks_[i] && peaks_[i]->bytes < peaks_[least]->bytes) least = i;
    size_t begin = least, end = least;
    while (begin > 0 && !peaks_[begin - 1]) --begin;
    while (end + 1 < counts_.size() && !peaks_[end + 1]) ++end;
    for (size_t i = begin; i <= end; ++i)
      if (fits(i)) return i;
    fail_nothing_fits();
  }

  const std::optional<Peak>& peak(size_t i) {
    if (!peaks_[i]) {
      b_.microbatches = counts_[i];
      peaks_[i] = peak_of(b_, kernels_);
    }
    return peaks_[i];
  }
  bool fits(size_t i) { return peak(i)->bytes <= limit_; }

  std::string settle(size_t i) {
    b_.microbatches = counts_[i];
    std::string text = fmt::format("fit: {} hold {}: {} on rank {}\n", size(limit_), samples(i),
                                   size(peak(i)->bytes), peak(i)->rank);
    if (i > 0) text += fmt::format("  {} take {}\n", samples(i - 1), size(peak(i - 1)->bytes));
    return text;
  }

  [[noreturn]] void fail_nothing_fits() {
    size_t least = 0;
    for (size_t i = 0; i < counts_.size(); ++i)
      if (peaks_[i] && peaks_[i]->bytes < peaks_[least]->bytes) least = i;
    fail(ORR_FAILED, "--fit {}: nothing fits; {} take {} on rank {}, {} too much: {}", size(limit_),
         samples(least), size(peaks_[least]->bytes), peaks_[least]->rank,
         size(peaks_[least]->bytes - limit_),
         b_.mesh.one_by_one ? "add ranks, shard states, or compute activations again in backward"
                            : "run microbatches one after another, add ranks, or shard states");
  }

  std::string samples(size_t i) const {
    const int64_t rows = (b_.program.batch_size() + counts_[i] - 1) / counts_[i];
    return fmt::format("{} sample{} a microbatch (microbatches = {})", rows, rows == 1 ? "" : "s",
                       counts_[i]);
  }
  static std::string size(uint64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

  Blueprint& b_;
  const std::vector<std::string>& kernels_;
  uint64_t limit_;
  std::vector<int64_t> counts_;
  std::vector<std::optional<Peak>> peaks_;  // by index of the count; empty: not tried
};

}  // namespace

std::string fit_microbatches(Blueprint& b, const std::vector<std::string>& kernels,
                             uint64_t limit) {
  return Fitter(b, kernels, limit).run();
}

}  // namespace orrery
