// SPDX-License-Identifier: Apache-2.0
//
// A stack of strategies, applied in order.
#include "base/error.h"
#include "lower/average.h"
#include "lower/contract.h"
#include "lower/edit_table.h"
#include "lower/options.h"
#include "lower/precision.h"
#include "lower/recompute.h"
#include "lower/stage.h"
#include "lower/tensor.h"
#include "plugin/host.h"

namespace orrery {
namespace {

// The axes must make up the job.
void check_taken(const Spread& spread) {
  int taken = 1;
  std::string product;
  for (const Axis& axis : spread.axes) {
    taken *= axis.size;
    product += fmt::format("{}{} {}", product.empty() ? "" : " x ", axis.name, axis.size);
  }
  if (taken != spread.world)
    fail(ORR_INVALID, "{} {} ranks ({}) but the job has {}: change a size or -n", ranks_left_over,
         taken, product.empty() ? "none" : product, spread.world);
}

// Servers of their own time take parameters whole, and a step that is cut over one axis only.
void settle_servers(Spread& spread) {
  Serving& s = spread.serving;
  if (spread.axes.size() > 1 || spread.sliced)
    fail(ORR_INVALID,
         "{}: strategy.{} without a common step deals whole leaves to all ranks in one call: leave "
         "out the "
         "other strategies but recompute and precision, or give mode = \"sync\"",
         s.line, s.cause);
  for (auto& [name, how] : spread.sharded) s.owner[name] = how.owner;
  spread.sharded.clear(), spread.reduced.clear();
}

// A plugin refuses by ORR_INVALID; what else it returns is a failure of its own.
void check_edits(orr_status* status, const StrategyUse& use) {
  const bool failed = status && !use.script && host_table().error_code(status) == ORR_FAILED;
  check(status, "strategy." + use.name + (failed ? " failed" : ""));
}

// Calls one entry of every strategy's table; errors get the Lua line.
template <class Entry>
void call_each(Program& p, Spread& spread, const std::vector<StrategyUse>& stack, bool forward,
               Entry entry) {
  std::map<std::string, std::string> provided;
  for (const StrategyUse& use : stack) {
    try {
      const orr_strategy_api& api = strategy_of(use);
      const orr_strategy_info info = described(use);
      check_options(use, info);
      check_contract(use, info, stack, provided);
      orr_program edited{&p, &spread, use.name, &use, forward};
      orr_options options = options_of(use);
      check_edits((api.*entry)(api.self, &edited, &edit_table, &options), use);
    } catch (const Error& e) {
      throw Error(e.code(), (use.line.empty() ? "" : use.line + ": ") + e.what());
    }
  }
}

}  // namespace

Asked apply_forward(Program& p, const std::vector<StrategyUse>& stack) {
  Spread spread;
  call_each(p, spread, stack, true, &orr_strategy_api::transform_forward);
  set_precision(p, spread.dtypes);
  return spread.asked;
}

Spread apply_strategies(Program& p, const std::vector<StrategyUse>& stack, int world) {
  Spread spread;
  spread.world = world;
  call_each(p, spread, stack, false, &orr_strategy_api::transform);
  recompute(p, spread);
  spread.lives.clear();  // the program says it now
  if (!spread.pipe_axis.empty()) complete_sums(p);
  if (spread.averaging.every > 0) {
    if (spread.sliced)
      fail(ORR_INVALID,
           "strategy.{} trains on all leaves of a rank in one call: leave out what orders them in "
           "time",
           spread.averaging.cause);
    train_alone(p);
  }
  if (spread.serving.on()) settle_servers(spread);
  if (spread.idle > 0 && spread.sliced)
    fail(ORR_INVALID,
         "strategy.{} leaves ranks without leaves, which has no order in time: leave out what "
         "orders leaves",
         spread.idler);
  check_taken(spread);
  if (!spread.tensor.axis.empty())
    for (const std::string& remark : cut_program(p, spread, 0).remarks)
      spread.remarks.push_back(spread.tensor.cause + ": " + remark);
  return spread;
}

uint64_t predict_bytes(const StrategyUse& use, const orr_predict_query& query) {
  const orr_strategy_api& api = strategy_of(use);
  orr_prediction prediction{};
  prediction.size = sizeof prediction;
  check(api.predict(api.self, &query, &prediction), "strategy." + use.name + ": predict");
  return prediction.bytes_sent;
}

}  // namespace orrery
