// SPDX-License-Identifier: Apache-2.0
#include "comm/agreement.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "comm/host_buffer.h"

namespace orrery {
namespace {

// A Description of fixed size, to be sent; longer texts are cut.
struct SentDescription {
  char text[200];
  char line[104];
};

uint64_t hash(const std::string& text) {
  uint64_t h = 0xcbf29ce484222325;
  for (unsigned char c : text) h = (h ^ c) * 0x100000001b3;
  return h;
}

template <class T>
std::vector<T> gather(const WorldComm::Post& post, T mine, int size, const std::string& where) {
  std::vector<T> all(static_cast<size_t>(size));
  const std::vector<int64_t> counts(all.size(), sizeof(T));
  const HostBuffer from(&mine, sizeof mine), to(all.data(), all.size() * sizeof(T));
  orr_coll c = collective(ORR_COLL_ALL_GATHER, ORR_U8, "agreement", where);
  c.counts = counts.data(), c.send = from.all(), c.recv = to.all();
  post({c});
  return all;
}

std::string to_text(int rank, const SentDescription& s) {
  return fmt::format("rank {} {}{}", rank, s.text, *s.line ? fmt::format(" ({})", s.line) : "");
}

[[noreturn]] void fail_different(const WorldComm::Post& post, const Description& description,
                                 const std::vector<Signature>& all, int one, int other) {
  SentDescription mine{};
  description.text.copy(mine.text, sizeof mine.text - 1);
  description.line.copy(mine.line, sizeof mine.line - 1);
  const std::vector<SentDescription> texts =
      gather(post, mine, static_cast<int>(all.size()), where_of(description));
  const SentDescription &a = texts[static_cast<size_t>(one)],
                        &b = texts[static_cast<size_t>(other)];
  std::string text =
      "ranks post different operations: " + to_text(one, a) + "; " + to_text(other, b);
  if (std::strcmp(a.text, b.text) == 0) text += "; tensors after those named differ";
  if (all[static_cast<size_t>(other)].joined)
    text +=
        "; after a rank has joined only allreduce, with op sum or mean, and barrier go on without "
        "it";
  throw Error(ORR_FAILED, text);
}

}  // namespace

std::string where_of(const Description& description) {
  return description.line.empty() ? description.text : description.line + ", " + description.text;
}

// All ranks have the same signatures, so all return or all throw the same error.
std::vector<Signature> agree(const WorldComm::Post& post, int size, Signature mine,
                             const Description& description) {
  if (!mine.joined) mine.what = hash(description.text);
  std::vector<Signature> all = gather(post, mine, size, where_of(description));
  int active = -1, joined = -1;
  for (int r = 0; r < size; ++r) {
    const Signature& n = all[static_cast<size_t>(r)];
    if (n.joined)
      joined = r;
    else if (active < 0)
      active = r;
    else if (n.what != all[static_cast<size_t>(active)].what)
      fail_different(post, description, all, active, r);
  }
  if (joined >= 0 && active >= 0 && !all[static_cast<size_t>(active)].stands_in)
    fail_different(post, description, all, active, joined);
  return all;
}

}  // namespace orrery
