// SPDX-License-Identifier: Apache-2.0
#include "run/pass.h"

#include <cstring>

#include "base/error.h"
#include "program/state.h"
#include "run/variant.h"

namespace orrery {
namespace {

size_t bytes_behind(const Type& type, size_t dim) {
  size_t bytes = orr_dtype_bytes(type.dtype);
  for (size_t d = dim; d < type.dims.size(); ++d) bytes *= static_cast<size_t>(type.dims[d]);
  return bytes;
}

// One after another along `dim`. REQUIRES: the other dims are the same.
HostTensor joined(const std::vector<HostTensor>& parts, size_t dim) {
  Type type = parts.front().type;
  type.dims[dim] = 0;
  for (const HostTensor& part : parts) type.dims[dim] += part.type.dims[dim];
  HostTensor all = HostTensor::make(type);
  const size_t step = bytes_behind(type, dim);
  std::byte* begin = all.data<std::byte>();
  for (const HostTensor& part : parts) {
    const size_t bytes = bytes_behind(part.type, dim);
    const size_t blocks = bytes ? part.type.bytes() / bytes : 0;
    for (size_t i = 0; i < blocks; ++i)
      std::memcpy(begin + i * step, part.data<std::byte>() + i * bytes, bytes);
    begin += bytes;
  }
  return all;
}

bool same_but_one(const Type& a, const Type& b, size_t dim) {
  Type x = a, y = b;
  if (x.dims.size() != y.dims.size()) return false;
  x.dims[dim] = y.dims[dim] = 0;
  return x == y;
}

}  // namespace

void Pass::add(const OverBatches& sums, StepResult& result, const std::string& line) {
  if (batches_++ == 0) sums_ = sums;
  if (sums.sums != sums_.sums || sums.rows != sums_.rows)
    fail(ORR_INVALID,
         "{}: run:eval: batch {} has results of another kind or shape than the first one: give "
         "all batches of a pass the same shape, but for the number of samples",
         line, batches_);
  for (const auto& [name, dim] : sums.rows) {
    auto at = result.tensors.find(name);
    if (at == result.tensors.end()) continue;
    std::vector<HostTensor>& parts = rows_[name];
    if (!parts.empty() &&
        !same_but_one(parts.front().type, at->second.type, static_cast<size_t>(dim)))
      fail(ORR_INVALID,
           "{}: run:eval: '{}' is {} in batch {} and {} in the first one: give all samples of a "
           "pass the same shape, or reduce the result to a number",
           line, name, to_string(at->second.type), batches_, to_string(parts.front().type));
    parts.push_back(at->second);
  }
}

void Pass::finish(StepResult& result) const {
  for (const auto& [name, parts] : rows_)
    result.tensors[name] = joined(parts, static_cast<size_t>(sums_.rows.at(name)));
}

void refuse_parts(const RunSpec& spec, const BatchFields& batch) {
  const TraceScope scope(false);
  // Batches of one sample are left out: some ops are not needed there.
  const auto trace = [&](Program& p, int64_t times) {
    p.set_site({"", spec.line});
    p.set_stream(spec.stream);
    Fields fields;
    for (auto& [name, field] : batch) {
      Type type = field.type;
      type.dims[0] *= times;
      fields[name] = p.batch_input(name, type);
    }
    const auto [loss, extra] = spec.loss(p, fields);
    std::vector<ValueId> results = {loss};
    for (const auto& [name, v] : extra) results.push_back(v);
    return results;
  };
  std::string why;
  try {
    Program two, three;
    const std::vector<ValueId> of_two = trace(two, 2), of_three = trace(three, 3);
    why = why_not_of_sums(two, of_two, three, of_three);
  } catch (const Error& e) {
    why = std::string("for batches of another size it fails: ") + e.what();
  }
  if (why.empty()) return;
  fail(ORR_INVALID,
       "{}: run:eval: the results of several batches cannot be put together: {}; give it all "
       "samples in one batch, by size, or evaluate batches by run:eval(batch) and put together "
       "what you need of them",
       spec.line, why);
}

}  // namespace orrery
