// SPDX-License-Identifier: Apache-2.0
//
// Activation recomputation: activations of a region (a part of the model, such as one block) are
// not kept from forward to backward; backward computes them again. EXACT. "full" keeps only what
// enters a region (Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016). "selective"
// also keeps matrix products and attention, and repeats what is cheap (Korthikanti et al.,
// "Reducing Activation Recomputation", MLSys 2023). With offload, activations are not repeated but
// wait in another memory tier.
#include <algorithm>
#include <map>
#include <set>

#include <orrery/sdk/path.hpp>
#include <orrery/sdk/program.hpp>
#include <orrery/sdk/strategy.hpp>

namespace {

constexpr orr_option kOptions[] = {
    {"mode", ORR_ATTR_TEXT, 0, "full", "full: all but its inputs; selective: what is cheap"},
    {"path", ORR_ATTR_TEXT, 0, "", "regions such as blocks.*; left out: elements of lists"},
    {"offload", ORR_ATTR_TEXT, 0, "none",
     "host or disk: nothing is repeated, activations wait there"},
};
constexpr const char* kChoices[std::size(kOptions)] = {"full,selective", nullptr, "none,host,disk"};

orr_status* describe(void*, orr_strategy_info* out) {
  return orr::guard([&] {
    out->numeric_class = ORR_CLASS_EXACT;
    out->n_options = std::size(kOptions), out->options = kOptions;
    orr::tell_choices(out, kChoices);
    out->provides = "recomputation", out->requires_ = "", out->conflicts = "recomputation";
  });
}

// The region in which forward makes an activation. `kept`: backward does not compute it again.
struct Life {
  std::string region;
  bool kept = false;
};
using Lives = std::map<int32_t, Life>;  // by value

struct Editing {
  std::vector<std::string> patterns;
  bool selective = false;
  std::set<std::string> matched;  // patterns that matched a module
  std::set<std::string> seen;     // all modules, for messages
};

// Returns the region that a module's path belongs to. With patterns it is the part of the path that
// a pattern matches; without, the path up to its first number ("blocks.3").
std::string region_of(Editing& e, const std::string& path) {
  std::string front;
  for (const std::string& part : orr::path::cut(path, '.')) {
    front += (front.empty() ? "" : ".") + part;
    e.seen.insert(front);
    long number;
    if (e.patterns.empty() && orr::path::whole_number(part, number)) return front;
  }
  for (const std::string& pattern : e.patterns)
    if (std::string found = orr::path::front(pattern, path); !found.empty()) {
      e.matched.insert(pattern);
      return found;
    }
  return "";
}

bool costly(std::string_view kind) {
  return kind == "matmul" || kind == "gather_matmul" || kind == "attention";
}

std::string names_of(const std::set<std::string>& modules) {
  std::string text;
  for (const std::string& name : modules)
    if (std::count(name.begin(), name.end(), '.') < 2) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

Lives lives_of(const orr::Program& p, Editing& e) {
  Lives lives;
  p.each(1u << ORR_ROLE_ACTIVATION, [&](orr::Value v, const orr_value_info& info) {
    if (info.phase != ORR_PHASE_FORWARD) return;
    const std::string region = region_of(e, orr::path::inside(info.region));
    if (!region.empty()) lives[v] = {region, e.selective && costly(info.kind)};
  });
  for (const std::string& pattern : e.patterns)
    if (!e.matched.count(pattern))
      throw orr::Error(ORR_INVALID,
                       "path '" + pattern + "' matches no module; there are: " + names_of(e.seen));
  return lives;
}

// Lets backward read copies of activations, each computed right before backward first uses it.
// Values without a batch dim are kept, and so are those that forward reads outside of their region.
class Repeater {
 public:
  Repeater(const orr::Program& p, const Lives& lives) : p_(p), lives_(lives) {
    p.each(~0u, [&](orr::Value v, const orr_value_info& info) { know(v, info); });
    for (auto& [number, op] : ops_) {
      op.in = p.inputs(op.out[0]);
      if (op.runs == ORR_PHASE_BACKWARD) continue;
      for (int32_t v : op.in)
        if (repeated_.count(v) && region_of_op(op) != lives.at(v).region) repeated_.erase(v);
    }
  }

  void run() {
    for (auto& [number, op] : ops_)
      if (op.runs == ORR_PHASE_BACKWARD)
        for (auto at = op.in.begin(); at != op.in.end(); ++at)
          if (repeated_.count(*at) && !std::count(op.in.begin(), at, *at))
            p_.reread(op.out[0], *at, again(*at));
  }

 private:
  struct Op {
    std::vector<int32_t> in, out;
    int32_t runs = 0;
  };

  void know(int32_t v, const orr_value_info& info) {
    if (info.op < 0) return;
    Op& op = ops_[info.op];
    op.runs = info.runs;
    op.out.resize(std::max(op.out.size(), static_cast<size_t>(info.output) + 1));
    op.out[static_cast<size_t>(info.output)] = v;
    maker_[v] = info.op;
    const auto life = lives_.find(v);
    if (life != lives_.end() && !life->second.kept && info.batch == ORR_BATCH_SAMPLES)
      repeated_.insert(v);
  }

  // Returns the region of the op's result.
  std::string region_of_op(const Op& op) const {
    const auto at = lives_.find(op.out[0]);
    return at == lives_.end() ? "" : at->second.region;
  }

  // Returns the value that backward reads instead of v: a copy, or v itself if it is kept.
  int32_t again(int32_t v) {
    if (!repeated_.count(v)) return v;
    if (auto known = copies_.find(v); known != copies_.end()) return known->second;
    const Op& op = ops_.at(maker_.at(v));
    std::vector<int32_t> in;
    for (int32_t x : op.in) in.push_back(again(x));
    const std::vector<orr::Value> made = p_.copy(v, ORR_PHASE_BACKWARD, in);
    for (size_t i = 0; i < op.out.size(); ++i) copies_[op.out[i]] = made[i];
    return copies_.at(v);
  }

  const orr::Program& p_;
  const Lives& lives_;
  std::map<int64_t, Op> ops_;         // by number, which is the program's order
  std::map<int32_t, int64_t> maker_;  // by value: the number of the op that makes it
  std::set<int32_t> repeated_;
  std::map<int32_t, int32_t> copies_;
};

int32_t life_of(const std::string& offload) {
  if (offload == "none") return ORR_LIFE_RECOMPUTE;
  return offload == "host" ? ORR_LIFE_HOST : ORR_LIFE_DISK;
}

orr_status* transform(void*, orr_program* program, const orr_edit* edit,
                      const orr_options* options) {
  return orr::guard([&] {
    const std::string mode = options->text(options->self, "mode", "full");
    Editing e{
        orr::path::cut(options->text(options->self, "path", ""), ','), mode == "selective", {}, {}};
    const int32_t life = life_of(options->text(options->self, "offload", "none"));
    if (e.selective && life != ORR_LIFE_RECOMPUTE)
      throw orr::Error(
          ORR_INVALID,
          "mode 'selective' repeats what is cheap, offload repeats nothing: leave one out");
    const orr::Program p(program, edit);
    const Lives lives = lives_of(p, e);
    if (life == ORR_LIFE_RECOMPUTE)
      return p.complete(nullptr, [lives](const orr::Program& step, orr::Value, orr::Value) {
        Repeater(step, lives).run();
      });
    for (auto& [v, in] : lives) orr::check(edit->life(program, v, in.region.c_str(), life));
  });
}

// This strategy sends nothing.
constexpr orr_strategy_api kApi = orr::strategy_table(describe, transform, orr::predict_nothing);

}  // namespace

ORR_PLUGIN(ORR_KIND_STRATEGY, "recompute", "0.1.0", "activations computed again in backward",
           orr::strategy_entry<kApi>, 1, {{"strategy", 1, 1}})
