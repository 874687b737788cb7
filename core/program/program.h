// SPDX-License-Identifier: Apache-2.0
//
// The program: one training step as data. The same class is used for the logical program (L1, with
// global shapes and no ranks) and, in lowering, for the program of one rank. Ops are appended in
// execution order; each value is defined once.
//
// The batch. The batch dim of a step is cut into microbatches (docs/design.md, "A program"). While
// ops are added, every value gets its relation to the batch: `Batch::none` (the same for all
// microbatches), `sharded` (dim `batch_dim` runs over the batch), `partial` (a sum over the batch,
// with one summand per microbatch) or `mean` (computed from sums over the batch, but no such sum
// itself, so that it is known only when all microbatches are done). program/relate.h has the rules.
// Ops of samples may read a partial or a mean after it was completed (Program::completed).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "program/comm_op.h"
#include "program/expr.h"
#include "program/layout.h"
#include "program/part.h"
#include "program/types.h"

namespace orrery {

using ValueId = int32_t;
using OpId = int32_t;

enum class Role : int32_t {
  activation,
  param,
  grad,
  state,
  input,
  loss,
  scalar,
  batch,
  whole_batch
};
// Where a tensor is kept between uses: on the device that computes, or away from it
// (lower/schedule/stream.cpp).
enum class Tier : int32_t { device, host, disk };

struct State;    // program/state.h
struct OpGroup;  // program/op_group.h

struct Value {
  Type type;
  Role role = Role::activation;
  Layout layout;
  OpId producer = kNone;
  int32_t out_index = 0;
  std::string name;              // parameter path, batch field, scalar name
  std::shared_ptr<State> state;  // params and states
  Part part;                     // the part of the state that this program has, of type `type`
  Tier tier = Tier::device;      // where a state is kept, or an activation waits for backward
  Site site;

  Batch batch() const { return layout.batch(); }
  int32_t batch_dim() const { return layout.batch_dim(); }
  const Name& varying() const { return layout.varying(); }
  void set_batch(Batch batch, int32_t dim = kNone) { layout = layout.with_batch(batch, dim); }
  void set_varying(const Name& axes) { layout = layout.with_varying(axes); }
};

// A mesh axis that collectives of a program may name.
struct MeshAxis {
  std::string name;
  int size = 1;
};

struct Op {
  std::string kind;
  Attrs attrs;
  std::vector<ValueId> in, out;
  Expr expr;  // pointwise
  Phase phase = Phase::forward;
  Site site;
  OpId twin = kNone;  // backward: the forward op whose gradient this belongs to
  int32_t stage = 0;  // pipeline stage (partition/stage.h), from 0
  // Of an op that sums over samples: the batch axes over whose ranks the sum is completed ("": it
  // stays that of the rank's own samples). None: over all batch axes.
  std::optional<Name> completed_over;
  // Of the update: its input is read whole, even where a rank holds a shard of it.
  bool reads_whole = false;
  std::shared_ptr<const CommOp> comm;  // of an exchange that a pass has added; null: nothing to say
  std::shared_ptr<const OpGroup> group;  // of the kind "group": what it stands for (op_group.h)

  const CommOp& exchange() const {
    static const CommOp plain;
    return comm ? *comm : plain;
  }
  void set_exchange(const CommOp& how) { comm = std::make_shared<const CommOp>(how); }
};

// A value, or a number in its place.
struct Operand {
  Operand(ValueId id) : id(id) {}  // NOLINT: meant to convert
  static Operand number(double x) {
    Operand o(kNone);
    o.value = x;
    return o;
  }
  ValueId id;
  double value = 0;
};

class Program {
 public:
  // -- inputs ------------------------------------------------------------------------------------
  // A tensor of the batch; its first dim is the batch dim. All batch fields share that extent.
  ValueId batch_input(const std::string& name, const Type& type);
  // The same field with the rows of the whole batch, which every rank has at the beginning of a
  // step: it does not depend on how the batch is dealt.
  ValueId whole_batch_input(const std::string& name, const Type& type);
  // A 0-d runtime number, the same for all microbatches and ranks ("lr", "step").
  ValueId scalar_input(const std::string& name, int32_t dtype);
  // A tensor given from outside that does not depend on the batch.
  ValueId input(const std::string& name, const Type& type);
  // The current value of a parameter or state; one per state and program.
  ValueId state_value(const std::shared_ptr<State>& state);

  // -- ops ---------------------------------------------------------------------------------------
  // Appends an op at the current site and phase; infers types and relation to the batch. Throws
  // Error with the site's prefix when shapes, dtypes or the relation do not allow it.
  std::vector<ValueId> add(const std::string& kind, const std::vector<ValueId>& in,
                           Attrs attrs = {});
  ValueId add1(const std::string& kind, const std::vector<ValueId>& in, Attrs attrs = {});
  // One scalar function with broadcasting and dtype promotion (numbers take the tensors' dtype).
  ValueId pointwise(int32_t fn, const std::vector<Operand>& operands);
  ValueId cast(ValueId x, int32_t dtype);
  ValueId constant(double value, int32_t dtype, const Dims& dims = {});
  // Uniform numbers in [0,1) of `type`, keyed by the current region and the ordinal of the call.
  // They get the relation to the batch that `like` has; the key is then the index in the whole
  // tensor.
  ValueId random_uniform(const Type& type, ValueId like = kNone);

  // If v is a sum or mean over the batch, the completed value, which is the same for all
  // microbatches and ranks and which ops of samples may read; else v. An op of samples that gets a
  // sum or mean completes it by itself.
  ValueId completed(ValueId v);
  bool is_completed(ValueId v) const { return completed_.count(v) > 0; }
  // `by` is the completed value of v from now on.
  void note_completed(ValueId v, ValueId by) { completed_[v] = by; }

