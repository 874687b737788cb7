// SPDX-License-Identifier: Apache-2.0
//
// A strategy plugin: what it says of itself, and a small model under it, on 1 to 3 ranks, against
// the same model in one process without it.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <orrery/sdk/path.hpp>
#include <sstream>

#include "base/error.h"
#include "base/process.h"
#include "conformance/loaded.h"
#include "conformance/lua_strategy.h"
#include "conformance/process.h"
#include "conformance/scripts.h"
#include "edit/contract.h"
#include "plugin/host.h"

namespace orrery::judge {
namespace {

const orr_strategy_api& strategy_of(const Subject& subject) {
  return registry_with(subject).strategy(subject.name());
}

orr_strategy_info info_of(const orr_strategy_api& api) {
  orr_strategy_info info{};
  info.size = sizeof info;
  check(api.describe(api.self, &info));
  return info;
}

void describe_in(const Subject& subject, Fit fit) {
  Loaded plugin(subject, fit);
  const orr_strategy_api& api = plugin.table<orr_strategy_api>(ORR_KIND_STRATEGY);
  Guarded<orr_strategy_info> info({}, fit);
  check(api.describe(api.self, info.get()));
  Guarded<orr_predict_query> query({}, fit);
  query->axis_size = 2, query->op = ORR_COLL_TREE_ALL_REDUCE, query->element_bytes = 4;
  query->reduced_elements = 100, query->reduced_bytes = 400, query->nodes = 1,
  query->total_nodes = 2;
  Guarded<orr_prediction> prediction({}, fit);
  orr_status* told = api.predict(api.self, query.get(), prediction.get());
  if (told && host_table().error_code(told) == ORR_UNIMPLEMENTED)
    host_table().error_release(told);  // it has no formula
  else
    check(told);
  if (!info.tail_intact() || !prediction.tail_intact())
    throw Fault("types.h: structs carry their size", "nothing written beyond what the plugin knows",
                "bytes of a newer host's were overwritten");
}
void exact_structs(const Subject& subject) { describe_in(subject, Fit::kExact); }
void longer_structs(const Subject& subject) { describe_in(subject, Fit::kLonger); }

void describe(const Subject& subject) {
  const orr_strategy_info info = info_of(strategy_of(subject));
  const auto expect = [](bool good, const std::string& what, const std::string& got) {
    if (!good) throw Fault("strategy.h: orr_strategy_info", what, got);
  };
  expect(info.numeric_class >= ORR_CLASS_EXACT && info.numeric_class <= ORR_CLASS_APPROX,
         "EXACT, STALE or APPROX", fmt::format("numeric_class {}", info.numeric_class));
  expect(info.provides && info.requires_ && info.conflicts, "words, or \"\" for none", "a NULL");
  expect(info.n_options == 0 || info.options, "as many options as n_options says", "NULL");
  for (int i = 0; i < info.n_options; ++i) {
    const orr_option& o = info.options[i];
    expect(o.name && o.name[0] && o.doc && o.doc[0], "options with a name and a line of doc",
           fmt::format("option {} without", i));
    expect(o.type >= 0 && o.type <= ORR_ATTR_TEXT,
           "options of type INT, REAL, TEXT, or 0 for either",
           fmt::format("'{}' of type {}", o.name, o.type));
    const char* choices = info.choices ? info.choices[i] : nullptr;
    if (!choices || !o.fallback || !o.fallback[0]) continue;
    const std::vector<std::string> known = orr::path::cut(choices, ',');
    expect(std::count(known.begin(), known.end(), o.fallback) == 1,
           fmt::format("the fallback of '{}' among its choices {}", o.name, choices), o.fallback);
  }
}

bool has_word(const std::string& words, const std::string& word) {
  std::istringstream list(words);
  for (std::string one; std::getline(list, one, ',');)
    if (one.substr(std::min(one.find_first_not_of(' '), one.size())) == word) return true;
  return false;
}

std::string call(const std::string& name) { return "strategy[\"" + name + "\"] {}"; }

Said said_by(const Subject& subject) {
  if (subject.is_lua()) return said_by_lua(subject);
  const orr_strategy_info info = info_of(strategy_of(subject));
  for (int i = 0; i < info.n_options; ++i)
    if (info.options[i].required)
      throw Skip(fmt::format("its option '{}' has no fallback", info.options[i].name));
  return {subject.name(), info.numeric_class, info.requires_, call(subject.name())};
}

// The strategy behind one of the installed ones for each word that it requires.
std::string stack_of(const Said& said) {
  std::string stack;
  std::istringstream words(said.requires_);
  for (std::string word; std::getline(words, word, ',');) {
    word = word.substr(std::min(word.find_first_not_of(' '), word.size()));
    for (const std::string& other : Registry::get().names(ORR_KIND_STRATEGY)) {
      if (other == said.name || !has_word(info_of(Registry::get().strategy(other)).provides, word))
        continue;
      stack += call(other) + ", ";
      break;
    }
  }
  return stack + said.call;
}

bool says(const ScriptRun& run, const std::string& words) {
  return run.output.find(words) != std::string::npos;
}

// Declared by it, one beside it or the core: these ranks or this model it does not train. All else
// that does not train is broken.
bool refuses(const ScriptRun& run, const std::vector<std::string>& names) {
  if (run.code != ORR_FAILED) return false;
  if (says(run, ranks_left_over)) return true;
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    for (const char* refusal : {": ", " cannot join ", " needs ", " leaves ", " trains "})
      if (says(run, "strategy." + name + refusal)) return true;
    return false;
  });
}

