// SPDX-License-Identifier: Apache-2.0
#include "run/verification.h"

#include <unistd.h>

#include <utility>

#include "base/digest.h"
#include "base/error.h"
#include "run/agree.h"
#include "run/check_finite.h"
#include "run/run.h"
#include "run/saving.h"
#include "run/states.h"

namespace orrery {

Verification::Verification(const RankPlan& plan, const Device& device,
                           std::vector<std::shared_ptr<State>> changed)
    : plan_(plan), device_(device), changed_(std::move(changed)) {
  for (auto& s : changed_) {
    values_.emplace_back(s->part.type(s->type).bytes());
    read_part(*s, values_.back().data());
  }
}

void Verification::begin_again() {
  for (size_t i = 0; i < changed_.size(); ++i) write_part(*changed_[i], values_[i].data());
  again_ = true;
}

uint64_t Verification::digest_of(const orr_buffer* at, const std::vector<Place>& places) const {
  Digest digest;
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i].storage == kNone) continue;
    const Strided& layout = places[i].layout;
    if (device_.is_host() && layout.is_contiguous()) {
      digest.add(orr_buffer_host(&at[i]), Type{layout.dtype, layout.dims}.bytes());
      continue;
    }
    const std::vector<std::byte> elements = elements_at(device_, at[i], layout);
    digest.add(elements.data(), elements.size());
  }
  return digest.number();
}

std::string Verification::text_of(const Launch& launch, const std::vector<Place>& places) const {
  const Strided& layout = places.front().layout;
  return fmt::format("{} on rank {}, {}", place_of(launch.op), plan_.rank,
                     to_string(Type{layout.dtype, layout.dims}));
}

void Verification::before(const Launch& launch, const orr_buffer* in) {
  const uint64_t digest = digest_of(in, launch.in_at);
  if (!again_) return void(first_.push_back({digest, 0}));
  same_inputs_ = first_[at_].in == digest;
  if (!same_inputs_ && received_.empty()) received_ = text_of(launch, launch.in_at);
}

void Verification::after(const Launch& launch, const orr_buffer* out) {
  const uint64_t digest = digest_of(out, launch.out_at);
  if (!again_) return void(first_.back().out = digest);
  if (same_inputs_ && first_[at_].out != digest && miscomputed_.empty())
    miscomputed_ = text_of(launch, launch.out_at);
  ++at_;
}

void Verification::judge(const std::string& line, int64_t step, int ranks) const {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  const auto together = [&](const std::string& complaint) {
    const std::string error = error_of([&] {
      if (ranks > 1) fail_together(complaint, "verification of a step", line);
      if (!complaint.empty()) throw Error(ORR_FAILED, complaint);
    });
    if (!error.empty()) throw Error(kMiscomputed, error);
  };
  const std::string remedy =
      "; go on from the last checkpoint, after a test of this machine's memory and processor";
  together(miscomputed_.empty()
               ? ""
               : fmt::format("{}: step {} was computed twice of the same values, with different "
                             "bits (host {}){}",
                             miscomputed_, step, host, remedy));
  together(received_.empty()
               ? ""
               : fmt::format("{}: step {} was computed twice, and what came from other ranks or "
                             "from the memory of host {} had different bits{}",
                             received_, step, host, remedy));
}

}  // namespace orrery
