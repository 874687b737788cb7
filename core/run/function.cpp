// SPDX-License-Identifier: Apache-2.0
//
// Functions of tensors. They have no batch: every rank that calls one computes all of it. A
// function works on whole copies of states that ranks hold in parts. All ranks refresh these
// together before a call, and afterwards take their parts of those that it has changed.
#include <algorithm>

#include "base/error.h"
#include "program/build.h"
#include "run/recent.h"
#include "run/replicas.h"
#include "run/states.h"
#include "run/watched.h"

namespace orrery {
namespace {

class CompiledFunction : public Function {
 public:
  CompiledFunction(std::function<Outputs(Program&, const std::vector<ValueId>&)> body,
                   std::string line, std::string stream, std::string told_as)
      : body_(std::move(body)),
        line_(std::move(line)),
        stream_(std::move(stream)),
        told_as_(std::move(told_as)) {}
  ~CompiledFunction() override { Runtime::get().observers().end(told_as_); }

  std::vector<HostTensor> call(const std::vector<Argument>& arguments,
                               const std::map<std::string, double>& scalars) override {
    Runtime::get().settle();
    Variant& variant = variant_for(arguments);
    refresh_copies();
    std::vector<HostTensor> tensors(arguments.size());
    std::map<std::string, double> numbers = scalars;
    for (size_t i = 0; i < arguments.size(); ++i)
      if (const auto* tensor = std::get_if<HostTensor>(&arguments[i]))
        tensors[i] = *tensor;
      else
        numbers[number_name(i)] = std::get<double>(arguments[i]);
    variant.set_scalars(numbers, ++calls_);
    variant.set_inputs(tensors);
    variant.run();
    for (auto& [state, next] : variant.plan().local.program.updates())
      give_back(variant.plan().local.program.value(state).state);
    std::vector<HostTensor> results;
    auto fetched = variant.fetch_tensors(true);
    tell(take_watched(fetched, fmt::format("call {}", calls_)));
    for (auto& [name, tensor] : fetched) results.push_back(tensor);
    return results;
  }

 private:
  void tell(const std::map<std::string, double>& recorded) const {
    if (recorded.empty()) return;
    Observers& to = Runtime::get().observers();
    const Observers::Scope scope = to.of(told_as_, 0);
    for (auto& [name, value] : recorded) to.metric(calls_, name, value);
  }

  // The scalar of the program that a number among the arguments is.
  static std::string number_name(size_t argument) {
    return fmt::format("argument {}", argument + 1);
  }

  static ValueId input(Program& p, size_t i, const Argument& argument) {
    if (const auto* tensor = std::get_if<HostTensor>(&argument))
      return p.input(std::to_string(i), tensor->type);
    return p.scalar_input(number_name(i), ORR_F32);
  }

  Variant& variant_for(const std::vector<Argument>& arguments) {
    if (std::any_of(copies_.begin(), copies_.end(),
                    [](const Copy& c) { return c.of->bound && !is_in_parts(*c.of); }))
      variants_.clear(), copies_.clear();  // what training holds whole is read where it lies
    std::string key;
    for (const Argument& argument : arguments) {
      const auto* tensor = std::get_if<HostTensor>(&argument);
      key += tensor ? to_string(tensor->type) : "number";
    }
    if (Variant* found = variants_.find(key)) return *found;
    Blueprint b;
    b.program.set_site({"", line_});
    b.program.set_stream(stream_);
    std::vector<ValueId> values;
    for (size_t i = 0; i < arguments.size(); ++i)
      values.push_back(input(b.program, i, arguments[i]));
    {
      TraceScope scope(false);
      for (auto& [name, id] : body_(b.program, values)) b.program.output(name, id);
      const auto outputs = b.program.outputs();
      for (size_t i = 0; i < outputs.size(); ++i)
        b.program.mutable_outputs()[i].second = own(b.program, outputs[i].second);
    }
    for (size_t v = 0; v < b.program.values().size(); ++v)
      if (Value& value = b.program.mutable_value(static_cast<ValueId>(v));
          value.state && (is_in_parts(*value.state) || may_be_held_in_parts(*value.state)))
        value.state = copy_of(value, b.program);
    return variants_.add(key, std::make_unique<Variant>(b, 0, Runtime::get()));
  }

  struct Copy {
    std::shared_ptr<State> of, whole;
    uint64_t version = UINT64_MAX;  // of the original, when it was copied
  };

  static bool is_updated(const Value& value, const Program& p) {
    return std::any_of(p.updates().begin(), p.updates().end(),
                       [&](auto& each) { return p.value(each.first).state == value.state; });
  }

  // Whether a training step, which is not compiled yet, may hold the state in parts.
  static bool may_be_held_in_parts(const State& s) {
    return world_info().size > 1 && s.trained && !s.bound;
  }

  const std::shared_ptr<State>& copy_of(const Value& value, const Program& p) {
    if (coordinates_of(*value.state) > 1 && is_updated(value, p))
      fail(ORR_INVALID,
           "{}: '{}' is held in parts by ranks that train apart: a function cannot change it; "
           "update it in the loss",
           line_, value.name);
    for (const Copy& c : copies_)
      if (c.of == value.state) return c.whole;
    materialize({value.state});
    auto whole = std::make_shared<State>();
    whole->name = value.state->name, whole->type = value.state->type,
    whole->role = value.state->role;
    whole->site = value.state->site;
    copies_.push_back({value.state, whole});
    return copies_.back().whole;
  }

  void refresh_copies() {
    for (Copy& c : copies_) {
      if (c.version == c.of->version) continue;
      write_state(*c.whole, read_state(*c.of));
      c.version = c.of->version;
    }
  }

  // Notes that a function has changed the state. If it is a copy, its original gets the value.
  void give_back(const std::shared_ptr<State>& state) {
    const auto c = std::find_if(copies_.begin(), copies_.end(),
                                [&](const Copy& each) { return each.whole == state; });
    if (c == copies_.end()) return note_written(state, line_);
    give_state(c->of, read_state(*state), line_);
    c->version = c->of->version;
  }

  // An output needs contiguous memory of its own: views and inputs are copied.
  static ValueId own(Program& p, ValueId id) { return p.pointwise(ORR_FN_INPUT, {id}); }

  std::function<Outputs(Program&, const std::vector<ValueId>&)> body_;
  std::string line_, stream_, told_as_;
  Recent variants_;
  std::vector<Copy> copies_;
  int64_t calls_ = 0;
};

}  // namespace

std::unique_ptr<Function> Function::make(
    std::function<Outputs(Program&, const std::vector<ValueId>&)> body, std::string line,
    std::string stream, std::string told_as) {
  return std::make_unique<CompiledFunction>(std::move(body), std::move(line), std::move(stream),
                                            std::move(told_as));
}

}  // namespace orrery
