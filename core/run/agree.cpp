// SPDX-License-Identifier: Apache-2.0
#include "run/agree.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace orrery {

uint64_t program_digest(const Blueprint& b) {
  uint64_t h = 1469598103934665603ULL;
  for (char c : to_string(b.program) + std::to_string(b.microbatches))
    h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return h;
}

void compare_across_ranks(const Blueprint& b, const std::string& line) {
  HostTensor mine = HostTensor::make({ORR_I64, {1}});
  uint64_t h = program_digest(b);
  std::memcpy(mine.bytes->data(), &h, sizeof h);
  HostTensor all = world_allgather(mine, line);
  std::string differ;
  for (int r = 1; r < world_info().size; ++r)
    if (all.data<int64_t>()[r] != all.data<int64_t>()[0])
      differ += fmt::format("{}{}", differ.empty() ? "" : ", ", r);
  if (!differ.empty())
    fail(ORR_FAILED,
         "{}: the ranks have traced different programs: rank {} differs from rank 0; a "
         "script must build the same model on all ranks (does it branch on world.rank?)",
         line, differ);
}

std::map<std::string, double> numbers_of_rank_0(std::map<std::string, double> numbers,
                                                const std::string& line) {
  HostTensor all = HostTensor::make({ORR_F64, {static_cast<int64_t>(numbers.size())}});
  double* x = all.data<double>();
  for (auto& [name, value] : numbers) *x++ = value;
  all = world_broadcast(all, 0, line + ", scalars of the step");
  x = all.data<double>();
  for (auto& [name, value] : numbers) value = *x++;
  return numbers;
}

std::string text_of_rank_0(const std::string& text, const std::string& line) {
  HostTensor size = HostTensor::make({ORR_I64, {1}});
  size.data<int64_t>()[0] = static_cast<int64_t>(text.size());
  size = world_broadcast(size, 0, line);
  HostTensor bytes = HostTensor::make({ORR_U8, {size.data<int64_t>()[0]}});
  if (world_info().rank == 0) std::copy(text.begin(), text.end(), bytes.data<char>());
  if (!bytes.bytes->empty()) bytes = world_broadcast(bytes, 0, line);
  return {reinterpret_cast<const char*>(bytes.bytes->data()), bytes.bytes->size()};
}

}  // namespace orrery
