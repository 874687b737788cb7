// SPDX-License-Identifier: Apache-2.0
//
// Functions of tensors: no batch; every caller computes the whole. What they read of states that a run
// holds in parts is a copy of the whole, gathered after the states have changed; all ranks call then.
#include <algorithm>
#include <map>

#include "base/error.h"
#include "program/build.h"
#include "run/states.h"
#include "run/variant.h"

namespace orrery {
namespace {

struct ByName {
  bool operator()(const std::shared_ptr<State>& a, const std::shared_ptr<State>& b) const { return a->name < b->name; }
};

class CompiledFunction : public Function {
 public:
  CompiledFunction(std::function<Outputs(Program&, const std::vector<ValueId>&)> body, std::string line)
      : body_(std::move(body)), line_(std::move(line)) {}

  std::vector<HostTensor> call(const std::vector<HostTensor>& inputs,
                               const std::map<std::string, double>& scalars) override {
    Variant& variant = variant_for(inputs);
    refresh();
    variant.set_scalars(scalars, ++calls_);
    variant.set_inputs(inputs);
    variant.run();
    return variant.fetch_tensors();
  }

 private:
  Variant& variant_for(const std::vector<HostTensor>& inputs) {
    std::string key;
    for (const HostTensor& t : inputs) key += to_string(t.type);
    auto& found = variants_[key];
    if (found) return *found;
    Blueprint b;
    b.program.set_site({"", line_});
    std::vector<ValueId> values;
    for (size_t i = 0; i < inputs.size(); ++i)
      values.push_back(b.program.input(std::to_string(i), inputs[i].type));
    {
      TraceScope scope(b.program, false);
      for (auto& [name, id] : body_(b.program, values)) b.program.output(name, own(b.program, id));
    }
    copy_cut_states(b.program);
    found = std::make_unique<Variant>(b, 0, Runtime::get());
    return *found;
  }

  // Those that the function writes stay: to write a part of a whole is an error of its own.
  void copy_cut_states(Program& p) {
    for (size_t i = 0; i < p.values().size(); ++i) {
      Value& v = p.mutable_value(static_cast<ValueId>(i));
      bool written = std::any_of(p.updates().begin(), p.updates().end(),
                                 [&](auto& update) { return update.first == static_cast<ValueId>(i); });
      if (!v.state || v.state->parts.empty() || written) continue;
      std::shared_ptr<State>& copy = copies_[v.state];
      if (!copy) {
        copy = std::make_shared<State>();
        copy->name = v.state->name, copy->type = v.state->type, copy->role = v.state->role, copy->site = v.state->site;
        copied_ = 0;
      }
      v.state = copy;
    }
  }

  void refresh() {
    if (copies_.empty() || copied_ == states_version() + 1) return;
    for (auto& [state, copy] : copies_) {
      materialize({copy});
      write_state(*copy, read_state(*state));
    }
    copied_ = states_version() + 1;
  }

  // An output needs contiguous memory of its own: views and inputs are copied.
  static ValueId own(Program& p, ValueId id) { return p.pointwise(ORR_FN_INPUT, {id}); }

  std::function<Outputs(Program&, const std::vector<ValueId>&)> body_;
  std::string line_;
  std::map<std::string, std::unique_ptr<Variant>> variants_;
  std::map<std::shared_ptr<State>, std::shared_ptr<State>, ByName> copies_;  // in one order on all ranks
  uint64_t copied_ = 0;  // 1 + the states' version when the copies were made
  int64_t calls_ = 0;
};

}  // namespace

std::unique_ptr<Function> Function::make(
    std::function<Outputs(Program&, const std::vector<ValueId>&)> body, std::string line) {
  return std::make_unique<CompiledFunction>(std::move(body), std::move(line));
}

}  // namespace orrery
