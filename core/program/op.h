// SPDX-License-Identifier: Apache-2.0
//
// What the core knows of an op kind: shapes, gradient, sharding, cost and the form in which kernels
// get it. Each family of ops has them together in one file of ops/.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "program/program.h"

namespace orrery {

// An op's arguments, whether it has been added to a program or not.
struct OpArgs {
  const std::string& kind;
  const Attrs& attrs;
  const Expr& expr;
  std::vector<Type> in;
  const OpGroup* group = nullptr;  // of the kind "group"
};

// The factor map, which is like an einsum: for each dim of each input and output the factor (loop)
// that it belongs to, or kNone if the op cannot work on parts of that dim. A factor that no output
// has is summed. Dims of extent 1 that are broadcast have kNone.
struct Sharding {
  std::vector<std::vector<int>> in, out;
  bool sums = true;    // false: such a factor is not summed, as in a maximum
  Dims segments = {};  // of split: the sizes that input 0's dim without a factor is split into
};

struct Cost {
  double flops = 0;
  double bytes = 0;     // read and written if nothing stays in cache
  bool matrix = false;  // the flops are those of matrix products
};

// A tensor as stored: dims and strides in elements.
struct Strided {
  int32_t dtype = ORR_F32;
  Dims dims, strides;

  static Strided contiguous(const Type& type);
  bool is_contiguous() const;
  orr_tensor abi() const;
};

// The op in the form in which kernels get it (orrery/ops.h). `copy` lists inputs whose layout the
// form cannot express: the core copies them to contiguous memory and calls again. `nested` lists
// those that have more dims than kernels must take (ops.h, matmul).
struct KernelForm {
  std::vector<Strided> in, out;
  std::vector<int> copy, nested;
  bool out_ok = true;  // false: the outputs would have to be contiguous
};

class Gradient;
struct PartsRule;

struct OpDef {
  const char* kind;
  std::vector<Type> (*infer)(const OpArgs&);  // throws std::invalid_argument with the reason
  Sharding (*sharding)(const OpArgs&, const std::vector<Type>& out);
  void (*gradient)(Gradient&, const Op&);  // null: the op has no derivative
  Cost (*cost)(const OpArgs&, const std::vector<Type>& out);
  // Null for ops that move no data (views) or that lowering expands.
  KernelForm (*form)(const Op&, const std::vector<Strided>& in, const std::vector<Strided>& out);
  // The rule for cut inputs beyond its factors (program/on_parts.h); null: there is none.
  const PartsRule* parts = nullptr;
  // Whether an op with this expression takes reals of eight bits (takes_eight_bits); null: no.
  bool (*eight_bits)(const Expr&) = nullptr;
  // What of the op a kernel must say that it takes, as ORR_TAKES_... (orrery/kernel.h); null:
  // nothing.
  uint32_t (*must_take)(const orr_op&) = nullptr;

  constexpr OpDef with_eight_bits(bool (*rule)(const Expr&)) const {
    OpDef def = *this;
    def.eight_bits = rule;
    return def;
  }
};

// The row of a kind; throws Error for an unknown one.
const OpDef& op_def(const std::string& kind);
const std::vector<const OpDef*>& all_op_defs();

// Whether the communicator, not a kernel, carries out this kind (ops/comm.cpp).
bool is_exchange(const std::string& kind);
// Whether ops of this kind name a mesh axis: exchanges, and two kinds that move nothing.
bool names_axis(const std::string& kind);

// Throws std::invalid_argument unless elements of this type may be indices.
void want_index(const Type& type);

// The dtype of a sum: attribute int "dtype", else the dtype of the summands.
int32_t sum_dtype(const Attrs& attrs, int32_t summed);

OpArgs args_of(const Program& p, const Op& op);
std::vector<Type> out_types(const Program& p, const Op& op);

// Merges x's dims [begin, end) into one dim; returns false if its strides do not allow that.
bool merge_dims(const Strided& x, size_t begin, size_t end, int64_t& dim, int64_t& stride);
// Merges the dims of each of these consecutive groups into one; returns false if impossible.
bool regroup(const Strided& x, const std::vector<std::pair<size_t, size_t>>& groups, Strided& out);

// The strides of x inside a result of these dims; 0 where x is repeated.
Dims strides_in(const Strided& x, const Dims& dims);

// Common rules.
bool takes_eight_bits(const Expr&);  // always: OpDef::eight_bits of what moves or multiplies them
Cost touch_cost(const OpArgs&, const std::vector<Type>& out);  // one flop per output element
Cost no_cost(const OpArgs&, const std::vector<Type>&);
// x as contiguous [product of all but the last dims, last dim] / [all elements].
Strided as_rows(const Strided& x);
Strided as_flat(const Strided& x);
// The form of ops that read and write contiguous tensors: `shape[i]` is 'r' for rows or 'f' for
// flat, first for the inputs, then for the outputs. 'R': rows that need not lie one after another.
KernelForm contiguous_form(const std::vector<Strided>& in, const std::vector<Strided>& out,
                           const char* shape);
// The same with all dims as they are.
KernelForm contiguous_form(const std::vector<Strided>& in, const std::vector<Strided>& out);
// The sharding of ops whose inputs and outputs have the same dims with the same meaning.
Sharding same_dims_sharding(const OpArgs& args, const std::vector<Type>& out);
// The sharding of ops that work on each row by itself: the leading dims of all tensors of rank
// `rank` are factors 0, 1, ...; the last `tail` dims and tensors of lower rank cannot be cut.
Sharding row_sharding(const OpArgs& args, const std::vector<Type>& out, size_t rank, size_t tail);

// The interface of the backward pass for the gradients of ops (autodiff.h).
class Gradient {
 public:
  explicit Gradient(Program& program) : p(program) {}
  virtual ~Gradient() = default;
  Program& p;
  // The cotangent of output j of the current op; kNone if it is zero.
  virtual ValueId dy(int j = 0) = 0;
  // Whether x's cotangent will be used.
  virtual bool wanted(ValueId x) = 0;
  // Adds dx (of x's shape) to x's cotangent.
  virtual void add(ValueId x, ValueId dx) = 0;
};

// Adds dx, of the dims that x was repeated to, to x's cotangent: summed over the dims along which
// it was, and over the batch where x is the same for all samples.
void add_reduced(Gradient& g, ValueId x, ValueId dx);

}  // namespace orrery
