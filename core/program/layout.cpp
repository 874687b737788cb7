// SPDX-License-Identifier: Apache-2.0
#include "program/layout.h"

#include <algorithm>
#include <mutex>
#include <numeric>
#include <unordered_set>

namespace orrery {

bool Placement::is_even(int ranks) const {
  return std::all_of(segments.begin(), segments.end(), [&](int64_t n) { return n % ranks == 0; });
}

Type held(const Type& whole, const Placement& how, const Member& me) {
  Part part;
  if (how.kind == Placement::split && me.ranks > 1) part.cut(how.dim, ranges_of(how, me));
  return part.type(whole);
}

Part::Ranges ranges_of(const Placement& how, const Member& me) {
  Part::Ranges ranges;
  int64_t at = 0;
  for (int64_t n : how.segments) {
    ranges.emplace_back(at + me.begin(n), at + me.end(n));
    at += n;
  }
  return ranges;
}

const Layout::All Layout::everywhere_;

size_t Layout::Hash::operator()(const All& all) const {
  size_t hash = static_cast<size_t>(all.batch) * 31 + static_cast<size_t>(all.batch_dim);
  const auto mix = [&](size_t x) { hash = hash * 1000003 + x; };
  mix(std::hash<const char*>()(all.varying.c_str()));
  for (const auto& [axis, how] : all.placements) {
    mix(std::hash<const char*>()(axis.c_str()));
    mix(static_cast<size_t>(how.kind)), mix(static_cast<size_t>(how.dim));
    for (const Dims* numbers : {&how.segments, &how.at})
      for (int64_t n : *numbers) mix(static_cast<size_t>(n));
  }
  return hash;
}

Layout Layout::of(All all) {
  Layout layout;
  if (all == everywhere_) return layout;
  static auto& known = *new std::unordered_set<All, Hash>;  // outlives all other objects
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  layout.all_ = &*known.insert(std::move(all)).first;
  return layout;
}

Layout Layout::with_batch(Batch batch, int32_t dim) const {
  if (all_->batch == batch && all_->batch_dim == dim) return *this;
  All all = *all_;
  all.batch = batch, all.batch_dim = dim;
  return of(std::move(all));
}

Layout Layout::with_varying(const Name& axes) const {
  if (all_->varying == axes) return *this;
  All all = *all_;
  all.varying = axes;
  return of(std::move(all));
}

Layout Layout::with(const Name& axis, const Placement& how) const {
  All all = *all_;
  const auto on = std::find_if(all.placements.begin(), all.placements.end(),
                               [&](const On& known) { return known.first == axis; });
  if (on == all.placements.end())
    all.placements.emplace_back(axis, how);
  else if (on->second == how)
    return *this;
  else
    on->second = how;
  return of(std::move(all));
}

Layout Layout::without(const Name& axis) const {
  if (all_->placements.empty()) return *this;
  All all = *all_;
  if (std::erase_if(all.placements, [&](const On& on) { return on.first == axis; }) == 0)
    return *this;
  return of(std::move(all));
}

// The axis that has cut last is undone first.
Type whole_type(Type part, const Layout& layout) {
  const auto& placements = layout.placements();
  for (auto on = placements.rbegin(); on != placements.rend(); ++on)
    if (const Placement& how = on->second; how.kind == Placement::split)
      part.dims[static_cast<size_t>(how.dim)] =
          std::accumulate(how.segments.begin(), how.segments.end(), int64_t{0});
  return part;
}

namespace {

std::string numbers_of(const Dims& numbers) {
  std::string text;
  for (int64_t n : numbers) text += (text.empty() ? "" : " ") + std::to_string(n);
  return text;
}

std::string text_of(const Placement& how) {
  switch (how.kind) {
    case Placement::whole: return "whole";
    case Placement::split:
      return "split dim " + std::to_string(how.dim + 1) +
             (how.segments.size() > 1 ? " of " + numbers_of(how.segments) : "");
    case Placement::partial: return "partial";
    case Placement::owned: return "at " + numbers_of(how.at);
    case Placement::samples: return "samples";
    case Placement::flat: return "flat";
  }
  return "";
}

}  // namespace

std::string to_string(const Layout& layout) {
  std::string text;
  const auto add = [&](const std::string& more) { text += (text.empty() ? "" : ", ") + more; };
  if (layout.batch() == Batch::sharded)
    add("batch split dim " + std::to_string(layout.batch_dim() + 1));
  if (layout.batch() == Batch::partial) add("batch partial");
  if (layout.batch() == Batch::mean) add("batch pending");
  for (const auto& [axis, how] : layout.placements()) add(axis + " " + text_of(how));
  if (!layout.varying().empty()) add("varies over " + layout.varying().str());
  return text.empty() ? "whole" : text;
}

}  // namespace orrery
