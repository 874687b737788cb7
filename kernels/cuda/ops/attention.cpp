// SPDX-License-Identifier: Apache-2.0
//
// attention and its gradient: on tensor cores for 16-bit heads of up to 256 elements, plainly for
// all others.
#include "../device/attention.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <orrery/sdk/attention_checks.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../function.h"
#include "../op.h"

namespace orr_cuda {
namespace {

constexpr int64_t kFlashDepth = 256;

bool is_grad(const orr_op& op) { return std::string_view(op.kind) != "attention"; }

struct Shape {
  // Reads the shape from q and k. In the gradient `do` comes before them.
  explicit Shape(const orr_op& op) : grad(is_grad(op)) {
    const orr_tensor* q = op.in + grad;
    bias = grad ? orr::attention_grad_operands : orr::attention_operands;
    biased = orr::attention_has_bias(op, bias);
    heads = q[0].dims[0] * q[0].dims[1];
    readers = q[1].dims[1] > 0 ? q[0].dims[1] / q[1].dims[1] : 1;
    queries = q[0].dims[2];
    keys = q[1].dims[2];
    depth = q[0].dims[3];
    dtype = q[0].dtype;
    scale = orr::attr_real(op, "scale", 1.0);
  }

  // The largest score is found before it is scaled, which a negative scale would turn around.
  bool flash() const { return orr_dtype_bytes(dtype) == 2 && depth <= kFlashDepth && scale > 0; }
  int dropout() const { return bias + biased; }  // the first input that dropout would have
  int64_t bytes() const { return dtype == ORR_F64 ? 8 : 4; }
  // Rows of a block: of plain kernels as many as six tiles of fit.
  int64_t tile() const { return flash() ? kFlashRows : depth * bytes() <= 512 ? 32 : 16; }
  int width() const { return depth <= 64 ? 64 : depth <= 128 ? 128 : 256; }
  // The shared memory of a block. Of plain kernels: `tiles` tiles of rows, and one of scores, or
  // two in the gradient. Of others: q, and do in the gradient, four buffers of the rows that go by,
  // two of the bias, and what the gradient keeps of these.
  int64_t shared(int tiles) const {
    const int64_t rows = tile(), squares = grad ? 2 : 1;
    if (!flash()) return (tiles * rows * (depth + 1) + squares * rows * (rows + 1)) * bytes();
    const int64_t step = grad ? flash_step(width()) : flash_keys(width());
    return (squares * rows + 4 * step) * width() * 2 + (biased ? 2 * kFlashRows * 64 * 2 : 0) +
           4 * step * int64_t{sizeof(float)};
  }
  int64_t delta_bytes() const { return grad ? round_up(heads * queries * bytes(), 16) : 0; }

  bool grad;
  int64_t heads, readers, queries, keys, depth;  // readers: heads of queries to one of keys
  int32_t dtype;
  double scale;
  int bias;  // the input that it is or would be
  bool biased;
};

void supports(const orr_op& op, orr_support& out) {
  is_grad(op) ? require_attention_grad(op) : require_attention(op);
  const Shape s(op);
  require(s.heads < 1 << 16, "65,536 heads of the batch, or more");
  require(s.queries < 1 << 30 && s.keys < 1 << 30, "2^30 queries or keys, or more");
  const int64_t window = orr::attr_int(op, "window", 0);
  require(window < 1 << 28 && (!window || std::max(s.queries, s.keys) < 1 << 28),
          "a window of 2^28 keys, or over so many");
  require(s.flash() || s.shared(s.grad ? 6 : 4) <= kMostShared,
          "heads of " + std::to_string(s.depth) + " elements do not fit into shared memory");
  out.strided_in = s.grad ? 95 : 15;
  out.strided_out = s.grad ? 7 : 1;
  const bool groups = !s.grad || !s.flash() || flash_groups(s.width(), s.biased);
  out.takes = ORR_TAKES_WINDOW | (groups ? ORR_TAKES_GROUPED_HEADS : 0);
  orr::copy_text(out.numerics, s.flash() ? "cuda.attention.flash.3: keys by 64, mma f32"
                                         : "cuda.attention.plain.2: tiles by depth, no fma");
}

// What a bias lets be seen by tiles, for kernels on tensor cores.
struct Seen {
  Seen(const Shape& s, const orr_tensor& bias) {
    const auto own = [&](int d) { return bias.strides[d] == 0 ? int64_t{1} : bias.dims[d]; };
    all_heads = int32_t(bias.dims[1]);
    batch = own(0), heads = own(1), queries = own(2), keys = s.keys;
    down = divide_up(queries, int64_t{kSeenRows}), across = divide_up(keys, int64_t{kSeenRows});
  }
  int64_t bytes() const { return batch * heads * down * across; }
  // Where the byte of each tile lies.
  Heads place(CUdeviceptr at) const {
    const int64_t head = down * across;
    return {pointer(at), batch > 1 ? heads * head : 0, heads > 1 ? head : 0, down > 1 ? across : 0,
            all_heads};
  }

