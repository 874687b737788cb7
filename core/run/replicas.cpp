// SPDX-License-Identifier: Apache-2.0
#include "run/replicas.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/digest.h"
#include "base/error.h"
#include "program/elements.h"
#include "run/agree.h"
#include "run/run.h"
#include "run/states.h"

namespace orrery {
namespace {

// What the script has written to a state since the ranks were compared: a digest of the values, and
// the last line that did it.
struct Written {
  uint64_t given = 0;
  std::string line;
};
using WrittenStates = std::map<std::weak_ptr<State>, Written, std::owner_less<>>;
WrittenStates& written() {
  static WrittenStates states;
  return states;
}

// A digest of the values that the script on this rank has given for the whole state.
uint64_t given(const std::shared_ptr<State>& s) {
  Digest digest;
  if (auto found = written().find(s); found != written().end())
    digest.add(&found->second.given, sizeof found->second.given);
  if (const HostTensor& first = s->initial.tensor; first.bytes)
    digest.add(first.bytes->data(), first.bytes->size());
  return digest.number();
}

// A digest of the value of this rank's part; 0 if there is none yet, or the part is empty.
uint64_t digest_of(const State& s) {
  const uint64_t bytes = s.part.type(s.type).bytes();
  if (!s.lies_somewhere() || bytes == 0) return 0;
  std::vector<std::byte> copy;
  Digest digest;
  digest.add(part_in_memory(s, copy), bytes);
  return digest.number();
}

// The lowest rank that holds the same part as rank r.
size_t first_holder(const State& s, size_t r) {
  for (size_t first = 0; first < r; ++first)
    if ((s.parts.empty() || s.parts[first] == s.parts[r]) &&
        (s.coordinate_of.empty() || s.coordinate_of[first] == s.coordinate_of[r]))
      return first;
  return r;
}

// Whether an element has all bits of `exponent` set, as infinities and NaNs have.
template <class Unsigned>
bool has_bits(const HostTensor& value, Unsigned exponent) {
  Unsigned found = 0;
  const Unsigned* x = value.data<Unsigned>();
  for (size_t i = 0, n = value.bytes->size() / sizeof(Unsigned); i < n; ++i)
    found |= (x[i] & exponent) == exponent;
  return found != 0;
}

bool any_special(const HostTensor& value) {
  switch (value.type.dtype) {
    case ORR_F32: return has_bits<uint32_t>(value, 0x7f800000);
    case ORR_F64: return has_bits<uint64_t>(value, 0x7ff0000000000000);
    case ORR_BF16: return has_bits<uint16_t>(value, 0x7f80);
    case ORR_F16: return has_bits<uint16_t>(value, 0x7c00);
    default: return false;
  }
}

[[noreturn]] void fail_differing(const std::shared_ptr<State>& s, size_t a, size_t b,
                                 const std::string& line, const std::string& remedy) {
  std::string error;
  if (auto found = written().find(s); found != written().end())
    error = fmt::format(
        "{}: '{}' was written here, but not with one value on all ranks: rank {} and rank {} "
        "differ; write the same on every rank, or world:broadcast it",
        found->second.line, s->name, a, b);
  fail_together(error, "comparison of states", line);
  fail(ORR_FAILED, "{}: the ranks hold different values of '{}': rank {} and rank {} differ; {}",
       line, s->name, a, b, remedy);
}

}  // namespace

void compare_replicas(const std::vector<std::shared_ptr<State>>& states, const std::string& line,
                      const std::string& remedy) {
  std::vector<uint64_t> mine;
  for (auto& s : states) mine.insert(mine.end(), {digest_of(*s), given(s)});
  const std::vector<uint64_t> all = numbers_of_all(mine, "comparison of states", line);
  for (size_t i = 0; i < states.size(); ++i) {
    const auto& s = states[i];
    for (size_t r = 1; r * mine.size() < all.size(); ++r) {
      const auto of = [&](size_t rank, size_t which) {
        return all[rank * mine.size() + 2 * i + which];
      };
      const size_t holder = first_holder(*s, r);
      if (of(r, 0) != of(holder, 0)) fail_differing(s, holder, r, line, remedy);
      // Parts that only one rank holds cannot be compared; the values given for the whole can.
      if (!s->parts.empty() && of(r, 1) != of(0, 1)) fail_differing(s, 0, r, line, remedy);
    }
  }
  for (auto& s : states) written().erase(s);
}

void note_written(const std::shared_ptr<State>& state, const std::string& line) {
  written()[state].line = line;
}

void give_state(const std::shared_ptr<State>& state, const HostTensor& value,
                const std::string& line) {
  write_state(*state, value);
  note_written(state, line);
  uint64_t& given = written()[state].given;
  Digest digest;
  digest.add(&given, sizeof given);
  digest.add(value.bytes->data(), value.bytes->size());
  given = digest.number();
}

bool any_written(const std::vector<std::shared_ptr<State>>& states) {
  return !written().empty() &&
         std::any_of(states.begin(), states.end(), [](auto& s) { return written().contains(s); });
}

std::string not_finite(const HostTensor& value, bool nan_only, const Dims& offset) {
  const int32_t dtype = value.type.dtype;
  if (!any_special(value)) return "";
  const auto width = static_cast<size_t>(orr_dtype_bytes(dtype));
  for (size_t i = 0; i < static_cast<size_t>(value.type.elements()); ++i) {
    const double x = read_element(dtype, value.bytes->data() + i * width);
    if (std::isfinite(x) || (nan_only && !std::isnan(x))) continue;
    Dims at(value.type.dims.size());
    int64_t rest = static_cast<int64_t>(i);
    for (size_t d = at.size(); d-- > 0; rest /= value.type.dims[d])
      at[d] = rest % value.type.dims[d] + 1 + (offset.empty() ? 0 : offset[d]);
    return fmt::format("{} at {}", x, to_string(at));
  }
  return "";
}

}  // namespace orrery
