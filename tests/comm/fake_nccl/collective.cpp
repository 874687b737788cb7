// SPDX-License-Identifier: Apache-2.0
//
// What collectives do with the bytes. As in the real library, nobody may rely on the order of the
// adds: here it begins with another rank in every 64th element, and 16-bit types are rounded at
// every add.
#include <bit>
#include <cstring>
#include <type_traits>

#include "comm.h"

namespace fake {
namespace {

struct Bf16 {
  uint16_t bits;
  operator float() const { return std::bit_cast<float>(uint32_t{bits} << 16); }
  static Bf16 from(float x) {
    const uint32_t u = std::bit_cast<uint32_t>(x);
    return {static_cast<uint16_t>((u + 0x7FFF + (u >> 16 & 1)) >> 16)};
  }
};

template <class T>
struct Wide {
  using Type = T;
  static T narrow(T x) { return x; }
};
template <>
struct Wide<Bf16> {
  using Type = float;
  static Bf16 narrow(float x) { return Bf16::from(x); }
};

// Integers wrap: they are added and multiplied without a sign.
template <class T>
T add(T a, T b, int op) {
  using W = typename Wide<T>::Type;
  const W x = a, y = b;
  if (op == ncclMax) return Wide<T>::narrow(x < y ? y : x);
  if (op == ncclMin) return Wide<T>::narrow(y < x ? y : x);
  if constexpr (std::is_integral_v<W>) {
    const uint64_t u = static_cast<uint64_t>(x), v = static_cast<uint64_t>(y);
    return static_cast<W>(op == ncclProd ? u * v : u + v);
  } else {
    return Wide<T>::narrow(static_cast<W>(op == ncclProd ? x * y : x + y));
  }
}

template <class T>
void fold(const std::vector<const char*>& in, char* out, uint64_t n, int op) {
  const uint64_t ranks = in.size();
  for (uint64_t i = 0; i < n; ++i) {
    T sum{};
    for (uint64_t k = 0; k < ranks; ++k) {
      T x;
      std::memcpy(&x, in[(i / 64 + k) % ranks] + i * sizeof(T), sizeof(T));
      sum = k == 0 ? x : add(sum, x, op);
    }
    std::memcpy(out + i * sizeof(T), &sum, sizeof(T));
  }
}

void fold(const std::vector<const char*>& in, char* out, const Card& c, uint64_t n) {
  switch (c.dtype) {
    case ncclUint8: return fold<uint8_t>(in, out, n, c.redop);
    case ncclInt32: return fold<int32_t>(in, out, n, c.redop);
    case ncclInt64: return fold<int64_t>(in, out, n, c.redop);
    case ncclUint64: return fold<uint64_t>(in, out, n, c.redop);
    case ncclFloat16: return fold<_Float16>(in, out, n, c.redop);
    case ncclFloat32: return fold<float>(in, out, n, c.redop);
    case ncclFloat64: return fold<double>(in, out, n, c.redop);
    default: return fold<Bf16>(in, out, n, c.redop);
  }
}

}  // namespace

// Who gets what of whom follows from the name; what adds keeps all ranks' bytes first.
bool run_collective(Clique& clique, const Call& call) {
  const Card& c = call.card;
  const int me = clique.rank(), ranks = clique.ranks();
  const std::string name = c.name;
  const bool scatter = name == "ncclReduceScatter", gather = name == "ncclAllGather";
  const bool adds = scatter || name == "ncclAllReduce" || name == "ncclReduce";
  const uint64_t piece = c.count * call.unit;
  const auto wants = [&](int r) { return c.root < 0 || r == c.root; };  // of what adds
  std::vector<char> own(call.send, call.send + (call.send ? call.send_bytes : 0)),
      all(adds ? piece * ranks : 0);
  std::vector<Transfer> moves;
  for (int r = 0; r < ranks; ++r) {
    if (name == "ncclBroadcast") {
      if (me == c.root) moves.push_back({r, true, false, own.data(), piece});
      if (r == c.root) moves.push_back({r, false, false, call.recv, piece});
    } else if (gather) {
      moves.push_back({r, true, false, own.data(), piece});
      moves.push_back({r, false, false, call.recv + r * piece, piece});
    } else {
      if (wants(r))
        moves.push_back({r, true, false, own.data() + (scatter ? r * piece : 0), piece});
      if (wants(me)) moves.push_back({r, false, false, all.data() + r * piece, piece});
    }
  }
  if (!clique.move(moves)) return false;
  std::vector<const char*> in;
  for (int r = 0; r < ranks && adds; ++r) in.push_back(all.data() + r * piece);
  if (adds && wants(me)) fold(in, call.recv, c, c.count);
  return true;
}

}  // namespace fake