std::string end_of(const ScriptRun& run) {
  if (run.code == ORR_DEADLINE) return fmt::format("no end after {:.0f} s", run.seconds);
  if (run.code == 0) return "an end with code 0 before the end of the script";
  return fmt::format("{}: {}", describe_code(run.code), run.output);
}

// What a small model computes under the plugin on so many ranks, alone or behind an installed
// strategy that gives it the ranks it leaves; or why it is not trained on them.
struct Training {
  std::optional<ScriptRun> run;
  std::string refusal;
};

class Trainings {
 public:
  explicit Trainings(const Subject& subject, Halt halt = Halt::none)
      : subject_(subject),
        halt_(halt),
        stack_(stack_of(said_by(subject))),
        alone_(run_script(subject, false, "", 1)),
        patience_(10 + static_cast<int>(20 * alone_.seconds)) {}

  // One process without it.
  const ScriptRun& alone() const { return alone_; }

  Training on(int ranks) const {
    Training training = attempt("", ranks);
    for (const std::string& front : Registry::get().names(ORR_KIND_STRATEGY)) {
      if (training.run) break;
      if (front == subject_.name() ||
          info_of(Registry::get().strategy(front)).numeric_class != ORR_CLASS_EXACT)
        continue;
      training.run = attempt(front, ranks).run;
    }
    return training;
  }

  // Those numbers of ranks, of 1 to 3, on which it trains: 1 and another.
  std::map<int, ScriptRun> all() const {
    std::map<int, ScriptRun> done;
    std::string refusals;
    for (int ranks : {1, 2, 3}) {
      const Training training = on(ranks);
      if (training.run)
        done.emplace(ranks, *training.run);
      else
        refusals += fmt::format("on {} ranks: {}", ranks, training.refusal);
    }
    if (!done.count(1) || done.size() < 2)
      throw Fault(contract_, "a small model that trains under it on 1 rank, and on 2 or 3",
                  refusals);
    return done;
  }

 private:
  Training attempt(const std::string& front, int ranks) const {
    const ScriptRun run =
        run_script(subject_, true, (front.empty() ? "" : call(front) + ", ") + stack_, ranks,
                   patience_, halt_);
    if (run.code == 0 && !run.bits().empty()) return {run, ""};
    if (refuses(run, {subject_.name(), front})) return {{}, run.output};
    throw Fault(contract_,
                fmt::format("on {} ranks a small model that trains under it{}, or a refusal: "
                            "ORR_INVALID and a sentence",
                            ranks, front.empty() ? "" : " behind strategy." + front),
                end_of(run));
  }

  static constexpr const char* contract_ = "strategy.h: transform";
  const Subject& subject_;
  const Halt halt_;
  const std::string stack_;
  const ScriptRun alone_;
  const int patience_;  // seconds
};

double last_number(const std::string& text) {
  return std::atof(text.c_str() + text.rfind(' ') + 1);
}

void values(const Subject& subject) {
  const int32_t numeric_class = said_by(subject).numeric_class;
  const Trainings trainings(subject);
  const ScriptRun& alone = trainings.alone();
  for (const auto& [ranks, split] : trainings.all()) {
    if (numeric_class == ORR_CLASS_EXACT && split.bits() != alone.bits())
      throw Fault("strategy.h: ORR_CLASS_EXACT",
                  fmt::format("on {} ranks the losses and parameters of one process: {}", ranks,
                              alone.bits()),
                  split.bits());
    if (numeric_class != ORR_CLASS_EXACT &&
        !(std::fabs(last_number(split.lines("bits loss ")) -
                    last_number(alone.lines("bits loss "))) < 0.5))
      throw Fault("strategy.h: how far a strategy takes the numbers",
                  "a loss near that of one process: " + alone.lines("bits loss "),
                  split.lines("bits loss "));
  }
}

void predictions(const Subject& subject) {
  for (const auto& [ranks, split] : Trainings(subject).all()) {
    std::istringstream all(split.traffic());
    for (std::string one; std::getline(all, one, ',');) {
      int rank = 0;
      long long sent = 0, predicted = 0;
      if (std::sscanf(one.c_str(), " %d sent %lld predicted %lld", &rank, &sent, &predicted) != 3 ||
          sent != predicted)
        throw Fault("strategy.h: predict, \"The core compares it with the bytes that it counts\"",
                    fmt::format("on {} ranks what each sends, as counted", ranks), "rank" + one);
    }
  }
}

// What it keeps is saved: a run that is continued from a checkpoint has the bits of one that never
// stopped.
void continues(const Subject& subject) {
  const Trainings whole(subject), halted(subject, Halt::saved_and_loaded);
  for (int ranks : {2, 3}) {
    const std::optional<ScriptRun> one = whole.on(ranks).run, two = halted.on(ranks).run;
    if (!one || !two) continue;
    if (one->bits() != two->bits())
      throw Fault("strategy.h: orr_state_desc, \"it is saved in checkpoints and shown in plans\"",
                  fmt::format("on {} ranks, saved and loaded after two steps, what steps without a "
                              "halt give: {}",
                              ranks, one->bits()),
                  two->bits());
    return;
  }
}

}  // namespace

std::vector<Test> strategy_tests() {
  return {{"strategy.describe", 10, describe},
          {"strategy.exact_structs", 10, exact_structs},
          {"strategy.longer_structs", 10, longer_structs},
          {"strategy.values", 120, values},
          {"strategy.predictions", 120, predictions},
          {"strategy.continues", 120, continues}};
}

std::vector<Test> lua_strategy_tests() {
  return {{"strategy.values", 120, values},
          {"strategy.predictions", 120, predictions},
          {"strategy.continues", 120, continues}};
}

}  // namespace orrery::judge
