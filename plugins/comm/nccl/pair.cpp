// SPDX-License-Identifier: Apache-2.0
//
// Messages of host buffers. NCCL has no tags and does not say what is sent: a head goes before each
// message, with the message itself if it is short. Messages between two ranks match in their order.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "comm.h"

namespace nccl {
namespace {

constexpr int64_t piece_bytes = 1 << 20;
constexpr int64_t inline_bytes = 2 << 10;

struct Head {
  int64_t count;
  int32_t dtype, tag;
  shared::Label label;
  char data[inline_bytes];
};

int64_t bytes_of(const orr_coll& c) { return c.count * orr_dtype_bytes(c.dtype); }

int64_t total(const std::vector<orr::exchange::Message>& all) {
  return std::accumulate(all.begin(), all.end(), int64_t{0},
                         [](int64_t n, const orr::exchange::Message& m) { return n + m.bytes; });
}

// Spans, taken from the front in runs of what fits.
class Cursor {
 public:
  explicit Cursor(const std::vector<orr::exchange::Message>& all) {
    for (const orr::exchange::Message& m : all) spans_.push_back({m.data, m.bytes});
  }
  std::vector<Span> take(int64_t most) {
    std::vector<Span> run;
    while (most > 0 && at_ < spans_.size()) {
      Span& s = spans_[at_];
      const int64_t n = std::min(most, s.bytes);
      run.push_back({s.data, n});
      s.data += n, s.bytes -= n, most -= n;
      if (s.bytes == 0) ++at_;
    }
    return run;
  }

