// SPDX-License-Identifier: Apache-2.0
//
// attention and its gradient: on tensor cores for 16-bit heads of up to 128 elements without a
// bias, plainly for all others.
#include "../device/attention.h"

#include <orrery/sdk/attention_checks.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "../function.h"
#include "../op.h"

namespace orr_cuda {
namespace {

constexpr int64_t kSharedLimit = 160 << 10;  // what sm_80 has, nearly
constexpr int64_t kFlashDepth = 128;

struct Shape {
  // Reads the shape from q and k. In the gradient `do` comes before them.
  explicit Shape(const orr_op& op) {
    const bool forward = std::string_view(op.kind) == "attention";
    const orr_tensor* q = op.in + (forward ? 0 : 1);
    bias = forward ? orr::attention_operands : orr::attention_grad_operands;
    biased = orr::attention_has_bias(op, bias);
    heads = q[0].dims[0] * q[0].dims[1];
    queries = q[0].dims[2];
    keys = q[1].dims[2];
    depth = q[0].dims[3];
    dtype = q[0].dtype;
    scale = orr::attr_real(op, "scale", 1.0);
  }

  // The largest score is found before it is scaled, which a negative scale would turn around.
  bool flash() const {
    return orr_dtype_bytes(dtype) == 2 && depth <= kFlashDepth && scale > 0 && !biased;
  }
  int dropout() const { return bias + biased; }  // the first input that dropout would have
  int64_t bytes() const { return dtype == ORR_F64 ? 8 : 4; }
  // Rows of a block: of plain kernels as many as six tiles of fit.
  int64_t tile() const { return flash() ? kFlashRows : depth * bytes() <= 512 ? 32 : 16; }
  int width() const { return depth <= 64 ? 64 : 128; }
  // Bytes of `tiles` tiles of rows and `squares` of scores.
  int64_t plain_shared(int tiles, int squares) const {
    const int64_t rows = tile();
    return (tiles * rows * (depth + 1) + squares * rows * (rows + 1)) * bytes();
  }
  // Bytes of `fixed` tiles, of four buffers of `step` rows, and of what the gradient keeps of them.
  int64_t flash_shared(int64_t fixed, int64_t step) const {
    return (fixed * kFlashRows + 4 * step) * width() * 2 + 4 * step * int64_t{sizeof(float)};
  }

  int64_t heads, queries, keys, depth;
  int32_t dtype;
  double scale;
  int bias;  // the input that it is or would be
  bool biased;
};

// Throws Unsupported if its tensors are too large: of plain kernels so many tiles of rows, and of
// scores, must fit into shared memory.
void require_room(const orr_op& op, int tiles, int squares) {
  const Shape s(op);
  require(s.heads < 1 << 16, "65,536 heads of the batch, or more");
  require(s.queries < 1 << 30 && s.keys < 1 << 30, "2^30 queries or keys, or more");
  require(s.flash() || s.plain_shared(tiles, squares) <= kSharedLimit,
          "heads of " + std::to_string(s.depth) + " elements do not fit into shared memory");
}

void say_numerics(const orr_op& op, orr_support& out) {
  orr::copy_text(out.numerics, Shape(op).flash()
                                   ? "cuda.attention.flash.2: keys by 64, mma f32"
                                   : "cuda.attention.plain.1: tiles by depth, no fma");
}

void supports(const orr_op& op, orr_support& out) {
  require_attention(op);
  require_room(op, 4, 1);
  out.strided_in = 15;
  out.strided_out = 1;
  say_numerics(op, out);
}

void supports_grad(const orr_op& op, orr_support& out) {
  require_attention_grad(op);
  require_room(op, 6, 2);
  out.strided_in = 95;
  out.strided_out = 7;
  say_numerics(op, out);
}

// delta
uint64_t measure_grad(const orr_op& op) {
  const Shape s(op);
  return uint64_t(s.heads * s.queries * s.bytes());
}

// One device function with its launch, over tiles of `rows` rows.
struct Step {
  void prepare(const std::string& name, int64_t shared_bytes) {
    function = find_function(name);
    shared = unsigned(shared_bytes);
    if (shared > 48 << 10) allow_shared(function, shared);
  }
  void operator()(CUstream stream, const AttentionArgs& args, int64_t length, int64_t rows,
                  const Shape& s) const {
    const Extent grid{unsigned((length + rows - 1) / rows), unsigned(s.heads)};
    enqueue(stream, function, grid, {kFlashThreads}, shared, args);
  }
  Function function;
  unsigned shared;
};
static_assert(int(kFlashThreads) == int(kPlainThreads));

// What forward and gradient share: shapes and the arguments that every launch has.
struct AttentionBase : Prepared {
  AttentionBase(const orr_op& op, const orr_tensor& q)
      : shape_(op),
        suffix_(std::string("_") + dtype_name(shape_.dtype)),
        bias_(op.in[shape_.biased ? shape_.bias : 0]) {
    const orr::AttentionDropout dropout(op, shape_.dropout());
    drops_ = dropout.on();
    args_.first_row = dropout.row(0, 0, shape_.queries);
    args_.head_total = int32_t(dropout.heads());
    args_.rng_id = dropout.rng_id();
    args_.dropout = dropout.rate();
    args_.keep = dropout.scale();
    args_.heads = int32_t(q.dims[1]);
    args_.queries = int32_t(shape_.queries);
    args_.keys = int32_t(shape_.keys);
    args_.depth = int32_t(shape_.depth);
    args_.scale = shape_.scale;
    args_.causal = orr::attr_int(op, "causal", 0) != 0;
    args_.packets = shape_.depth % 8 == 0 && orr_dtype_bytes(shape_.dtype) == 2;
    suffix_ = "_" + std::to_string(shape_.flash() ? shape_.width() : shape_.tile()) + suffix_;
  }

