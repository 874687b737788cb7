// SPDX-License-Identifier: Apache-2.0
//
// Activation recomputation: of every element of a list of modules ("blocks.3") backward computes
// again what is cheap, and keeps matrix products and attention. frugal.lua is the same strategy in
// Lua.
#include <algorithm>
#include <map>
#include <set>

#include <orrery/sdk/path.hpp>
#include <orrery/sdk/program.hpp>
#include <orrery/sdk/strategy.hpp>

namespace {

orr_status* describe(void*, orr_strategy_info* out) {
  return orr::guard([&] {
    out->numeric_class = ORR_CLASS_EXACT;
    out->n_options = 0, out->options = nullptr;
    out->provides = "recomputation", out->requires_ = "", out->conflicts = "recomputation";
  });
}

// "blocks.3" of "GPT.blocks.3.mlp.1", "" of what lies in no list.
std::string element_of(std::string_view region) {
  std::string front;
  for (const std::string& part : orr::path::cut(orr::path::inside(region), '.')) {
    front += (front.empty() ? "" : ".") + part;
    if (long number; orr::path::whole_number(part, number)) return front;
  }
  return "";
}

struct Op {
  std::string element;
  std::vector<int32_t> in, out;
  bool backward = false, cheap = false;
};

class Repeater {
 public:
  explicit Repeater(const orr::Program& p) : p_(p) {
    p.each(~0u, [&](orr::Value v, const orr_value_info& info) {
      if (info.op < 0) return;
      Op& op = ops_[info.op];
      const std::string_view kind = info.kind;
      op.element = element_of(info.region);
      op.backward = info.runs == ORR_PHASE_BACKWARD;
      op.cheap = info.phase == ORR_PHASE_FORWARD && info.batch == ORR_BATCH_SAMPLES &&
                 !op.element.empty() && kind != "matmul" && kind != "attention";
      op.out.resize(std::max(op.out.size(), static_cast<size_t>(info.output) + 1));
      op.out[static_cast<size_t>(info.output)] = v;
      maker_[v] = info.op;
    });
    for (auto& [number, op] : ops_) {
      op.in = p.inputs(op.out[0]);
      for (int32_t v : op.in)
        if (const auto made = maker_.find(v);
            made != maker_.end() && !op.backward && ops_[made->second].element != op.element)
          kept_.insert(v);  // forward reads it elsewhere
    }
  }

  void run() {
    for (auto& [number, op] : ops_)
      for (auto at = op.in.begin(); at != op.in.end(); ++at)
        if (op.backward && !std::count(op.in.begin(), at, *at))
          if (const int32_t again = copy_of(*at); again != *at) p_.reread(op.out[0], *at, again);
  }

 private:
  // v as backward reads it.
  int32_t copy_of(int32_t v) {
    const auto made = maker_.find(v);
    if (made == maker_.end() || !ops_[made->second].cheap || kept_.count(v)) return v;
    if (copies_.count(v)) return copies_[v];
    const Op& op = ops_[made->second];
    std::vector<int32_t> in;
    for (int32_t x : op.in) in.push_back(copy_of(x));
    const std::vector<orr::Value> copies = p_.copy(v, ORR_PHASE_BACKWARD, in);
    for (size_t i = 0; i < copies.size(); ++i) copies_[op.out[i]] = copies[i];
    return copies_[v];
  }

  const orr::Program& p_;
  std::map<int32_t, Op> ops_;
  std::map<int32_t, int32_t> maker_, copies_;  // by value
  std::set<int32_t> kept_;
};

orr_status* transform(void*, orr_program* program, const orr_edit* edit, const orr_options*) {
  return orr::guard([&] {
    const orr::Program p(program, edit);
    p.complete(nullptr,
               [](const orr::Program& step, orr::Value, orr::Value) { Repeater(step).run(); });
  });
}

constexpr orr_strategy_api table = orr::strategy_table(describe, transform, orr::predict_nothing);

}  // namespace

ORR_PLUGIN(ORR_KIND_STRATEGY, "frugal", "1.0.0", "Recomputes what is cheap",
           orr::strategy_entry<table>, 1, {{"strategy", 1, 1}})