 private:
  std::vector<Span> spans_;
  size_t at_ = 0;
};

// What the messages have in [at, at + piece_bytes).
std::vector<orr::exchange::Message> cut(const std::vector<orr::exchange::Message>& all,
                                        int64_t at) {
  std::vector<orr::exchange::Message> pieces;
  for (const orr::exchange::Message& m : all)
    if (m.bytes > at) pieces.push_back({m.peer, m.data + at, std::min(piece_bytes, m.bytes - at)});
  return pieces;
}

std::string end_of(int64_t count, int32_t dtype, const shared::Label& label, int32_t tag) {
  return shared::end_of_message(count, dtype, label) + (tag ? ", tag " + std::to_string(tag) : "");
}
std::string end_of(const Head& h) { return end_of(h.count, h.dtype, h.label, h.tag); }
std::string end_of(const Awaited& b) {
  return end_of(b.card.count, b.card.dtype, b.card.label, b.tag);
}

Head head_of(const orr_coll& c) { return {c.count, c.dtype, c.tag, shared::label_of(c), {}}; }

}  // namespace

void Comm::upload(CUdeviceptr to, const std::vector<orr::exchange::Message>& from) {
  Cursor cursor(from);
  const CUstream stream = family_->device().stream();
  for (std::vector<Span> run; !(run = cursor.take(Staging::slot_bytes)).empty();) {
    Slot& slot = family_->staging().next();
    empty(slot);
    int64_t n = 0;
    for (const Span& s : run) {
      std::memcpy(slot.pinned + n, s.data, static_cast<size_t>(s.bytes));
      n += s.bytes;
    }
    check_cuda(library().cuMemcpyHtoDAsync(to, slot.pinned, n, stream), "cuMemcpyHtoDAsync");
    slot.used.record(stream);
    slot.busy = true;
    to += n;
  }
}

void Comm::download(const std::vector<orr::exchange::Message>& to, CUdeviceptr from) {
  Cursor cursor(to);
  const CUstream stream = family_->device().stream();
  for (std::vector<Span> run; !(run = cursor.take(Staging::slot_bytes)).empty();) {
    Slot& slot = family_->staging().next();
    empty(slot);
    int64_t n = 0;
    for (const Span& s : run) n += s.bytes;
    check_cuda(library().cuMemcpyDtoHAsync(slot.pinned, from, n, stream), "cuMemcpyDtoHAsync");
    slot.to = std::move(run);
    slot.used.record(stream);
    slot.busy = true;
    from += n;
  }
  flush();
}

// One group of NCCL's for all: whichever peer comes first is served first.
void Comm::ship(const std::vector<orr::exchange::Message>& sends,
                const std::vector<orr::exchange::Message>& recvs) {
  const int64_t out = total(sends), in = total(recvs);
  if (out + in == 0) return;
  const Library& lib = library();
  const CUstream stream = family_->device().stream();
  const CUdeviceptr ground = family_->staging().ground(out + in);
  upload(ground, sends);
  issue("ncclSend and ncclRecv", [&] {
    CUdeviceptr at = ground;
    for (const orr::exchange::Message& m : sends) {
      check_nccl(lib.ncclSend(pointer(at), m.bytes, ncclUint8, m.peer, comm_, stream), "ncclSend");
      at += m.bytes;
    }
    for (const orr::exchange::Message& m : recvs) {
      check_nccl(lib.ncclRecv(pointer(at), m.bytes, ncclUint8, m.peer, comm_, stream), "ncclRecv");
      at += m.bytes;
    }
  });
  Event shipped;  // with nothing to receive, too: the ground is not ours before
  shipped.record(stream);
  await(out + in, [&] { return shipped.done(); });
  download(recvs, ground + out);
}

// In rounds of one piece of each message, so that memory is bounded. Both ends of a message know
// its size, hence its rounds.
void Comm::exchange(const std::vector<orr::exchange::Message>& sends,
                    const std::vector<orr::exchange::Message>& recvs) {
  int64_t longest = 0;
  for (const auto* list : {&sends, &recvs})
    for (const orr::exchange::Message& m : *list) longest = std::max(longest, m.bytes);
  for (int64_t at = 0; at < longest; at += piece_bytes) ship(cut(sends, at), cut(recvs, at));
}

// All of a group at once, however large: rounds would make a send wait for an unrelated receive.
void Comm::transfer(const std::vector<orr_coll>& ops) {
  std::vector<const orr_coll*> pairs;
  for (const orr_coll& c : ops)
    if (shared::paired(c)) pairs.push_back(&c);
  if (pairs.empty()) return;
  current_ = pairs.front();
  std::vector<Head> heads(pairs.size());
  std::vector<orr::exchange::Message> sends, recvs;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const orr_coll& c = *pairs[i];
    const bool out = c.op == ORR_COLL_SEND;
    const int64_t bytes = bytes_of(c);
    char* data = bytes > 0 ? orr::data<char>(out ? c.send : c.recv) : nullptr;
    if (out) heads[i] = head_of(c);
    if (out && bytes > 0 && bytes <= inline_bytes)
      std::memcpy(heads[i].data, data, static_cast<size_t>(bytes));
    auto& list = out ? sends : recvs;
    list.push_back({c.root_or_peer, reinterpret_cast<char*>(&heads[i]), sizeof(Head)});
    if (bytes > inline_bytes) list.push_back({c.root_or_peer, data, bytes});
  }
  ship(sends, recvs);
  for (size_t i = 0; i < pairs.size(); ++i) {
    const orr_coll& c = *pairs[i];
    const Head &came = heads[i], wanted = head_of(c);
    if (c.op == ORR_COLL_SEND) continue;
    if (came.count != wanted.count || came.dtype != wanted.dtype || came.tag != wanted.tag)
      family_->fail(ORR_FAILED, shared::unequal_ends(world_of_[c.root_or_peer], end_of(came),
                                                     family_->rank(), end_of(wanted)));
    const int64_t bytes = bytes_of(c);
    if (bytes > 0 && bytes <= inline_bytes)
      std::memcpy(orr::data<char>(c.recv), came.data, static_cast<size_t>(bytes));
  }
}

// All wait. Do two of them wait for things that never meet?
void Comm::compare_waits(const std::vector<Awaited>& all) {
  if (!current_) return;
  const Awaited mine = own_awaited();
  const int me = family_->rank();
  for (int r : world_of_) {
    const Awaited& b = all[static_cast<size_t>(r)];
    if (r == me || b.comm != id_) continue;
    const bool out = mine.card.op == ORR_COLL_SEND, messages = mine.message && b.message;
    const bool ends = messages && mine.peer == r && b.peer == me && mine.card.op != b.card.op;
    if (ends && end_of(mine) != end_of(b))
      family_->fail(ORR_FAILED, shared::unequal_ends(out ? me : r, end_of(out ? mine : b),
                                                     out ? r : me, end_of(out ? b : mine)));
    if (!messages && !shared::agree(mine.card, b.card))
      family_->fail(ORR_FAILED, me < r ? shared::disagreement(mine.card, me, b.card, r)
                                       : shared::disagreement(b.card, r, mine.card, me));
  }
}

}  // namespace nccl
