// SPDX-License-Identifier: Apache-2.0
#include "comm/composition.h"

namespace orrery {
namespace {

// A Messenger that notes the messages and folds instead of carrying them out.
class Notes {
 public:
  using Address = Spot;
  static constexpr int64_t most_scratch = 32 << 20;  // bytes; enough to keep link and device busy

  explicit Notes(Composition& to) : to_(to) {}
  const orr::FoldOrder& order() const { return to_.order; }
  static Spot send() { return {Spot::send, 0}; }
  static Spot recv() { return {Spot::recv, 0}; }
  Spot scratch(int64_t bytes) {
    to_.scratch = bytes;
    return {Spot::scratch, 0};
  }
  using Messages = std::vector<orr::exchange::MessageAt<Spot>>;
  void exchange(const Messages& sends, const Messages& recvs) {
    to_.rounds.push_back({sends, recvs, {}});
  }
  void fold(const std::vector<Spot>& in, Spot out, int64_t n) {
    to_.rounds.back().fold = SpotFold{in, out, n};
  }

 private:
  Composition& to_;
};

}  // namespace

orr_buffer buffer_at(const Spot& spot, int64_t bytes, const orr_coll& c,
                     const orr_buffer& scratch) {
  const orr_buffer& of = spot.in == Spot::send ? c.send : spot.in == Spot::recv ? c.recv : scratch;
  return {of.memory, of.offset + static_cast<uint64_t>(spot.offset), static_cast<uint64_t>(bytes)};
}

Composition compose(const orr_coll& c, int rank, int ranks) {
  Composition made{orr::FoldOrder(c, ranks), {}, 0};
  Notes notes(made);
  orr::exchange::Reduction(c, rank, ranks, notes).run();
  return made;
}

}  // namespace orrery
