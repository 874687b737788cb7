// SPDX-License-Identifier: Apache-2.0
//
// A good strategy that is EXACT and has a formula for what it sends: data parallelism.
#include <orrery/sdk/pieces.hpp>
#include <orrery/sdk/strategy.hpp>

namespace {

constexpr const char* kAxis = "museum";

constexpr orr_option kOptions[] = {
    {"bucket", ORR_ATTR_INT, 0, "1048576", "bytes of gradients that travel together"},
};

orr_status* describe(void*, orr_strategy_info* out) {
  return orr::guard([&] {
    // EXACT: the host sums in an order that does not depend on the ranks.
    out->numeric_class = ORR_CLASS_EXACT;
    out->n_options = 1, out->options = kOptions;
    out->provides = "shares of the batch", out->requires_ = "";
    out->conflicts = "shares of the batch";
  });
}

struct Editing {
  orr_program* program;
  const orr_edit* edit;
  int64_t bucket;
};

orr_status* place_batch(void* arg, int32_t value, const orr_value_info*) {
  const auto& e = *static_cast<const Editing*>(arg);
  return e.edit->place(e.program, value, kAxis, 0);
}

orr_status* reduce_gradient(void* arg, int32_t value, const orr_value_info*) {
  const auto& e = *static_cast<const Editing*>(arg);
  return e.edit->reduce(e.program, value, kAxis, e.bucket);
}

orr_status* transform(void*, orr_program* program, const orr_edit* edit,
                      const orr_options* options) {
  return orr::guard([&] {
    Editing editing{program, edit, options->integer(options->self, "bucket", 1048576)};
    if (editing.bucket < 1)
      throw orr::Error(ORR_INVALID,
                       "bucket " + std::to_string(editing.bucket) + ": give at least 1 byte");
    orr::check(edit->axis(program, kAxis, 0));  // all ranks that are left
    orr::check(edit->each(program, 1u << ORR_ROLE_BATCH, &editing, place_batch));
    orr::check(edit->each(program, 1u << ORR_ROLE_GRAD, &editing, reduce_gradient));
  });
}

// Embeddings' rows are gathered, all other gradients summed.
orr_status* predict(void*, const orr_predict_query* query, orr_prediction* out) {
  return orr::guard([&] {
    out->bytes_sent =
        query->op == ORR_COLL_ALL_GATHER ? orr::bytes_of_pieces(*query) : orr::bytes_of_sum(*query);
  });
}

constexpr orr_strategy_api table = orr::strategy_table(describe, transform, predict);

}  // namespace
