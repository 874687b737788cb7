// SPDX-License-Identifier: Apache-2.0
//
// One batch of a dataset: this rank's rows of it are read when they are asked for, or ahead of
// time, by threads, while the step before is under way. What the main thread has to read is read
// once for all fields. [main thread]
#pragma once

#include <future>

#include "data/dataset.h"

namespace orrery {

class BatchReader {
 public:
  // `workers`: how many threads read a batch. REQUIRES: at least 1, and 1 if data->main_thread().
  BatchReader(DatasetPtr data, std::vector<Pick> picks, int64_t workers = 1)
      : data_(std::move(data)), picks_(std::move(picks)), workers_(workers) {}

  const DatasetPtr& data() const { return data_; }
  const std::vector<Pick>& picks() const { return picks_; }
  // Writes rows [begin, end) of a field.
  void load(size_t field, int64_t begin, int64_t end, std::byte* to);

  // The batch that comes next: once this one has been asked for rows, the same rows of that one are
  // read ahead, if its dataset takes time.
  void set_next(const std::shared_ptr<BatchReader>& next) { next_ = next; }
  // Forgets what was read before it was asked for: the batch has had its step.
  void release() { ahead_ = {}; }

 private:
  using Rows = std::vector<std::unique_ptr<std::byte[]>>;  // of each field
  static Rows read_rows(const Dataset& data, const std::vector<Pick>& picks, int64_t begin,
                        int64_t end, int64_t workers);
  void read_ahead(int64_t begin, int64_t end);

  DatasetPtr data_;
  std::vector<Pick> picks_;
  int64_t workers_;
  std::weak_ptr<BatchReader> next_;
  std::shared_future<Rows> ahead_;
  int64_t ahead_begin_ = 0, ahead_end_ = 0;
};

}  // namespace orrery
