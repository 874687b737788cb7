// SPDX-License-Identifier: Apache-2.0
//
// The program: one training step as data. The same class holds L1 (global shapes, no ranks) and,
// after lowering, the local program of one rank. Ops are appended in execution order; values are
// defined once.
//
// Time. The batch dim of a step is cut into microbatches (docs/design.md, "A program"). While ops
// are added, every value gets its relation to that axis: `Batch::none` (the same for all
// microbatches), `sharded` (dim `batch_dim` runs over the batch), `partial` (a sum over the batch,
// one summand per microbatch) or `mean` (what is made of sums over the batch and is no such sum
// itself, so that it is known only when all microbatches are done). How ops pass relations on:
// program/relate.h. Samples may read such a value once it is completed within the pass
// (Program::completed).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "program/expr.h"
#include "program/part.h"
#include "program/types.h"

namespace orrery {

using ValueId = int32_t;
using OpId = int32_t;

enum class Role : int32_t { activation, param, grad, state, input, loss, scalar, batch };
enum class Phase : int32_t { forward, backward, update };
enum class Batch : int32_t { none, sharded, partial, mean };
// Where a tensor is kept between uses: on the device that computes, or away from it
// (lower/schedule/stream.cpp).
enum class Tier : int32_t { device, host, disk };

struct State;  // program/state.h

struct Value {
  Type type;
  Role role = Role::activation;
  Batch batch = Batch::none;
  int32_t batch_dim = kNone;  // 0-based; microbatches are equal consecutive pieces of it
  OpId producer = kNone;
  int32_t out_index = 0;
  std::string name;              // parameter path, batch field, scalar name
  std::shared_ptr<State> state;  // params and states
  Part part;                     // what of the state this program has; `type` is the part's
  Tier tier = Tier::device;      // of the state; of an activation: where it waits for backward
  // Mesh axes, "a*b", on which every coordinate has a value of its own, each of the full shape
  // (program/varying.h). "": one value everywhere.
  std::string varying;
  Site site;
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
};

// A number that may stand where a value is expected.
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
  // Uniform numbers in [0,1) of `type`, keyed by the current region and call ordinal; like `like`'s
  // relation to the batch if that is a value (the element index is then the global one).
  ValueId random_uniform(const Type& type, ValueId like = kNone);

  // v as samples may read it: a sum or mean over the batch, completed where it is read, and then
  // one value for all microbatches and ranks; v itself if it is no such value. An op of samples
  // that is given a sum or mean completes it by itself.
  ValueId completed(ValueId v);
  bool is_completed(ValueId v) const { return completed_.count(v) > 0; }

  // y with a gradient of the user's own: `backward` gets y's cotangent and returns one for each of
  // xs (kNone: none). What y was computed from gets no cotangent through it.
  using UserGradient = std::function<std::vector<ValueId>(ValueId dy)>;
  ValueId with_gradient(ValueId y, const std::vector<ValueId>& xs, UserGradient backward);
  const UserGradient& user_gradient(int64_t index) const {
    return user_gradients_.at(static_cast<size_t>(index));
  }

  // What stands for v since its uses were redirected (program/rewrite.h).
  ValueId now(ValueId v) const;
  void note_replaced(ValueId v, ValueId by) { replaced_[v] = by, replaced_.erase(by); }

  // Declares that `state` holds `value` after the step. Later declarations replace earlier ones.
  void update(ValueId state, ValueId value);
  // Declares a fetched result.
  void output(const std::string& name, ValueId value);

  // -- the mesh -----------------------------------------------------------------------------------
  // The axes that the program's collectives may name; `origin` is who asks for those added next.
  void set_axes(std::vector<MeshAxis> axes) { axes_ = std::move(axes); }
  // Ranks on an axis. Throws Error with the current site's prefix if there is none of that name.
  int axis_size(const std::string& name) const;
  void set_origin(const std::string& origin) { origin_ = origin; }
  const std::string& origin() const { return origin_; }

  // -- where we are -------------------------------------------------------------------------------
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
  // The weight of every sample: f32 [batch], 1, or 0 for padding. Made on first use.
  ValueId batch_weight();
  // The next RNG id of this region: hash of stream, module path and ordinal.
  int64_t next_rng_id();
  // Programs of different streams draw different numbers, variants of one program the same.
  void set_stream(const std::string& stream) { stream_ = stream; }
  const std::string& stream() const { return stream_; }
  ValueId seed();  // i64 scalars given at run time
  ValueId step();

  // Throws Error with the current site's prefix.
  [[noreturn]] void fail_here(const std::string& message) const;

  ValueId new_value(const Type& type, Role role, const std::string& name = "");
  // The same values, updates, outputs and batch, but no ops.
  Program without_ops() const;
  // Of the values only those that `keep` holds for; the others have nothing but their numbers.
  Program without_ops(const std::function<bool(ValueId)>& keep) const;
  // Asks that states lie one after another in memory, without gaps: what travels together over
  // `axis` then need not be packed. Lists are disjoint; `room` is the bytes of the rank that holds
  // most.
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
  ValueId find(Role role, const std::string& name) const;
  void complete_for_samples(Op& op);

  std::vector<Op> ops_;
  std::vector<Value> values_;
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

// The whole program as text: one op a line, for people, golden files and digests.
std::string to_string(const Program& program);
// What a value is called in messages: "'blocks.1.qkv.weight'", "the matmul [4,8] of gpt.lua:20
// (GPT.blocks.1)".
std::string title(const Program& program, ValueId value);

}  // namespace orrery
