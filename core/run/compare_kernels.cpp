// SPDX-License-Identifier: Apache-2.0
#include "run/compare_kernels.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <vector>

#include "base/digest.h"
#include "base/error.h"
#include "program/op_group.h"
#include "run/agree.h"
#include "run/run.h"

namespace orrery {
namespace {

// Of what a kernel computes to how: "kind (numerics id of plugin)".
using Kernels = std::map<std::string, std::string>;

void add_tensors(Digest& digest, const std::vector<orr_tensor>& tensors) {
  for (const orr_tensor& t : tensors) {
    const auto rank = static_cast<size_t>(t.rank);
    digest.add(&t.dtype, sizeof t.dtype), digest.add(&t.rank, sizeof t.rank);
    digest.add(t.dims, rank * sizeof *t.dims), digest.add(t.strides, rank * sizeof *t.strides);
  }
}

void add_attributes(Digest& digest, const Attrs& attrs) {
  for (auto& [name, attr] : attrs) {
    digest.add(name.c_str(), name.str().size() + 1);
    if (auto* text = std::get_if<std::string>(&attr))
      digest.add(text->data(), text->size() + 1);
    else if (auto* list = std::get_if<Dims>(&attr))
      digest.add(list->data(), list->size() * sizeof(int64_t));
    else if (auto* real = std::get_if<double>(&attr))
      digest.add(real, sizeof *real);
    else
      digest.add(&std::get<int64_t>(attr), sizeof(int64_t));
  }
}

Kernels kernels_of(const RankPlan& plan) {
  Kernels found;
  for (const Launch& launch : plan.launches) {
    if (launch.op.attrs.has("numerics")) continue;
    Digest digest;
    const std::string kind = shown_kind(launch.op);
    digest.add(kind.data(), kind.size());
    add_attributes(digest, launch.op.attrs);
    add_tensors(digest, launch.in), add_tensors(digest, launch.out);
    const std::string& plugin = plan.kernel_names[static_cast<size_t>(launch.kernels)];
    found[digest.text()] = fmt::format("{} by {} ({})", kind, plugin, launch.numerics);
  }
  return found;
}

// Lines "digest kernel", for world_allgather.
HostTensor text_of(const Kernels& kernels) {
  std::string text;
  for (auto& [digest, kernel] : kernels) text += digest + " " + kernel + "\n";
  HostTensor out = HostTensor::make({ORR_U8, {static_cast<int64_t>(text.size())}});
  std::copy(text.begin(), text.end(), out.data<char>());
  return out;
}

}  // namespace

void compare_kernels(const RankPlan& plan, const std::string& line) {
  const HostTensor mine = text_of(kernels_of(plan));
  Digest digest;
  digest.add(mine.bytes->data(), mine.bytes->size());
  const std::string what = "the kernels of all ranks";
  const std::vector<uint64_t> all =
      numbers_of_all({digest.number(), mine.bytes->size()}, what, line);
  bool alike = true;
  for (size_t i = 2; i < all.size(); i += 2) alike &= all[i] == all[0];
  if (alike) return;
  const HostTensor texts = world_allgather(mine, line);
  const char* at = texts.data<char>();
  std::map<std::string, std::pair<size_t, std::string>> first;  // the lowest rank with this op
  for (size_t rank = 0; 2 * rank < all.size(); ++rank) {
    std::istringstream lines(std::string(at, all[2 * rank + 1]));
    at += all[2 * rank + 1];
    for (std::string one, kernel; lines >> one && std::getline(lines >> std::ws, kernel);) {
      const auto& [other, theirs] = first.try_emplace(one, rank, kernel).first->second;
      if (theirs != kernel)
        fail(ORR_INVALID,
             "{}: rank {} computes {}, rank {} {}: their results may differ in the last bits. "
             "Install "
             "the same kernel plugins on all hosts, or name those that all have with --kernels",
             line, other, theirs, rank, kernel);
    }
  }
}

}  // namespace orrery
