// SPDX-License-Identifier: Apache-2.0
//
// For kernel plugins: a group of sdk/claims.hpp as the one op, in the form of ops.h, that its kernel
// computes, and where that one's tensors are among those of the group.
#pragma once

#include <orrery/sdk/claims.hpp>
#include <orrery/sdk/op_checks.hpp>
#include <vector>

namespace orr {

// What a kernel computes for an op: of the kind "group" norm_grad or reduce_each, else the op itself.
// Borrows from the op.
class JoinedOp {
 public:
  // Throws Unsupported if the op is another group.
  explicit JoinedOp(const orr_op& op) : op_(op) {
    if (!op.group) {
      for (int32_t i = 0; i < op.n_in; ++i) places_.in.push_back(i);
      for (int32_t i = 0; i < op.n_out; ++i) places_.out.push_back(i);
      return;
    }
    const Readers ops(*op.group);
    require(ops.size() > 0, "an empty group");
    if (is_whole_sum(ops.op(0)))
      join_sums(ops);
    else
      join_norm_grads(ops);
    finish();
  }
  JoinedOp(const JoinedOp&) = delete;
  JoinedOp& operator=(const JoinedOp&) = delete;

  const orr_op& get() const { return op_; }

  // Where the kernel's tensors are at a launch.
  struct Places {
    std::vector<int32_t> in, out;  // by tensor: which of the launch's it is; -1: in `spare`
    // Outputs that nothing reads are none of the launch's: they lie in the workspace, behind that of
    // the kernel. By output: at which byte behind `begin` it begins.
    std::vector<uint64_t> spare;
    uint64_t spare_bytes = 0;

    // `own`: bytes of the kernel's workspace.
    static uint64_t begin(uint64_t own) { return (own + 255) / 256 * 256; }
    uint64_t workspace(uint64_t own) const { return spare_bytes ? begin(own) + spare_bytes : own; }
  };
  const Places& places() const { return places_; }

 private:
  static orr_tensor contiguous(int32_t dtype, std::initializer_list<int64_t> dims) {
    orr_tensor t{};
    t.dtype = dtype;
    for (int64_t d : dims) t.dims[t.rank++] = d;
    int64_t stride = 1;
    for (int i = t.rank; i-- > 0; stride *= t.dims[i]) t.strides[i] = stride;
    return t;
  }
  static orr_tensor flat(const orr_tensor& t) { return contiguous(t.dtype, {elements(t)}); }
  static orr_tensor rows(const orr_tensor& t) {
    int64_t n = 1;
    for (int i = 0; i + 1 < t.rank; ++i) n *= t.dims[i];
    return contiguous(t.dtype, {n, t.rank ? t.dims[t.rank - 1] : 1});
  }

  void add_in(int32_t value, const orr_tensor& form) {
    const orr_group& group = *op_.group;
    const int32_t* end = group.in + group.n_in;
    const int32_t* at = std::find(group.in, end, value);
    require(at != end, "not this group");
    places_.in.push_back(int32_t(at - group.in)), in_.push_back(form);
  }
  void add_out(int32_t value, const orr_tensor& form) {
    const orr_group& group = *op_.group;
    const int32_t* end = group.out + group.n_out;
    const int32_t* at = std::find(group.out, end, value);
    places_.out.push_back(at == end ? -1 : int32_t(at - group.out)), out_.push_back(form);
  }

  void join_norm_grads(const Readers& ops) {
    std::optional<NormGrads> found;
    for (int32_t i = 0; i < ops.size() && !found; ++i) found = norm_grads_of(ops, i);
    require(found && int32_t(found->all().size()) == ops.size(), "not this group");
    op_.kind = "norm_grad";
    const orr_op &input = ops.op(found->input), &params = ops.op(found->params);
    attrs_.assign(params.attrs, params.attrs + params.n_attrs);
    const std::vector<int32_t> read = ops.in(found->input);
    for (size_t i = 0; i < read.size(); ++i)
      add_in(read[i], i < 2 ? rows(input.in[i]) : flat(input.in[i]));
    int32_t y = ops.at(found->input).out[0];
    if (found->adder >= 0) {
      const orr_group_op& adder = ops.at(found->adder);
      add_in(adder.in[adder.in[0] == y], rows(input.out[0]));
      y = adder.out[0];
    }
    add_out(y, rows(input.out[0]));
    for (int j = 0; j < params.n_out; ++j)
      add_out(ops.at(found->params).out[j], flat(params.out[j]));
    if (found->summer >= 0) add_out(ops.at(found->summer).out[0], flat(params.out[0]));
  }

  void join_sums(const Readers& ops) {
    require(int32_t(whole_sums_of(ops, 0).size()) == ops.size(), "not this group");
    op_.kind = "reduce_each";
    attrs_.push_back(*attr(ops.op(0), "fn"));
    for (int32_t i = 0; i < ops.size(); ++i) {
      add_in(ops.at(i).in[0], flat(ops.op(i).in[0]));
      add_out(ops.at(i).out[0], contiguous(ops.op(i).out[0].dtype, {}));
    }
  }

  void finish() {
    op_.group = nullptr;
    op_.n_in = int32_t(in_.size()), op_.in = in_.data();
    op_.n_out = int32_t(out_.size()), op_.out = out_.data();
    op_.n_attrs = int32_t(attrs_.size()), op_.attrs = attrs_.data();
    for (size_t j = 0; j < out_.size(); ++j) {
      places_.spare.push_back(places_.spare_bytes);
      if (places_.out[j] >= 0) continue;
      const int64_t n = elements(out_[j]) * Leaves(op_).nodes();
      places_.spare_bytes += Places::begin(uint64_t(n * orr_dtype_bytes(out_[j].dtype)));
    }
  }

  orr_op op_;
  std::vector<orr_tensor> in_, out_;
  std::vector<orr_attr> attrs_;
  Places places_;
};

}  // namespace orr
