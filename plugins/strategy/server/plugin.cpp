// SPDX-License-Identifier: Apache-2.0
//
// A parameter server: every parameter belongs to one of a few servers, which share them by size.
// Workers push gradients to the server, the server updates the parameter, and workers pull the new
// weights. Servers are the first ranks that share the batch. They also work, unless they are
// dedicated. There are three modes:
//
//   sync   all ranks take the same steps, and a server adds in the canonical tree: EXACT
//   async  a server applies gradients in the order in which they arrive, which a log can record
//   stale  a server adds the gradients of one step from all workers; a worker that is `bound` steps
//          ahead of the weights waits
//
// Li et al., "Scaling Distributed Machine Learning with the Parameter Server", OSDI 2014; Dean et
// al., "Large Scale Distributed Deep Networks", NIPS 2012; Ho et al., "More Effective Distributed
// ML via a Stale Synchronous Parallel Parameter Server", NIPS 2013.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <orrery/sdk/owners.hpp>
#include <orrery/sdk/pieces.hpp>
#include <orrery/sdk/strategy.hpp>

#include "error.h"
#include "worker.h"

namespace {

constexpr orr_option kOptions[] = {
    {"mode", ORR_ATTR_TEXT, 0, "sync",
     "sync: every step waits for all gradients; async: none does; stale: up to a bound"},
    {"servers", ORR_ATTR_INT, 0, "1", "ranks that hold parameters' optimizer state and step them"},
    {"dedicated", ORR_ATTR_INT, 0, "0", "1: servers get no share of the batch, they only serve"},
    {"push", ORR_ATTR_INT, 0, "1", "async: steps whose gradients are pushed together, added"},
    {"pull", ORR_ATTR_INT, 0, "1", "async: steps between two pulls of the weights"},
    {"bound", ORR_ATTR_INT, 0, "0",
     "stale: steps that a worker may be ahead of the weights it reads"},
    {"log", ORR_ATTR_TEXT, 0, "", "async, stale: file that the order of arrivals is written to"},
    {"replay", ORR_ATTR_TEXT, 0, "", "async, stale: such a file, to be followed"},
    {"size", ORR_ATTR_INT, 0, "0", "ranks that share the batch; 0: all that are left"},
    {"bucket", ORR_ATTR_INT, 0, "26214400", "bytes of parameters that travel together"},
};
constexpr const char* kChoices[std::size(kOptions)] = {"sync,async,stale"};

orr_status* describe(void*, orr_strategy_info* out) {
  return orr::guard([&] {
    out->numeric_class = ORR_CLASS_EXACT;
    out->n_options = std::size(kOptions), out->options = kOptions;
    orr::tell_choices(out, kChoices);
    out->provides = "shares of the batch, sharded state", out->requires_ = "";
    out->conflicts = "shares of the batch, sharded state";
  });
}

// Returns the owner of each parameter, in the order of the parameters.
std::vector<orr::Owned> owners_of(const std::vector<orr::Param>& params, int32_t servers,
                                  int64_t bucket) {
  std::vector<int64_t> bytes;
  for (const orr::Param& p : params) bytes.push_back(p.bytes);
  return orr::deal_to_owners(bytes, servers, bucket);
}

// Mode sync: servers take part in every step. Gradients of scalars, and of weights that several
// stages use, cannot belong to one server; they are summed on all ranks.
void train_together(const orr::Program& p, int32_t servers, int64_t bucket) {
  p.each(1u << ORR_ROLE_GRAD,
         [&](orr::Value gradient, const orr_value_info&) { p.reduce(gradient, "data", bucket); });
  const std::vector<orr::Param> params = orr::params_of(p.raw(), p.edit());
  const std::vector<orr::Owned> dealt = owners_of(params, servers, bucket);
  for (size_t i = 0; i < dealt.size(); ++i) {
    orr_shard how{};
    how.size = sizeof how, how.what = ORR_SHARD_STATE, how.axis = "data";
    how.unit = dealt[i].unit, how.owner = dealt[i].owner;
    orr::check(p.edit()->shard(p.raw(), params[i].value, &how));
  }
}

template <class... Args>
[[noreturn]] void refuse(const Args&... why) {
  server::fail(ORR_INVALID, why...);
}

// Refuses an option that was given but belongs to another mode than the chosen one.
void refuse_given(const orr_options* o, const char* name, const std::string& remedy) {
  constexpr int64_t unset = INT64_MIN;
  int64_t whole = o->integer(o->self, name, unset);
  std::string text = o->text(o->self, name, "");
  if (whole == unset && text.empty()) return;
  refuse(name, " = ", text.empty() ? std::to_string(whole) : '"' + text + '"', " ", remedy);
}

int32_t at_least(int64_t least, const orr_options* o, const char* name) {
  int64_t given = o->integer(o->self, name, least);
  if (given < least || given > INT32_MAX) refuse(name, " = ", given, ": give at least ", least);
  return static_cast<int32_t>(given);
}

// Reads the options of modes async and stale, except the number of servers. Returns nothing for
// mode sync.
std::optional<server::Pace> pace_of(const orr_options* o) {
  std::string mode = o->text(o->self, "mode", "sync");
  server::Pace how;
  if (mode == "sync") {
    for (const char* name : {"push", "pull", "log", "replay"})
      refuse_given(o, name, "means nothing where every step waits for all: give mode = \"async\"");
    refuse_given(o, "bound", "means nothing where every step waits for all: give mode = \"stale\"");
    return std::nullopt;
  }
  how.log = o->text(o->self, "log", ""), how.replay = o->text(o->self, "replay", "");
  if (mode == "async") {
    refuse_given(o, "bound", "is for mode = \"stale\"");
    how.push = at_least(1, o, "push"), how.pull = at_least(1, o, "pull");
  } else {
    for (const char* name : {"push", "pull"})
      refuse_given(o, name, "is for mode = \"async\": stale workers push and pull every step");
    how.bound = at_least(0, o, "bound");
  }
  return how;
}

// Makes the axis of the ranks that share the batch. Dedicated servers are on it, but get no share.
// Returns the number of servers.
int32_t make_axis(const orr::Program& p, const orr_options* o) {
  int64_t servers = o->integer(o->self, "servers", 1),
          dedicated = o->integer(o->self, "dedicated", 0);
  int64_t size = o->integer(o->self, "size", 0);
  if (size < 0) refuse("size ", size, " is negative");
  const int32_t ranks = p.axis("data", static_cast<int32_t>(size));
  if (servers < 1 || servers > ranks)
    refuse(servers, " servers among ", ranks, " ranks: give from 1 to ", ranks);
  if (dedicated != 0 && dedicated != 1)
    refuse("dedicated = ", dedicated, ": give 0 or 1; servers says how many");
  if (dedicated && servers == ranks)
    refuse(servers, " dedicated servers leave none of the ", ranks,
           " ranks to work: give dedicated = 0",
           ranks > 1 ? " or servers = " + std::to_string(ranks - 1) : "");
  p.each(1u << ORR_ROLE_BATCH,
         [&](orr::Value field, const orr_value_info&) { p.place(field, "data", 0); });
  if (dedicated) orr::check(p.edit()->idle(p.raw(), "data", static_cast<int32_t>(servers)));
  return static_cast<int32_t>(servers);
}

void remark_traffic(const orr::Program& p, const server::Pace& how) {
  int64_t all = 0;
  for (const orr::Param& param : orr::params_of(p.raw(), p.edit())) all += param.bytes;
  const std::string text =
      how.bounded()
          ? server::text("a worker pushes gradients of ", all,
                         " bytes for each tree node of its leaves, and pulls weights of as many, "
                         "every step, at most ",
                         how.bound, " ahead")
          : server::text("a worker pushes gradients of ", all, " bytes every ", how.push,
                         " steps, and pulls weights of as many every ", how.pull);
  const std::string memory =
      "; a server of its part has weights, optimizer state, and gradients" +
      std::string(how.bounded() ? " of every tree node, for each step ahead as well" : "");
  p.remark(text + memory);
}

// Modes async and stale: workers and servers run without a common step.
void train_apart(const orr::Program& p, int32_t servers, int64_t bucket, server::Pace how) {
  const std::vector<orr::Param> params = orr::params_of(p.raw(), p.edit());
  const std::vector<orr::Owned> dealt = owners_of(params, servers, bucket);
  for (size_t i = 0; i < dealt.size(); ++i) how.owner[params[i].name] = dealt[i].owner;
  how.servers = servers;
  remark_traffic(p, how);
  orr::drive(p, std::make_unique<server::Worker>(std::move(how)), server::kRemedy);
}

orr_status* transform(void*, orr_program* program, const orr_edit* edit, const orr_options* o) {
  return orr::guard([&] {
    const orr::Program p(program, edit);
    const int64_t bucket = o->integer(o->self, "bucket", 26214400);
    const std::optional<server::Pace> pace = pace_of(o);
    if (bucket < 1) refuse("bucket of ", bucket, " bytes: give at least 1");
    const int32_t servers = make_axis(p, o);
    pace ? train_apart(p, servers, bucket, *pace) : train_together(p, servers, bucket);
  });
}

// Predicts mode sync: push and pull are exchanges of the common step. What no server owns, and the
// loss, is summed on all ranks as under strategy.data.
orr_status* predict(void*, const orr_predict_query* query, orr_prediction* out) {
  return orr::guard([&] {
    out->bytes_sent = query->counts ? orr::bytes_of_pieces(*query) : orr::bytes_of_sum(*query);
  });
}

constexpr orr_strategy_api kApi = orr::strategy_table(describe, transform, predict);

}  // namespace

ORR_PLUGIN(ORR_KIND_STRATEGY, "server", "0.1.0",
           "parameter server: push gradients, step there, pull weights", orr::strategy_entry<kApi>,
           1, {{"strategy", 1, 1}})
