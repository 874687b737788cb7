// SPDX-License-Identifier: Apache-2.0
#include "partition/samples/flat_buffers.h"

#include <algorithm>

#include "program/state.h"

namespace orrery {
namespace {

FlatBuffer row_of(const Program& p, const Program::Together& list) {
  FlatBuffer row;
  row.room = list.room, row.axis = list.axis;
  for (ValueId v : list.states) {
    row.states.push_back(p.value(v).state);
    row.offsets.push_back(row.bytes);
    row.bytes += p.type(v).bytes();
  }
  return row;
}

}  // namespace

bool FlatBuffer::is_laid_out() const {
  const State& first = *states.front();
  for (size_t i = 0; i < states.size(); ++i)
    if (!first.memory || states[i]->memory != first.memory ||
        states[i]->offset != first.offset + offsets[i])
      return false;
  return true;
}

std::vector<FlatBuffer> flat_buffers_of(const Program& p) {
  std::vector<FlatBuffer> found;
  for (const Program::Together& list : p.together()) {
    if (std::any_of(list.states.begin(), list.states.end(),
                    [&](ValueId v) { return p.value(v).tier != Tier::device; }))
      continue;
    FlatBuffer row = row_of(p, list);
    const bool bound =
        std::any_of(row.states.begin(), row.states.end(), [](auto& s) { return s->bound; });
    if (!bound || row.is_laid_out()) found.push_back(std::move(row));
  }
  return found;
}

}  // namespace orrery
