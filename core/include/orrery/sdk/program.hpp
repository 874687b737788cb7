// SPDX-License-Identifier: Apache-2.0
//
// The program that a strategy in C++ edits: the editing calls of strategy.h as methods that throw,
// hooks as functions, and values with arithmetic operators.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <orrery/sdk/plugin.hpp>
#include <orrery/sdk/write.hpp>

namespace orr {

class Program;

// A value of a program. REQUIRES: for arithmetic, the Program that returned it still exists.
struct Value {
  int32_t id = -1;
  const Program* in = nullptr;
  operator int32_t() const { return id; }  // NOLINT: meant to convert
  bool exists() const { return id >= 0; }
};

// The description of a state for Program::state (orr_state_desc).
struct StateOf {
  const char* name;
  int32_t like = -1;
  int32_t init = ORR_INIT_ZEROS;
  double value = 0;
  int32_t dtype = 0;
  std::optional<std::vector<int64_t>> dims = {};
  const char* varying = "";
  int32_t leave = ORR_LEAVE_MEAN;
  bool passing = false;
};

// Valid during the call of the strategy in which it is made.
class Program : public Ops<Program, Value> {
 public:
  Program(orr_program* program, const orr_edit* edit) : program_(program), edit_(edit) {}
  Program(const Program&) = delete;

  orr_program* raw() const { return program_; }
  const orr_edit* edit() const { return edit_; }

  // -- values ------------------------------------------------------------------------------------
  // Calls visit(value, info) for every value with one of the roles, in the order of their names.
  template <class Visit>
  void each(uint32_t roles, Visit&& visit) const {
    std::pair<const Program*, std::remove_reference_t<Visit>*> both = {this, &visit};
    check(edit_->each(
        program_, roles, &both, [](void* arg, int32_t value, const orr_value_info* info) {
          auto& [self, body] = *static_cast<decltype(both)*>(arg);
          return guard([&, self = self, body = body] { (*body)(Value{value, self}, *info); });
        }));
  }
  orr_value_info info(int32_t value) const {
    orr_value_info info{};
    info.size = sizeof info;
    check(edit_->info(program_, value, &info));
    return info;
  }
  orr_tensor type(int32_t value) const { return info(value).type; }
  std::vector<int32_t> inputs(int32_t value) const {
    std::vector<int32_t> all(static_cast<size_t>(edit_->inputs(program_, value, nullptr, 0)));
    edit_->inputs(program_, value, all.data(), static_cast<int32_t>(all.size()));
    return all;
  }
  // Calls visit(op) with the op that makes the value.
  template <class Visit>
  void maker(int32_t value, Visit&& visit) const {
    check(edit_->maker(program_, value, &visit, [](void* arg, const orr_op_desc* op) {
      return guard([&] { (*static_cast<std::remove_reference_t<Visit>*>(arg))(*op); });
    }));
  }

  // -- ops ---------------------------------------------------------------------------------------
  // Adds an op and returns its first output.
  Value op(const char* kind, const std::vector<int32_t>& in,
           const std::vector<orr_attr>& attrs = {}, const orr_expr* expr = nullptr) const {
    return ops(kind, in, attrs, expr)[0];
  }
  std::vector<Value> ops(const char* kind, const std::vector<int32_t>& in,
                         const std::vector<orr_attr>& attrs = {},
                         const orr_expr* expr = nullptr) const {
    const orr_op_desc desc = {sizeof desc,
                              static_cast<int32_t>(in.size()),
                              static_cast<int32_t>(attrs.size()),
                              kind,
                              in.data(),
                              attrs.data(),
                              expr};
    return collect([&](int32_t* out, int32_t capacity, int32_t* n) {
      return edit_->op(program_, &desc, out, capacity, n);
    });
  }
  // Says where ops that are added from now on belong (orr_edit.beside).
  void beside(int32_t value, int32_t phase) const { check(edit_->beside(program_, value, phase)); }
  // Ops that are added from now on stand before the one that makes `value` (orr_edit.before).
  void before(int32_t value) const { check(edit_->before(program_, value)); }
  std::vector<Value> copy(int32_t value, int32_t phase, const std::vector<int32_t>& in) const {
    return collect([&](int32_t* out, int32_t capacity, int32_t* n) {
      return edit_->copy(program_, value, phase, in.data(), static_cast<int32_t>(in.size()), out,
                         capacity, n);
    });
  }
  void replace(int32_t value, int32_t by, uint32_t uses = ORR_USES_ALL) const {
    check(edit_->replace(program_, value, by, uses));
  }
  void reread(int32_t of, int32_t value, int32_t by) const {
    check(edit_->reread(program_, of, value, by));
  }
  void retype(int32_t value, int32_t compute, int32_t store = 0) const {
    check(edit_->retype(program_, value, compute, store));
  }

  // -- states ------------------------------------------------------------------------------------
  Value state(const StateOf& how) const {
    orr_state_desc desc{};
    desc.size = sizeof desc, desc.name = how.name, desc.like = how.like, desc.init = how.init;
    desc.varying = how.varying, desc.leave = how.leave, desc.value = how.value;
    desc.dtype = how.dtype, desc.rank = how.dims ? static_cast<int32_t>(how.dims->size()) : -1;
    desc.dims = how.dims ? how.dims->data() : nullptr;
    desc.passing = how.passing;
    int32_t made = -1;
    check(edit_->state(program_, &desc, &made));
    return {made, this};
  }
  void update(int32_t state, int32_t value) const { check(edit_->update(program_, state, value)); }
  Value updated(int32_t state) const { return {edit_->updated(program_, state), this}; }