  // y with a gradient that the user defines: `backward` gets y's cotangent and returns one for each
  // of xs (kNone: none). The values from which y was computed get no other cotangent through y.
  using UserGradient = std::function<std::vector<ValueId>(ValueId dy)>;
  ValueId with_gradient(ValueId y, const std::vector<ValueId>& xs, UserGradient backward);
  const UserGradient& user_gradient(int64_t index) const {
    return user_gradients_.at(static_cast<size_t>(index));
  }

  // The value that stands for v after its uses were redirected (program/rewrite.h); else v.
  ValueId now(ValueId v) const;
  void note_replaced(ValueId v, ValueId by) { replaced_[v] = by, replaced_.erase(by); }

  // Declares that `state` holds `value` after the step. Later declarations replace earlier ones.
  void update(ValueId state, ValueId value);
  // Declares a fetched result.
  void output(const std::string& name, ValueId value);

  // -- the mesh -----------------------------------------------------------------------------------
  // The axes that the program's collectives may name. `origin` is the strategy that asks for the
  // collectives added next.
  void set_axes(std::vector<MeshAxis> axes) { axes_ = std::move(axes); }
  // The number of ranks on an axis. Throws Error with the current site's prefix if there is none of
  // that name.
  int axis_size(const std::string& name) const;
  void set_origin(const std::string& origin) { origin_ = origin; }
  const std::string& origin() const { return origin_; }

  // -- the current place: site, phase and stage of ops that are added -----------------------------
  void set_site(const Site& site) { site_ = site; }
  const Site& site() const { return site_; }
  void set_phase(Phase phase) { phase_ = phase; }
  Phase phase() const { return phase_; }
  // Ops added from now on differentiate this forward op; kNone: none.
  void set_twin(OpId op) { twin_ = op; }
  OpId twin() const { return twin_; }
  // The pipeline stage of ops that are added from now on.
  void set_stage(int32_t stage) { stage_ = stage; }

  // -- reading ------------------------------------------------------------------------------------
  const std::vector<Op>& ops() const { return ops_; }
  std::vector<Op>& mutable_ops() { return ops_; }
  const std::vector<Value>& values() const { return values_; }
  const Value& value(ValueId id) const { return values_.at(static_cast<size_t>(id)); }
  Value& mutable_value(ValueId id) { return values_.at(static_cast<size_t>(id)); }
  const Type& type(ValueId id) const { return value(id).type; }
  const std::vector<std::pair<ValueId, ValueId>>& updates() const { return updates_; }
  std::vector<std::pair<ValueId, ValueId>>& mutable_updates() { return updates_; }
  const std::vector<std::pair<std::string, ValueId>>& outputs() const { return outputs_; }
  std::vector<std::pair<std::string, ValueId>>& mutable_outputs() { return outputs_; }
  int64_t batch_size() const { return batch_size_; }  // 0 before the first batch_input
  // The weight of every sample: f32 [batch], 1, or 0 for rows that pad. Made on first use.
  ValueId batch_weight();
  // The next RNG id of this region: a hash of stream, module path and ordinal.
  int64_t next_rng_id();
  // Programs of different streams draw different random numbers, variants of one program the same.
  void set_stream(const std::string& stream) { stream_ = stream; }
  const std::string& stream() const { return stream_; }
  ValueId seed();  // i64 scalars given at run time
  ValueId step();

  // Throws Error with the current site's prefix.
  [[noreturn]] void fail_here(const std::string& message) const;

  ValueId new_value(const Type& type, Role role, const std::string& name = "");
  // A program with the same values, updates, outputs and batch, but without ops.
  Program without_ops() const;
  // The same, with only the values for which `keep` is true; the others keep their ids, but are
  // empty.
  Program without_ops(const std::function<bool(ValueId)>& keep) const;
  // Asks that states lie one after another in memory, without gaps, so that an exchange over `axis`
  // need not pack them. Lists are disjoint; `room` is the bytes of the rank that holds most.
  struct Together {
    std::vector<ValueId> states;
    std::string axis;
    uint64_t room = 0;
  };
  void keep_together(Together list) { together_.push_back(std::move(list)); }
  const std::vector<Together>& together() const { return together_; }
  // Appends an op made elsewhere (lowering), without inference. Outputs must exist.
  void append(Op op);

 private:
  // The first given value for which `is` is true; kNone: there is none.
  ValueId find_given(const std::function<bool(const Value&)>& is) const;
  void complete_for_samples(Op& op);

  std::vector<Op> ops_;
  std::vector<Value> values_;
  std::vector<ValueId> given_;  // the values made with a role, among them all that no op makes
  std::vector<std::pair<ValueId, ValueId>> updates_;
  std::vector<Together> together_;
  std::vector<std::pair<std::string, ValueId>> outputs_;
  std::map<std::string, int64_t> rng_ordinals_;
  std::string stream_;
  std::vector<UserGradient> user_gradients_;
  std::map<ValueId, ValueId> completed_;
  std::vector<MeshAxis> axes_;
  std::string origin_;
  Site site_;
  Phase phase_ = Phase::forward;
  OpId twin_ = kNone;
  int32_t stage_ = 0;
  std::map<ValueId, ValueId> replaced_;
  int64_t batch_size_ = 0;
};

// The whole program as text, one op a line, for people, golden files and digests.
std::string to_string(const Program& program);
// The name of a value in messages: "'blocks.1.qkv.weight'", "the matmul [4,8] of gpt.lua:20
// (GPT.blocks.1)".
std::string title(const Program& program, ValueId value);

}  // namespace orrery
