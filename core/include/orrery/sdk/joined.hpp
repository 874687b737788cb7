// SPDX-License-Identifier: Apache-2.0
//
// For kernel plugins: a group of sdk/claims.hpp as the one op, in the form of ops.h, that a kernel
// computes, and where that one's tensors are among those of the group.
#pragma once

#include <orrery/sdk/claims.hpp>
#include <orrery/sdk/op_checks.hpp>
#include <vector>

namespace orr {

// What a kernel computes for an op: of the kind "group" norm_grad, reduce_each, pointwise_next,
// pointwise_sum or sum_next, else the op itself. A pointwise_sum is x... -> s[O,I], leaves over K:
// the reduce of the expression's only output, seen as [O,K,I], which is not stored; x... have the
// dims that it has, up to stride 0, and ints "outer" and "columns" are O and I. A sum_next is x...,
// w... -> y..., s: its `group` has a pointwise_sum of x..., and a pointwise op of w... and the sum,
// which has the dims of y... up to stride 0; s is missing if nothing else reads it. In a
// pointwise_next the sum z of "reduce" may be s[O,C], without leaves: of each of O equal parts of
// the rows; and there may be two of them, of the first two results of the expression. Borrows from
// the op.
class JoinedOp {
 public:
  // `skips`: whether the plugin's kernel of the joined op does not write what nothing reads of the
  // results of its expression; null: no kernel. The op then has an int "unread", with a bit for
  // each such result, which has no memory. Throws Unsupported if the op is another group.
  explicit JoinedOp(const orr_op& op, bool (*skips)(const orr_op& joined) = nullptr) : op_(op) {
    if (!op.group) {
      for (int32_t i = 0; i < op.n_in; ++i) places_.in.push_back(i);
      for (int32_t i = 0; i < op.n_out; ++i) places_.out.push_back(i);
      return;
    }
    const Readers ops(*op.group);
    require(ops.size() > 0, "an empty group");
    if (is_whole_sum(ops.op(0)))
      join_sums(ops);
    else if (ops.size() == 2 && summed_before(ops, 1) == 0)
      join_sum_before(ops);
    else if (const auto sum = sum_next_of(ops, ops.size() - 1))
      join_sum_next(ops, *sum);
    else if (const auto two = ops.size() == 3 ? any_two_sums(ops) : std::nullopt)
      join_rows_next(ops, {two->first, two->next}, two->also);
    else if (const auto found = ops.size() == 2 ? rows_next_of(ops, 1) : std::nullopt)
      join_rows_next(ops, *found, -1);
    else
      join_norm_grads(ops);
    finish(skips);
  }
  JoinedOp(const JoinedOp&) = delete;
  JoinedOp& operator=(const JoinedOp&) = delete;

  const orr_op& get() const { return op_; }

  // Makes of the answer for get() that for the op. Throws Unsupported if the kernel does not repeat
  // elements that the group repeats.
  void answer(orr_support& support) const {
    if (places_.spare.empty()) return;
    uint32_t refused = 0;
    for (size_t i = 0; i < in_.size(); ++i) {
      if (support.strided_in >> std::min(i, size_t{31}) & 1) continue;
      require(!repeats(in_[i]), "no kernel repeats elements so");
      refused |= 1u << std::min(places_.in[i], 31);
    }
    support.strided_in = ~refused, support.strided_out = 0, support.inplace = 0;
  }

  // Where the kernel's tensors are at a launch.
  struct Places {
    std::vector<int32_t> in, out;  // by tensor: which of the launch's it is; -1: in `spare`
    // Outputs that nothing reads are none of the launch's: they lie in the workspace, behind that
    // of the kernel. By output: at which byte behind `begin` it begins.
    std::vector<uint64_t> spare;  // kNowhere: it has no memory
    uint64_t spare_bytes = 0;
    static constexpr uint64_t kNowhere = ~uint64_t{0};

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

  static bool repeats(const orr_tensor& t) {
    for (int i = 0; i < t.rank; ++i)
      if (t.dims[i] > 1 && t.strides[i] == 0) return true;
    return false;
  }

  // Input `value` of the group with the dims of `like`: repeated where it has fewer or 1.
  orr_tensor repeated(int32_t value, const orr_tensor& like) const {
    const orr_group& group = *op_.group;
    const auto at = std::find(group.in, group.in + group.n_in, value) - group.in;
    require(at < group.n_in, "not this group");
    return repeated(op_.in[at], like);
  }
  static orr_tensor repeated(const orr_tensor& x, const orr_tensor& like) {
    orr_tensor t = like;
    t.dtype = x.dtype;
    for (int i = 0, shift = like.rank - x.rank; i < like.rank; ++i)
      t.strides[i] = i < shift || x.dims[i - shift] == 1 ? 0 : x.strides[i - shift];
    return t;
  }