  int64_t batch, heads, queries, keys;  // 1 where it is one for all
  int64_t down, across;                 // tiles
  int32_t all_heads;                    // of the scores
};

// delta in the gradient, then what a bias lets be seen.
uint64_t measure(const orr_op& op) {
  const Shape s(op);
  const bool looks = s.biased && s.flash();
  return uint64_t(s.delta_bytes() + (looks ? Seen(s, op.in[s.bias]).bytes() : 0));
}

// A device function with its launch, over the tiles of each head of queries, or of keys.
struct Step {
  Step(const std::string& name, const Shape& s, bool of_keys, int tiles, unsigned parts = 1)
      : function(find_function(name)),
        grid{unsigned(divide_up(of_keys ? s.keys : s.queries, s.tile())),
             unsigned(of_keys ? s.heads / s.readers : s.heads), parts},
        shared(unsigned(s.shared(tiles))) {
    // Heads of several depths share a plain function.
    if (shared > 48 << 10) allow_shared(function, s.flash() ? shared : unsigned(kMostShared));
  }
  Function function;
  Extent grid;
  unsigned shared;
};
static_assert(int(kFlashThreads) == int(kPlainThreads));

// The launch that finds what a bias lets be seen.
struct Look {
  Look(const Shape& s, const orr_tensor& bias)
      : seen(s, bias), function(find_function(std::string("flash_seen_") + dtype_name(s.dtype))) {}
  void launch(CUstream stream, const AttentionArgs& a) const {
    const SeenArgs args{a.bias, static_cast<unsigned char*>(a.seen.data), int32_t(seen.heads),
                        int32_t(seen.queries), int32_t(seen.keys)};
    const int64_t blocks = divide_up(seen.down * seen.across, int64_t{kSeenTiles});
    enqueue(stream, function, {unsigned(blocks), unsigned(seen.batch * seen.heads)}, {kSeenThreads},
            0, args);
  }

  Seen seen;
  Function function;
};

struct Attention : Prepared {
  explicit Attention(const orr_op& op)
      : shape_(op), in_(op.in, op.in + op.n_in), out_(op.out, op.out + op.n_out) {
    set_arguments(op);
    const bool flash = shape_.flash();
    const std::string suffix = "_" + std::to_string(flash ? shape_.width() : shape_.tile()) + "_" +
                               dtype_name(shape_.dtype);
    const std::string name = flash ? "flash" : "attention";
    const std::string end = (flash && shape_.biased ? "_bias" : "") + suffix;
    if (flash && shape_.biased) look_.emplace(shape_, in_[size_t(shape_.bias)]);
    if (shape_.grad) {
      const auto parts = [&](bool of_keys) {
        return flash ? unsigned(flash_parts(shape_.width(), shape_.biased, of_keys)) : 1;
      };
      steps_.emplace_back(name + "_grad_q" + end, shape_, false, 5, parts(false));
      steps_.emplace_back(name + "_grad_kv" + end, shape_, true, 6, parts(true));
    } else {
      steps_.emplace_back(name + end, shape_, false, 4);
    }
  }

