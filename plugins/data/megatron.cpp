// SPDX-License-Identifier: Apache-2.0
#include "megatron.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "refuse.h"

namespace data {
namespace {

constexpr std::string_view kMagic("MMIDIDX\0\0", 9);
constexpr uint64_t kHeaderBytes = 9 + 8 + 1 + 8 + 8, kAtOnce = 1 << 16;

template <class T>
T number_at(const Bytes& file, uint64_t offset) {
  T value;
  file.read(&value, sizeof value, offset);
  return value;
}

struct Stored {
  const char* dtype;
  uint64_t bytes;
};

Stored stored_as(const Bytes& index) {
  const auto code = number_at<uint8_t>(index, 17);
  constexpr std::array<Stored, 9> all = {{{nullptr, 0},
                                          {"u8", 1},
                                          {"i8", 1},
                                          {"i16", 2},
                                          {"i32", 4},
                                          {"i64", 8},
                                          {nullptr, 0},
                                          {nullptr, 0},
                                          {"u16", 2}}};
  if (code >= all.size() || !all[code].dtype)
    refuse(index.label(), ": its dtype has the code ", int{code},
           ", which is none of whole numbers (1 to 5, or 8)");
  return all[code];
}

// Windows run over the whole file, so its sequences must be all of it, in order.
void check_sequences(const Bytes& index, uint64_t count, const Stored& stored, const Bytes& bin) {
  std::vector<int32_t> sizes(std::min(count, kAtOnce));
  std::vector<int64_t> begins(sizes.size());
  uint64_t at = 0;
  for (uint64_t first = 0; first < count; first += sizes.size()) {
    const uint64_t n = std::min<uint64_t>(sizes.size(), count - first);
    index.read(sizes.data(), n * sizeof sizes[0], kHeaderBytes + first * sizeof sizes[0]);
    index.read(begins.data(), n * sizeof begins[0],
               kHeaderBytes + count * sizeof sizes[0] + first * sizeof begins[0]);
    for (uint64_t i = 0; i < n; ++i) {
      if (sizes[i] < 0 || begins[i] < 0 || static_cast<uint64_t>(begins[i]) != at)
        refuse(index.label(), ": sequence ", first + i, " has ", sizes[i], " tokens from byte ",
               begins[i], " on, byte ", at,
               " expected: sequences lie one after another; write the files again");
      at += static_cast<uint64_t>(sizes[i]) * stored.bytes;
    }
  }
  if (at != bin.size())
    refuse(bin.label(), ": ", bin.size(), " bytes, its index ", index.label(), " tells of ", at,
           ": one of them is cut short or of another corpus");
}

}  // namespace

std::optional<MegatronTokens> megatron_tokens(const BytesPtr& index) {
  const std::string& label = index->label();
  std::string magic(std::min<uint64_t>(index->size(), kMagic.size()), '\0');
  index->read(magic.data(), magic.size(), 0);
  if (magic != kMagic) return std::nullopt;
  if (!label.ends_with(".idx"))
    refuse(label, ": it is an index of Megatron's, whose name ends in .idx; rename it back");
  if (index->size() < kHeaderBytes)
    refuse(label, ": the index is cut short; restore it from a copy");
  if (const auto version = number_at<uint64_t>(*index, 9); version != 1)
    refuse(label, ": the index has version ", version, ", only 1 is known");
  const Stored stored = stored_as(*index);
  const auto sequences = number_at<uint64_t>(*index, 18),
             documents = number_at<uint64_t>(*index, 26);
  const uint64_t held = index->size() - kHeaderBytes;
  const bool fits = sequences <= held / 12 && documents <= (held - 12 * sequences) / 8;
  const uint64_t rest = fits ? held - 12 * sequences - 8 * documents : 0;
  if (!fits || (rest != 0 && rest != sequences))  // a mode for each sequence may follow
    refuse(label, ": ", held, " bytes behind the header do not hold ", sequences, " sequences and ",
           documents, " documents: the index is cut short or altered");
  const BytesPtr bin = Bytes::open(label.substr(0, label.size() - 3) + "bin");
  check_sequences(*index, sequences, stored, *bin);
  return MegatronTokens{bin, stored.dtype};
}

}  // namespace data