  // -- ranks -------------------------------------------------------------------------------------
  int32_t ranks_left() const { return edit_->ranks_left(program_); }
  // Makes an axis and returns its number of ranks.
  int32_t axis(const char* name, int32_t size) const {
    check(edit_->axis(program_, name, size));
    return axis_size(name);
  }
  int32_t axis_size(const char* name) const { return edit_->axis_size(program_, name); }
  void place(int32_t value, const char* axis, int32_t dim) const {
    check(edit_->place(program_, value, axis, dim));
  }
  void reduce(int32_t value, const char* axis, int64_t bucket) const {
    check(edit_->reduce(program_, value, axis, bucket));
  }
  void independent(const char* axis) const { check(edit_->independent(program_, axis)); }
  void remark(const std::string& text) const { check(edit_->diag(program_, text.c_str())); }

  // -- drivers -----------------------------------------------------------------------------------
  // Adds a program that `rank` runs. Make a Program of the result.
  orr_program* program(const std::string& name, int32_t rank) const {
    orr_program* made = nullptr;
    check(edit_->program(program_, name.c_str(), rank, &made));
    return made;
  }
  // Copies the ops that compute the wanted values of `from` into this program, where the values
  // `as` stand for `given`. Returns the values that stand for the wanted ones.
  std::vector<Value> copy_part(const Program& from, const std::vector<int32_t>& given,
                               const std::vector<int32_t>& as,
                               const std::vector<int32_t>& wanted) const {
    orr_part part{};
    part.size = sizeof part, part.from = from.raw();
    part.n_given = static_cast<int32_t>(given.size()), part.given = given.data();
    part.as = as.data(), part.wanted = wanted.data();
    part.n_wanted = static_cast<int32_t>(wanted.size());
    std::vector<int32_t> out(wanted.size());
    check(edit_->copy_part(program_, &part, out.data()));
    std::vector<Value> made;
    for (int32_t v : out) made.push_back({v, this});
    return made;
  }
  Value gradient(int32_t parameter) const { return {edit_->gradient(program_, parameter), this}; }

  // -- the step ----------------------------------------------------------------------------------
  bool trains() const { return edit_->trains(program_) != 0; }
  void cotangent(int32_t value) const { check(edit_->cotangent(program_, value)); }
  void output(const char* name, int32_t value) const {
    check(edit_->output(program_, name, value));
  }

  using Exchange = std::function<Value(const Program&, Value parameter, Value gradient)>;
  void exchange(const char* axis, Exchange hook) const {
    const orr_gradient_hook given = {
        sizeof given, new Exchange(std::move(hook)), forget<Exchange>,
        [](void* arg, orr_program* p, const orr_edit* e, int32_t parameter, int32_t gradient,
           int32_t* out) {
          return guard([&] {
            const Program now(p, e);
            *out = (*static_cast<Exchange*>(arg))(now, {parameter, &now}, {gradient, &now});
          });
        }};
    check(edit_->exchange(program_, axis, &given));
  }

  using Round = std::function<void(const Program&, int32_t round)>;
  void every(int32_t steps, int32_t rounds, Round hook) const {
    const orr_program_hook given = {
        sizeof given, new Round(std::move(hook)), forget<Round>,
        [](void* arg, orr_program* p, const orr_edit* e, int32_t round) {
          return guard([&] { (*static_cast<Round*>(arg))(Program(p, e), round); });
        }};
    check(edit_->every(program_, steps, rounds, &given));
  }

  // `what`: if the hook decides whether the step counts, the name of the number that all ranks must
  // share for that; else NULL (orr_complete_hook).
  using Complete = std::function<void(const Program&, Value loss, Value norm)>;
  void complete(const char* what, Complete hook) const {
    complete(what ? ORR_COMPLETE_DECIDES : ORR_COMPLETE_STEP, what, std::move(hook));
  }
  // Calls hook(program) when all edits of a step or an evaluation are done.
  void at_last(std::function<void(const Program&)> hook) const {
    complete(ORR_COMPLETE_LAST, nullptr,
             [hook = std::move(hook)](const Program& now, Value, Value) { hook(now); });
  }

 private:
  void complete(int32_t when, const char* what, Complete hook) const {
    const orr_complete_hook given = {
        sizeof given,
        when,
        new Complete(std::move(hook)),
        forget<Complete>,
        what,
        [](void* arg, orr_program* p, const orr_edit* e, int32_t loss, int32_t norm) {
          return guard([&] {
            const Program now(p, e);
            (*static_cast<Complete*>(arg))(now, {loss, &now}, {norm, &now});
          });
        }};
    check(edit_->complete(program_, &given));
  }

  template <class Hook>
  static void forget(void* arg) {
    delete static_cast<Hook*>(arg);
  }

  // Calls add(out, capacity, n) and returns the values that it has written to `out`.
  template <class Add>
  std::vector<Value> collect(Add&& add) const {
    int32_t out[64], n = 0;
    check(add(out, 64, &n));
    if (n > 64) throw Error(ORR_UNIMPLEMENTED, "an op of more than 64 outputs");
    std::vector<Value> all;
    for (int32_t i = 0; i < n; ++i) all.push_back({out[i], this});
    return all;
  }

  orr_program* program_;
  const orr_edit* edit_;
};

inline Value operator+(Value a, Value b) { return a.in->add(a, b); }
inline Value operator-(Value a, Value b) { return a.in->sub(a, b); }
inline Value operator*(Value a, Value b) { return a.in->mul(a, b); }
inline Value operator/(Value a, Value b) { return a.in->div(a, b); }
inline Value operator+(Value a, double b) { return a.in->add(a, b); }
inline Value operator-(Value a, double b) { return a.in->sub(a, b); }
inline Value operator*(Value a, double b) { return a.in->mul(a, b); }
inline Value operator/(Value a, double b) { return a.in->div(a, b); }

}  // namespace orr
