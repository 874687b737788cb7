// SPDX-License-Identifier: Apache-2.0
//
// gather, slice_at, update_slice and iota.
#include "../device/index.h"

#include <algorithm>
#include <bit>
#include <orrery/sdk/kind_checks.hpp>

#include "../function.h"
#include "../late.h"
#include "../op.h"

namespace orr_cuda {
namespace {

// Enough blocks to fill any GPU; threads go over what is more.
Extent grid_of(int64_t units) {
  constexpr int64_t kBlocks = 1 << 14;
  return {unsigned(std::min(kBlocks, (units + kIndexThreads - 1) / kIndexThreads))};
}

// A mover of bytes, one function for each size of unit.
struct Mover {
  explicit Mover(const std::string& name) {
    for (int i = 0; i < 5; ++i) functions[i] = find_function(name + "_" + std::to_string(1 << i));
  }
  // The largest unit, as a power of two, that divides all of `bits`: sizes and addresses.
  static int unit(uint64_t bits) { return std::min(4, std::countr_zero(bits)); }
  Function functions[5];
};

// What moves bytes is exact; `inplace` as in orr_support.
template <auto require_op, int inplace = 0>
void supports(const orr_op& op, orr_support& out) {
  require_op(op);
  out.inplace = inplace;
  orr::copy_text(out.numerics, "exact");
}

struct Gather : Prepared {
  explicit Gather(const orr_op& op)
      : move_("gather"),
        late_(op, outside("index", op.in[0].dims[0], "rows of the table")),
        rows_(op.in[0].dims[0]),
        n_(op.in[1].dims[0]),
        bytes_(op.in[0].dims[1] * orr_dtype_bytes(op.in[0].dtype)),
        wide_(op.in[1].dtype == ORR_I64) {}

  void launch(CUstream stream, const Buffers& b) override {
    const int power = Mover::unit(uint64_t(bytes_) | b.in[0] | b.out[0]);
    const GatherArgs args{pointer(b.in[0]),  pointer(b.in[1]),
                          pointer(b.out[0]), n_,
                          bytes_ >> power,   rows_,
                          late_.args(),      wide_};
    enqueue(stream, move_.functions[power], grid_of(n_ * args.units), {kIndexThreads}, 0, args);
  }

  Mover move_;
  LateSource late_;
  int64_t rows_, n_, bytes_;
  bool wide_;
};

struct Slice : Prepared {
  explicit Slice(const orr_op& op)
      : update_(op.n_in == 3),
        x_(op.in[0]),
        length_((update_ ? op.in[1] : op.out[0]).dims[1]),
        move_(op.kind),
        late_(op, "at {value} with length " + std::to_string(length_) + " is outside the dim of " +
                      std::to_string(x_.dims[1])) {}

  void launch(CUstream stream, const Buffers& b) override {
    const int64_t bytes = x_.dims[2] * orr_dtype_bytes(x_.dtype);
    const int power = Mover::unit(uint64_t(bytes) | b.in[0] | b.out[0] | (update_ ? b.in[1] : 0));
    const SliceArgs args{
        pointer(b.in[0]),  update_ ? pointer(b.in[1]) : nullptr,
        pointer(b.out[0]), static_cast<const int64_t*>(pointer(b.in[update_ ? 2 : 1])),
        x_.dims[0],        x_.dims[1],
        length_,           bytes >> power,
        late_.args()};
    // A slice without elements is checked too.
    const bool whole = update_ && b.in[0] != b.out[0];
    const int64_t units = args.outer * args.units * (whole ? args.dim : args.length);
    enqueue(stream, move_.functions[power], grid_of(std::max(units, int64_t{1})), {kIndexThreads},
            0, args);
  }

  bool update_;
  orr_tensor x_;
  int64_t length_;
  Mover move_;
  LateSource late_;
};

struct Iota : Prepared {
  explicit Iota(const orr_op& op)
      : function_(find_function(std::string("iota_") + dtype_name(op.out[0].dtype))),
        n_(op.out[0].dims[0]),
        start_(orr::attr_int(op, "start", 0)) {}

  void launch(CUstream stream, const Buffers& b) override {
    const IotaArgs args{pointer(b.out[0]), n_, start_};
    enqueue(stream, function_, grid_of(n_), {kIndexThreads}, 0, args);
  }

  Function function_;
  int64_t n_, start_;
};

}  // namespace

const Family gather_family = {"gather", supports<require_gather>, nullptr, prepare_as<Gather>};
const Family slice_at_family = {"slice_at", supports<require_slice_at>, nullptr, prepare_as<Slice>};
const Family update_slice_family = {"update_slice", supports<require_update_slice, 1>, nullptr,
                                    prepare_as<Slice>};
const Family iota_family = {"iota", supports<require_iota>, nullptr, prepare_as<Iota>};

}  // namespace orr_cuda
