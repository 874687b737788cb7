// SPDX-License-Identifier: Apache-2.0
//
// Data parallelism: every rank holds all parameters and computes its share of the batch; gradients
// are summed in buckets, which start to travel while backward still runs. EXACT: microbatches are
// added in the canonical tree (orrery/ops.h, LEAVES), so that any number of ranks gives the same
// bits. Buckets and overlap: Li et al., "PyTorch Distributed", VLDB 2020.
#include <iterator>
#include <string>
#include <vector>

#include <orrery/sdk/path.hpp>
#include <orrery/sdk/pieces.hpp>
#include <orrery/sdk/program.hpp>
#include <orrery/sdk/strategy.hpp>

namespace {

constexpr orr_option kOptions[] = {
    {"size", ORR_ATTR_INT, 0, "0", "ranks that share the batch; 0: all that are left"},
    {"bucket", ORR_ATTR_INT, 0, "26214400", "bytes of gradients that travel together"},
    {"shares", ORR_ATTR_TEXT, 0, "",
     "how many microbatches each rank gets beside the others: \"2,1\"; left out: as many"},
};

orr_status* describe(void*, orr_strategy_info* out) {
  return orr::guard([&] {
    out->numeric_class = ORR_CLASS_EXACT;
    out->n_options = std::size(kOptions), out->options = kOptions;
    out->provides = "shares of the batch", out->requires_ = "";
    out->conflicts = "shares of the batch";
  });
}

// Deals microbatches by a list of shares, "2,1", one for each rank.
void deal(const orr::Program& p, const std::string& list) {
  if (list.empty()) return;
  std::vector<int32_t> shares;
  for (const std::string& text : orr::path::cut(list, ',')) {
    long share = 0;
    if (!orr::path::whole_number(text, share) || share < 1 || share > 1000)
      throw orr::Error(ORR_INVALID,
                       "shares '" + list + "': '" + text +
                           "' is no share: give each rank a whole number from 1 to 1000");
    shares.push_back(static_cast<int32_t>(share));
  }
  orr::check(p.edit()->deal(p.raw(), "data", shares.data(), static_cast<int32_t>(shares.size())));
}

orr_status* transform(void*, orr_program* program, const orr_edit* edit,
                      const orr_options* options) {
  return orr::guard([&] {
    const orr::Program p(program, edit);
    const int64_t size = options->integer(options->self, "size", 0);
    const int64_t bucket = options->integer(options->self, "bucket", 26214400);
    if (size < 0) throw orr::Error(ORR_INVALID, "size " + std::to_string(size) + " is negative");
    if (bucket < 1)
      throw orr::Error(ORR_INVALID,
                       "bucket of " + std::to_string(bucket) + " bytes: give at least 1");
    p.axis("data", static_cast<int32_t>(size));
    p.each(1u << ORR_ROLE_BATCH,
           [&](orr::Value field, const orr_value_info&) { p.place(field, "data", 0); });
    deal(p, options->text(options->self, "shares", ""));
    p.each(1u << ORR_ROLE_GRAD,
           [&](orr::Value gradient, const orr_value_info&) { p.reduce(gradient, "data", bucket); });
  });
}

orr_status* predict(void*, const orr_predict_query* query, orr_prediction* out) {
  return orr::guard([&] {  // only the rows of embeddings are gathered
    out->bytes_sent =
        query->op == ORR_COLL_ALL_GATHER ? orr::bytes_of_pieces(*query) : orr::bytes_of_sum(*query);
  });
}

constexpr orr_strategy_api kApi = orr::strategy_table(describe, transform, predict);

}  // namespace

ORR_PLUGIN(ORR_KIND_STRATEGY, "data", "0.1.0", "data parallelism: bucketed all-reduce of gradients",
           orr::strategy_entry<kApi>, 1, {{"strategy", 1, 1}})