  // `also`: the place of a further sum, of an input of the pointwise op; -1: none.
  void join_rows_next(const Readers& ops, const RowsNext& at, int32_t also) {
    op_.kind = "pointwise_next";
    const orr_group_op &first_op = ops.at(at.first), &next_op = ops.at(at.next);
    const orr_op &first = *first_op.op, &next = *next_op.op;
    const orr_tensor& y = first.out[0];
    for (int i = 0; i < first.n_in; ++i) add_in(first_op.in[i], repeated(first_op.in[i], y));
    for (int i = 1; i < next.n_in; ++i) add_in(next_op.in[i], next.in[i]);
    outputs_.assign(first.expr->outputs, first.expr->outputs + first.n_out);
    std::vector<int32_t> made(first_op.out, first_op.out + first.n_out);
    std::vector<orr_tensor> forms(first.out, first.out + first.n_out);
    const auto read = size_t(std::find(made.begin(), made.end(), next_op.in[0]) - made.begin());
    std::swap(made[0], made[read]), std::swap(outputs_[0], outputs_[read]);
    std::swap(forms[0], forms[read]);
    if (also >= 0) {  // a result that nothing reads but its sum
      const std::vector<int32_t> in = ops.in(at.first);
      const auto input = std::find(in.begin(), in.end(), ops.at(also).in[0]) - in.begin();
      outputs_.insert(outputs_.begin() + 1, register_of(*first.expr, int32_t(input)));
      made.insert(made.begin() + 1, -1), forms.insert(forms.begin() + 1, forms[0]);
    }
    for (size_t j = 0; j < made.size(); ++j) add_out(made[j], forms[j]);
    const bool parts = is_kind(next, "reduce") && attr_int(next, "begin", 0) > 0;
    const auto form_of = [&](const orr_tensor& z) {
      return parts || same_dims(z, y) ? rows(z) : flat(z);
    };
    for (int j = 0; j < next.n_out; ++j) add_out(next_op.out[j], form_of(next.out[j]));
    if (also >= 0) add_out(ops.at(also).out[0], form_of(next.out[0]));
    join_attributes(first, next);
    expr_ = *first.expr, expr_.outputs = outputs_.data(), op_.expr = &expr_;
    expr_.n_outputs = int32_t(outputs_.size());
  }

  static int32_t register_of(const orr_expr& e, int32_t input) {
    for (int32_t k = 0; k < e.n_instrs; ++k)
      if (e.instrs[k].fn == ORR_FN_INPUT && e.instrs[k].a == input) return k;
    throw Unsupported("not this group");
  }

  static std::optional<TwoSums> any_two_sums(const Readers& ops) {
    for (int32_t i = 0; i < ops.size(); ++i)
      if (const auto found = two_sums_of(ops, i)) return found;
    return {};
  }

  void join_sum_before(const Readers& ops) {
    op_.kind = "pointwise_sum";
    join_terms(ops, 0, 1);
    add_out(ops.at(1).out[0], summed_);
  }

  // Op `sum` adds what op `first` makes, or its input (first = -1).
  void join_terms(const Readers& ops, int32_t first, int32_t sum) {
    const orr_group_op& terms = ops.at(first < 0 ? sum : first);
    const orr_tensor& y = ops.op(sum).in[0];
    for (int i = 0; i < terms.op->n_in; ++i) add_in(terms.in[i], repeated(terms.in[i], y));
    int64_t outer = 1, columns = 1;
    for (int64_t d = 0; d < y.rank; ++d) {
      if (d < attr_int(ops.op(sum), "begin", 0)) outer *= y.dims[d];
      if (d >= attr_int(ops.op(sum), "end", 0)) columns *= y.dims[d];
    }
    summed_ = contiguous(ops.op(sum).out[0].dtype, {outer, columns});
    add_attributes(*terms.op, ops.op(sum));
    add_attribute("outer", outer), add_attribute("columns", columns);
    input_ = {ORR_FN_INPUT, y.dtype, 0, 0, 0, 0, 0}, outputs_ = {0};
    expr_ = first < 0 ? orr_expr{sizeof expr_, 1, 1, 0, &input_, outputs_.data()} : *terms.op->expr;
    op_.expr = &expr_;
  }

