// SPDX-License-Identifier: Apache-2.0
#include "data/batch_reader.h"

#include <cstring>

#include "base/machine.h"

namespace orrery {
namespace {

std::span<const Pick> rows(const std::vector<Pick>& picks, int64_t begin, int64_t end) {
  return std::span(picks).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
}

}  // namespace

void BatchReader::load(size_t field, int64_t begin, int64_t end, std::byte* to) {
  if (data_->main_thread() && !(ahead_.valid() && begin == ahead_begin_ && end == ahead_end_)) {
    std::promise<Rows> all;
    all.set_value(read_rows(*data_, picks_, begin, end));
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
                                         int64_t begin, int64_t end) {
  Rows read;
  std::vector<std::byte*> places;
  for (const DataField& field : data.fields()) {
    const size_t bytes = field.sample.bytes() * static_cast<size_t>(end - begin);
    places.push_back(read.emplace_back(new std::byte[bytes]).get());
  }
  data.read(rows(picks, begin, end), places);
  return read;
}

void BatchReader::read_ahead(int64_t begin, int64_t end) {
  if (ahead_.valid() || !data_->slow() || data_->main_thread()) return;
  if (end > static_cast<int64_t>(picks_.size())) return;
  ahead_begin_ = begin, ahead_end_ = end;
  ahead_ = std::async(std::launch::async, [data = data_, picks = picks_, begin, end] {
    run_on(allowed_cpus());  // the thread that it comes from may keep to one of them
    return read_rows(*data, picks, begin, end);
  });
}

}  // namespace orrery
