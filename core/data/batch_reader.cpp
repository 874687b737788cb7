// SPDX-License-Identifier: Apache-2.0
#include "data/batch_reader.h"

#include <algorithm>
#include <cstring>

#include "base/machine.h"

namespace orrery {
namespace {

std::span<const Pick> rows(const std::vector<Pick>& picks, int64_t begin, int64_t end) {
  return std::span(picks).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
}

// Reads rows to the places of their fields, each thread its share of them.
void read_shares(const Dataset& data, std::span<const Pick> picks,
                 const std::vector<std::byte*>& places, int64_t workers) {
  const size_t n = picks.size(), shares = std::min(n, static_cast<size_t>(workers));
  if (shares < 2) return data.read(picks, places);
  std::vector<std::future<void>> others;
  for (size_t k = 0; k < shares; ++k)
    others.push_back(
        std::async(std::launch::async, [&, first = n * k / shares, last = n * (k + 1) / shares] {
          run_on(allowed_cpus());
          std::vector<std::byte*> at = places;
          for (size_t f = 0; f < at.size(); ++f) at[f] += first * data.fields()[f].sample.bytes();
          data.read(picks.subspan(first, last - first), at);
        }));
  for (auto& each : others) each.wait();
  for (auto& each : others) each.get();
}

}  // namespace

void BatchReader::load(size_t field, int64_t begin, int64_t end, std::byte* to) {
  const bool at_once = data_->main_thread() || workers_ > 1;
  if (at_once && !(ahead_.valid() && begin == ahead_begin_ && end == ahead_end_)) {
    std::promise<Rows> all;
    all.set_value(read_rows(*data_, picks_, begin, end, workers_));
    ahead_ = all.get_future().share(), ahead_begin_ = begin, ahead_end_ = end;
  }
  if (ahead_.valid() && begin == ahead_begin_ && end == ahead_end_) {
    const size_t bytes = data_->fields()[field].sample.bytes() * static_cast<size_t>(end - begin);
    std::memcpy(to, ahead_.get()[field].get(), bytes);
  } else {
    std::vector<std::byte*> places(data_->fields().size());
    places[field] = to;
    data_->read(rows(picks_, begin, end), places);
  }
  if (const auto next = next_.lock()) next->read_ahead(begin, end);
}

BatchReader::Rows BatchReader::read_rows(const Dataset& data, const std::vector<Pick>& picks,
                                         int64_t begin, int64_t end, int64_t workers) {
  Rows read;
  std::vector<std::byte*> places;
  for (const DataField& field : data.fields()) {
    const size_t bytes = field.sample.bytes() * static_cast<size_t>(end - begin);
    places.push_back(read.emplace_back(new std::byte[bytes]).get());
  }
  read_shares(data, rows(picks, begin, end), places, workers);
  return read;
}

void BatchReader::read_ahead(int64_t begin, int64_t end) {
  if (ahead_.valid() || !data_->slow() || data_->main_thread()) return;
  if (end > static_cast<int64_t>(picks_.size())) return;
  ahead_begin_ = begin, ahead_end_ = end;
  ahead_ = std::async(
      std::launch::async, [data = data_, picks = picks_, begin, end, workers = workers_] {
        run_on(allowed_cpus());  // the thread that it comes from may keep to one of them
        return read_rows(*data, picks, begin, end, workers);
      });
}

}  // namespace orrery