  void launch(CUstream stream, const Buffers& b) override {
    using A = AttentionArgs;
    AttentionArgs args = args_;
    if (shape_.grad) {
      point(args, {&A::d_o, &A::q, &A::k, &A::v, &A::o}, in_.data(), b.in);
      point(args, {&A::dq, &A::dk, &A::dv}, out_.data(), b.out);
      if (out_.size() == 4) point(args, {&A::d_bias}, &out_[3], b.out + 3);
    } else {
      point(args, {&A::q, &A::k, &A::v}, in_.data(), b.in);
      point(args, {&A::o}, out_.data(), b.out);
    }
    if (shape_.biased) point_bias(args, b);
    if (drops_) {
      const auto scalar = [&](int i) { return pointer<int64_t>(b.in[shape_.dropout() + i]); };
      args.seed = scalar(0), args.step = scalar(1), args.base = scalar(2);
    }
    args.lse = pointer(shape_.grad ? b.in[5] : b.out[1]);
    args.delta = pointer(b.workspace);
    if (look_) look_->launch(stream, args);
    for (const Step& s : steps_)
      enqueue(stream, s.function, s.grid, {kFlashThreads}, s.shared, args);
  }

  // Query t sees the keys [t + first, t + last). Without a mask that is all of them.
  std::pair<int32_t, int32_t> sight(const orr_op& op) const {
    const orr::AttentionSight sees(op, shape_.queries, shape_.keys);
    const int64_t place = shape_.keys - shape_.queries;  // of query 0
    int64_t first = 1 - (int64_t{1} << 30), last = shape_.keys;
    if (sees.window) first = place - sees.window + 1, last = place + sees.window;
    if (sees.causal) last = place + 1;
    return {int32_t(first), int32_t(last)};
  }

  // What every launch has.
  void set_arguments(const orr_op& op) {
    const orr::AttentionDropout dropout(op, shape_.dropout());
    drops_ = dropout.on();
    args_.first_row = dropout.row(0, 0, shape_.queries);
    args_.head_total = int32_t(dropout.heads());
    args_.rng_id = dropout.rng_id();
    args_.dropout = dropout.rate();
    args_.keep = dropout.scale();
    args_.heads = int32_t(op.in[shape_.grad].dims[1]);
    args_.queries = int32_t(shape_.queries);
    args_.keys = int32_t(shape_.keys);
    args_.depth = int32_t(shape_.depth);
    args_.scale = shape_.scale;
    args_.readers = int32_t(shape_.readers);
    const auto [first, last] = sight(op);
    args_.first = first, args_.last = last;
    args_.window = orr::attr_int(op, "window", 0) > 0;
    args_.packets = shape_.depth % 8 == 0 && orr_dtype_bytes(shape_.dtype) == 2;
    args_.wide_lse = (shape_.grad ? op.in[5] : op.out[1]).dtype == ORR_F64;
  }

  void point_bias(AttentionArgs& args, const Buffers& b) const {
    const orr_tensor& bias = in_[size_t(shape_.bias)];
    const CUdeviceptr at = b.in[shape_.bias];
    const int64_t* s = bias.strides;
    args.bias = {pointer(at), s[0], s[1], s[2], int32_t(bias.dims[1])};
    args.bias_packets =
        shape_.keys % 8 == 0 && (int64_t(at) | s[0] * 2 | s[1] * 2 | s[2] * 2) % 16 == 0;
    if (look_) args.seen = look_->seen.place(b.workspace + CUdeviceptr(shape_.delta_bytes()));
    if (out_.size() == 4) args.bias_words = shape_.keys % 2 == 0 && b.out[3] % 4 == 0;
  }

  // Tells the arguments where tensors lie, one after another.
  static void point(AttentionArgs& args, std::initializer_list<Heads AttentionArgs::*> to,
                    const orr_tensor* tensor, const CUdeviceptr* at) {
    for (Heads AttentionArgs::*place : to) {
      const int64_t* s = tensor->strides;
      if ((int64_t(*at) | s[0] * 2 | s[1] * 2 | s[2] * 2) % 16 != 0) args.packets = false;
      args.*place = {pointer(*at), s[0], s[1], s[2], int32_t(tensor->dims[1])};
      ++tensor, ++at;
    }
  }

  Shape shape_;
  std::vector<orr_tensor> in_, out_;
  bool drops_;
  AttentionArgs args_{};
  std::optional<Look> look_;
  std::vector<Step> steps_;
};

}  // namespace

const Family attention_family = {"attention", supports, measure, prepare_as<Attention>};
const Family attention_grad_family = {"attention_grad", supports, measure, prepare_as<Attention>};

}  // namespace orr_cuda