  // The arguments of a launch, without the tensors that only one of the two has.
  AttentionArgs args_of(const Buffers& b) const {
    AttentionArgs args = args_;
    if (shape_.biased) args.bias = heads(bias_, b.in[shape_.bias], args);
    if (!drops_) return args;
    const auto scalar = [&](int i) {
      return static_cast<const int64_t*>(pointer(b.in[shape_.dropout() + i]));
    };
    args.seed = scalar(0), args.step = scalar(1), args.base = scalar(2);
    return args;
  }

  static Heads heads(const orr_tensor& t, CUdeviceptr at, AttentionArgs& args) {
    const int64_t bits = int64_t(at) | t.strides[0] * 2 | t.strides[1] * 2 | t.strides[2] * 2;
    if (bits % 16 != 0) args.packets = false;
    return {pointer(at), t.strides[0], t.strides[1], t.strides[2]};
  }

  Shape shape_;
  std::string suffix_;  // of device functions: "_32_f32", "_64_bf16"
  orr_tensor bias_;
  bool drops_;
  AttentionArgs args_{};
};

struct Attention : AttentionBase {
  explicit Attention(const orr_op& op)
      : AttentionBase(op, op.in[0]), q_(op.in[0]), k_(op.in[1]), v_(op.in[2]), o_(op.out[0]) {
    args_.wide_lse = op.out[1].dtype == ORR_F64;
    if (shape_.flash())
      step_.prepare("flash" + suffix_, shape_.flash_shared(1, kFlashKeys));
    else
      step_.prepare("attention" + suffix_, shape_.plain_shared(4, 1));
  }

  void launch(CUstream stream, const Buffers& b) override {
    AttentionArgs args = args_of(b);
    args.q = heads(q_, b.in[0], args);
    args.k = heads(k_, b.in[1], args);
    args.v = heads(v_, b.in[2], args);
    args.o = heads(o_, b.out[0], args);
    args.lse = pointer(b.out[1]);
    step_(stream, args, shape_.queries, shape_.tile(), shape_);
  }

  orr_tensor q_, k_, v_, o_;
  Step step_;
};

// A lane reads packets of 8 elements, or single ones.
int delta_lanes(const AttentionArgs& args) {
  int lanes = args.packets ? 1 : 32;
  while (lanes < 32 && lanes * 8 < args.depth) lanes *= 2;
  return lanes;
}

struct AttentionGrad : AttentionBase {
  explicit AttentionGrad(const orr_op& op)
      : AttentionBase(op, op.in[1]), in_(op.in, op.in + 5), out_(op.out, op.out + op.n_out) {
    args_.wide_lse = op.in[5].dtype == ORR_F64;
    delta_.prepare(std::string("attention_delta_") + dtype_name(shape_.dtype), 0);
    const int64_t flash = shape_.flash_shared(2, flash_step(shape_.width()));
    const bool fast = shape_.flash();
    const std::string name = fast ? "flash_grad" : "attention_grad";
    q_.prepare(name + "_q" + suffix_, fast ? flash : shape_.plain_shared(5, 2));
    kv_.prepare(name + "_kv" + suffix_, fast ? flash : shape_.plain_shared(6, 2));
  }

  void launch(CUstream stream, const Buffers& b) override {
    AttentionArgs args = args_of(b);
    args.d_o = heads(in_[0], b.in[0], args);
    args.q = heads(in_[1], b.in[1], args);
    args.k = heads(in_[2], b.in[2], args);
    args.v = heads(in_[3], b.in[3], args);
    args.o = heads(in_[4], b.in[4], args);
    args.dq = heads(out_[0], b.out[0], args);
    args.dk = heads(out_[1], b.out[1], args);
    args.dv = heads(out_[2], b.out[2], args);
    if (out_.size() == 4) args.d_bias = heads(out_[3], b.out[3], args);
    args.lse = pointer(b.in[5]);
    args.delta = pointer(b.workspace);
    args.delta_lanes = delta_lanes(args);
    delta_(stream, args, shape_.queries, kPlainThreads / args.delta_lanes, shape_);
    q_(stream, args, shape_.queries, shape_.tile(), shape_);
    kv_(stream, args, shape_.keys, shape_.tile(), shape_);
  }

  std::vector<orr_tensor> in_, out_;
  Step delta_, q_, kv_;
};

}  // namespace

const Family attention_family = {"attention", supports, nullptr, prepare_as<Attention>};
const Family attention_grad_family = {"attention_grad", supports_grad, measure_grad,
                                      prepare_as<AttentionGrad>};

}  // namespace orr_cuda