  void join_sum_next(const Readers& ops, const SumNext& at) {
    require(int32_t(at.all().size()) == ops.size(), "not this group");
    op_.kind = "pointwise_sum";
    join_terms(ops, at.first, at.sum);
    const orr_group_op& next = ops.at(at.next);
    sum_ = op_, sum_.n_in = int32_t(in_.size()), sum_.n_out = 1, sum_.out = &summed_;
    next_ = *next.op;
    for (int i = 0; i < next_.n_in; ++i) {
      next_in_.push_back(repeated(next_.in[i], next_.out[0]));
      if (next.in[i] == at.read) continue;
      next_in_.back() = repeated(next.in[i], next_.out[0]);
      add_in(next.in[i], next_in_.back());
    }
    for (int j = 0; j < next_.n_out; ++j) add_out(next.out[j], next_.out[j]);
    if (at.kept >= 0) add_out(at.kept, summed_);
    members_[0] = {sizeof members_[0], 0, &sum_, ops.at(at.first < 0 ? at.sum : at.first).in,
                   next.in + (std::find(next.in, next.in + next_.n_in, at.read) - next.in)};
    members_[1] = next, members_[1].op = &next_;
    group_ = *op_.group, group_.n_ops = 2, group_.ops = members_;
    op_.kind = "sum_next", op_.expr = nullptr;
  }

  static bool same_dims(const orr_tensor& a, const orr_tensor& b) {
    return a.rank == b.rank && std::equal(a.dims, a.dims + a.rank, b.dims);
  }

  void add_attribute(const char* name, int64_t value) {
    orr_attr added{};
    added.name = name, added.type = ORR_ATTR_INT, added.i = value;
    attrs_.push_back(added);
  }

  void join_attributes(const orr_op& first, const orr_op& next) {
    orr_attr kind{};
    kind.name = "next", kind.type = ORR_ATTR_TEXT, kind.text = next.kind;
    add_attributes(first, next);
    attrs_.insert(attrs_.begin() + first.n_attrs, kind);
  }

  void add_attributes(const orr_op& first, const orr_op& next) {
    attrs_.assign(first.attrs, first.attrs + first.n_attrs);
    for (int i = 0; i < next.n_attrs; ++i)
      if (!attr(first, next.attrs[i].name)) attrs_.push_back(next.attrs[i]);
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

  void finish(bool (*skips)(const orr_op&)) {
    op_.group = group_.n_ops > 0 ? &group_ : nullptr;
    op_.n_in = int32_t(in_.size()), op_.in = in_.data();
    op_.n_out = int32_t(out_.size()), op_.out = out_.data();
    op_.n_attrs = int32_t(attrs_.size()), op_.attrs = attrs_.data();
    sum_.group = nullptr, sum_.in = in_.data(), sum_.n_attrs = op_.n_attrs, sum_.attrs = op_.attrs;
    next_.in = next_in_.data();
    const int64_t unread = skips && skips(op_) ? unread_results() : 0;
    if (unread) {
      add_attribute("unread", unread);
      op_.n_attrs = int32_t(attrs_.size()), op_.attrs = attrs_.data();
    }
    for (size_t j = 0; j < out_.size(); ++j) {
      places_.spare.push_back(places_.spare_bytes);
      if (places_.out[j] >= 0) continue;
      if (j < 63 && (unread >> j & 1)) {
        places_.spare.back() = Places::kNowhere;
        continue;
      }
      const int64_t n = elements(out_[j]) * Leaves(op_).nodes();
      places_.spare_bytes += Places::begin(uint64_t(n * orr_dtype_bytes(out_[j].dtype)));
    }
  }

  // A bit for each of the expression's results that nothing reads.
  int64_t unread_results() const {
    int64_t bits = 0;
    for (size_t j = 0; j < std::min(outputs_.size(), size_t{63}); ++j)
      if (places_.out[j] < 0) bits |= int64_t{1} << j;
    return bits;
  }

  orr_op op_;
  std::vector<orr_tensor> in_, out_;
  std::vector<orr_attr> attrs_;
  orr_expr expr_{};
  std::vector<int32_t> outputs_;  // of the expression
  orr_instr input_{};             // of sums without an expression
  // Of a sum_next: its ops.
  orr_tensor summed_{};
  std::vector<orr_tensor> next_in_;
  orr_op sum_{}, next_{};
  orr_group_op members_[2]{};
  orr_group group_{};
  Places places_;
};

}  // namespace orr
