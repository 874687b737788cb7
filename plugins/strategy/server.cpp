// SPDX-License-Identifier: Apache-2.0
//
// A synchronous parameter server: every parameter lives on one of a few servers, dealt by size. Workers
// push their gradients there, the server adds them and steps, workers pull the new weights. Servers
// work too: they are the first ranks that share the batch. EXACT: a server adds in the canonical tree.
// Li et al., "Scaling Distributed Machine Learning with the Parameter Server", OSDI 2014.
#include <string>
#include <vector>

#include <orrery/sdk/owners.hpp>
#include <orrery/sdk/pieces.hpp>
#include <orrery/sdk/strategy.hpp>

namespace {

constexpr orr_option kOptions[] = {
    {"mode", ORR_ATTR_TEXT, 0, "sync", "sync: every step waits for all gradients"},
    {"servers", ORR_ATTR_INT, 0, "1", "ranks that hold parameters' optimizer state and step them"},
    {"size", ORR_ATTR_INT, 0, "0", "ranks that share the batch; 0: all that are left"},
    {"bucket", ORR_ATTR_INT, 0, "26214400", "bytes of parameters that travel together"},
};

orr_status* describe(void*, orr_strategy_info* out) {
  return orr::guard([&] {
    out->numeric_class = ORR_CLASS_EXACT;
    out->n_options = std::size(kOptions), out->options = kOptions;
    out->provides = "a data axis, sharded state", out->requires_ = "";
    out->conflicts = "a data axis, sharded state";
  });
}

struct Editing {
  orr_program* program;
  const orr_edit* edit;
  int64_t bucket;
};

orr_status* place_batch(void* arg, int32_t value, const orr_value_info*) {
  auto* e = static_cast<Editing*>(arg);
  return e->edit->place(e->program, value, "data", 0);
}

// For gradients that no server can own alone: of scalars, and of weights that several stages use.
orr_status* reduce_gradient(void* arg, int32_t value, const orr_value_info*) {
  auto* e = static_cast<Editing*>(arg);
  return e->edit->reduce(e->program, value, "data", e->bucket);
}

void deal_params(const Editing& e, int32_t servers) {
  std::vector<orr::Param> params = orr::params_of(e.program, e.edit);
  std::vector<int64_t> bytes;
  for (const orr::Param& p : params) bytes.push_back(p.bytes);
  std::vector<orr::Owned> dealt = orr::deal_to_owners(bytes, servers, e.bucket);
  for (size_t i = 0; i < dealt.size(); ++i) {
    orr_shard how = {sizeof how, ORR_SHARD_STATE, "data", dealt[i].unit, dealt[i].owner, 0};
    orr::check(e.edit->shard(e.program, params[i].value, &how));
  }
}

orr_status* transform(void*, orr_program* program, const orr_edit* edit, const orr_options* o) {
  return orr::guard([&] {
    std::string mode = o->text(o->self, "mode", "sync");
    int64_t servers = o->integer(o->self, "servers", 1), size = o->integer(o->self, "size", 0);
    Editing e{program, edit, o->integer(o->self, "bucket", 26214400)};
    if (mode != "sync") throw orr::Error(ORR_UNIMPLEMENTED, "there is no mode '" + mode + "': sync is the one there is");
    if (size < 0) throw orr::Error(ORR_INVALID, "size " + std::to_string(size) + " is negative");
    if (e.bucket < 1) throw orr::Error(ORR_INVALID, "bucket of " + std::to_string(e.bucket) + " bytes: give at least 1");
    orr::check(edit->axis(program, "data", static_cast<int32_t>(size)));
    int32_t ranks = edit->axis_size(program, "data");
    if (servers < 1 || servers > ranks)
      throw orr::Error(ORR_INVALID, std::to_string(servers) + " servers among " + std::to_string(ranks) +
                                        " ranks: give from 1 to " + std::to_string(ranks));
    orr::check(edit->each(program, 1u << ORR_ROLE_BATCH, &e, place_batch));
    orr::check(edit->each(program, 1u << ORR_ROLE_GRAD, &e, reduce_gradient));
    deal_params(e, static_cast<int32_t>(servers));
  });
}

// Push and pull; what no server owns, and the loss, is summed for all as under strategy.data.
orr_status* predict(void*, const orr_predict_query* query, orr_prediction* out) {
  return orr::guard([&] { out->bytes_sent = query->counts ? orr::bytes_of_pieces(*query) : orr::bytes_of_sum(*query); });
}

constexpr orr_strategy_api kApi = orr::strategy_table(describe, transform, predict);

}  // namespace

ORR_PLUGIN(ORR_KIND_STRATEGY, "server", "0.1.0", "parameter server: push gradients, step there, pull weights",
           orr::strategy_entry<kApi>, 1, {{"strategy", 1, 1}})
