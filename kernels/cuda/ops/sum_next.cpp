// SPDX-License-Identifier: Apache-2.0
//
// sum_next (orrery/sdk/joined.hpp): a sum of few rows and a pointwise op that reads it, in one
// launch. A block of threads that has made the sums of its columns computes from them all rows of
// the output in these columns.
#include <algorithm>
#include <orrery/sdk/expression_checks.hpp>

#include "../generated.h"
#include "../pointwise_source.h"
#include "pointwise_sum.h"

namespace orr_cuda {
namespace {

constexpr int64_t kMostRepeats = 2048;  // more are a launch's work
constexpr int64_t kTeams = 32;          // so many rows of threads compute repeated rows

// How often y has each row of s[outer, columns], which it reads with these strides: y is
// [outer, repeats, columns].
int64_t repeats_of(const orr_tensor& s, const orr_tensor& y, int64_t outer, int64_t columns) {
  const int64_t repeats = elements(y) / (outer * columns);
  require(repeats > 0 && repeats <= kMostRepeats && elements(y) == outer * repeats * columns,
          "a sum that is read too often");
  int64_t inner = 1;  // elements of the dims behind
  for (int d = y.rank; d-- > 0; inner *= y.dims[d]) {
    if (y.dims[d] == 1) continue;
    const bool column = inner < columns, repeated = !column && inner < columns * repeats;
    const int64_t end = column ? columns : repeated ? columns * repeats : elements(y);
    require(repeats == 1 || end % (inner * y.dims[d]) == 0, "a sum that is repeated otherwise");
    require(s.strides[d] == (repeats == 1 || column ? inner
                             : repeated             ? 0
                                                    : inner / repeats),
            "a sum that is repeated otherwise");
  }
  return repeats;
}

struct SumAndNext {
  explicit SumAndNext(const orr_op& op)
      : sum(*op.group->ops[0].op), next(*op.group->ops[1].op), stored(op.n_out > next.n_out) {
    const int32_t* in = op.group->ops[1].in;
    given = int32_t(std::find(in, in + next.n_in, op.group->ops[0].out[0]) - in);
    const FoldPlan plan = summed_plan(sum);
    require(plan.direct() && plan.segments * plan.columns > 0, "a sum of many rows");
    repeats = repeats_of(next.in[given], next.out[0], plan.segments, plan.columns);
  }

  const orr_op &sum, &next;
  int32_t given;    // which input of `next` the sum is
  int64_t repeats;  // of each row of it
  bool stored;      // the sum, behind the outputs of `next`
};

void supports(const orr_op& op, orr_support& out) {
  const SumAndNext both(op);
  require_summed(both.sum);
  check_expression(both.next);
  const Walk walk(both.next);
  out.strided_in = ~0u;
  orr::copy_text(out.numerics, "cuda.pointwise/2+reduce.1+pointwise/2: sums as in ops.h");
}

class SumNext : public Prepared {
 public:
  explicit SumNext(const orr_op& op) : SumNext(op, SumAndNext(op)) {}
  ~SumNext() override { --functions_->ops; }

  void launch(CUstream stream, const Buffers& b) override {
    auto at = std::copy_n(b.in, terms_, now_.addresses.begin());
    for (int i = 0, k = int(terms_); i < next_in_; ++i) *at++ = i == given_ ? 0 : b.in[k++];
    at = std::copy_n(b.out, next_out_, at);
    const CUdeviceptr sum = *at = stored_ ? b.out[next_out_] : 0;
    const bool vector = functions_->vector && aligned();
    const int64_t width = vector ? walk_.vector : 1, packets = plan_.columns / width;
    // Rows of threads, of which the first ones add.
    int64_t teams = std::max(blocks_, std::min(repeats_, kTeams));
    const int64_t tiles = divide_up(packets, pointwise_block / teams);
    const int64_t side = divide_up(packets, tiles);
    teams = std::max(teams, std::min(repeats_, pointwise_block / side));
    SumRows rows{
        {{pointer(sum)}}, uint64_t(plan_.segments), uint64_t(plan_.length), uint64_t(blocks_),
        rounded_,         uint64_t(side),           uint64_t(teams),        uint64_t(repeats_)};
    now_.blocks = unsigned(plan_.segments * tiles), now_.threads = unsigned(side * teams);
    now_.shared = unsigned(now_.threads * width * bytes_);
    void* arguments[] = {now_.addresses.data(), &rows};
    functions_->enqueue(stream, now_, vector, arguments);
  }

 private:
  SumNext(const orr_op& op, const SumAndNext& both) : SumNext(op, both, Summed(both.sum)) {}
  SumNext(const orr_op&, const SumAndNext& both, const Summed& first)
      : plan_(summed_plan(both.sum)),
        walk_(first.op, plan_.columns),
        next_walk_(both.next, plan_.columns),
        blocks_(std::max(int64_t{1}, divide_up(plan_.length, int64_t{ORR_SUM_ROWS}))),
        repeats_(both.repeats),
        bytes_(orr_dtype_bytes(accumulator(first.made.dtype))),
        terms_(both.sum.n_in),
        next_in_(both.next.n_in),
        next_out_(both.next.n_out),
        given_(both.given),
        stored_(both.stored),
        rounded_(both.sum.out[0].dtype == first.made.dtype) {
    walk_.vector = next_walk_.vector = std::min(walk_.vector, next_walk_.vector);
    const SumsNext next{&both.next, &next_walk_, given_, stored_};
    const ColumnSumsText text{plan_.columns, 1,     first.made.dtype, kFoldSum, 0,
                              true,          &next, rounded_};
    functions_ = &Generated::of(sums_source(first.op, walk_, text), "sums", walk_.vector > 1);
    functions_->add_op({});
    note_tensors(orr_dtype_bytes(both.sum.out[0].dtype));
  }

  // The inputs of both ops, the outputs, and the sum.
  void note_tensors(int64_t sum_bytes) {
    now_.inputs = size_t(terms_ + next_in_);
    for (int i = 0; i < terms_; ++i) now_.reaches.push_back(walk_.reach(size_t(i)));
    for (int i = 0; i < next_in_; ++i)
      now_.reaches.push_back(i == given_ ? Reach(0) : next_walk_.reach(size_t(i)));
    for (int j = 0; j < next_out_; ++j)
      now_.reaches.push_back(next_walk_.reach(size_t(next_in_ + j)));
    now_.reaches.emplace_back(stored_ ? uint64_t(plan_.segments * plan_.columns * sum_bytes) : 0);
    now_.addresses.resize(now_.reaches.size());
  }

  bool aligned() const {
    const auto next = now_.addresses.begin() + terms_;
    std::vector<CUdeviceptr> terms(now_.addresses.begin(), next);
    terms.push_back(0);  // they are not stored
    return walk_.aligned(terms) && next_walk_.aligned({next, now_.addresses.end() - 1});
  }

  FoldPlan plan_;
  Walk walk_, next_walk_;
  int64_t blocks_;  // of rows, in a segment
  int64_t repeats_, bytes_;
  int terms_, next_in_, next_out_;
  int32_t given_;
  bool stored_, rounded_;
  Generated* functions_ = nullptr;
  SmallLaunch now_;
};

}  // namespace

const Family sum_next_family = {"sum_next", supports, nullptr, prepare_as<SumNext>};

}  // namespace orr_cuda
