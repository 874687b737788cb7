// SPDX-License-Identifier: Apache-2.0
//
// Bad strategies that say they are EXACT.
#include "fault.h"

#include "../../../plugins/strategy/data.cpp"
#pragma pop_macro("ORR_PLUGIN")

#include <unistd.h>

#include <cstdlib>
#include <orrery/sdk/program.hpp>
#include <stdexcept>
#include <vector>

namespace {

orr_status* bad_describe(void* self, orr_strategy_info* out) {
  orr_status* status = kApi.describe(self, out);
  if (fault("has_no_class")) out->numeric_class = 0;
  if (fault("gives_null_for_words")) out->requires_ = nullptr;
  if (fault("has_options_without_words")) {
    static const orr_option without = {"bucket", ORR_ATTR_INT, 0, "1", ""};
    out->options = &without;
  }
  if (fault("leaves_its_fallback_out")) {
    static const orr_option one = {"shares", ORR_ATTR_TEXT, 0, "even", "how the batch is shared"};
    static const char* const choices[] = {"odd,uneven"};
    out->n_options = 1, out->options = &one, out->choices = choices;
  }
  return status;
}

orr_status* bad_predict(void* self, const orr_predict_query* query, orr_prediction* out) {
  orr_status* status = kApi.predict(self, query, out);
  if (fault("predicts_wrong_bytes")) out->bytes_sent += 4;
  if (fault("predicts_for_two_ranks") && query->axis_size > 2) out->bytes_sent /= 2;
  return status;
}

decltype(orr_edit::reduce) reduce;
int gradients;  // of this program, whose sums were asked for

orr_status* bad_transform(void* self, orr_program* program, const orr_edit* edit,
                          const orr_options* options) {
  if (fault("throws_in_transform")) throw std::runtime_error("thrown across the border");
  if (edit->ranks_left(program) != 2) return kApi.transform(self, program, edit, options);
  if (fault("aborts_on_two_ranks")) std::abort();
  if (fault("exits_on_two_ranks")) std::exit(0);
  if (fault("throws_on_two_ranks"))
    return orr::guard([] { throw std::out_of_range("vector::at"); });
  while (fault("loops_on_two_ranks")) pause();
  if (fault("overflows_on_two_ranks")) deeper(nullptr);
  orr_edit forgetful = *edit;
  if (fault("forgets_a_reduce"))
    forgetful.reduce = [](orr_program* of, int32_t value, const char* axis, int64_t bucket) {
      return ++gradients == 2 ? nullptr : reduce(of, value, axis, bucket);
    };
  reduce = edit->reduce, gradients = 0;
  return kApi.transform(self, program, &forgetful, options);
}

// EXACT, it says, and rounds what products give to bf16.
orr_status* narrow(void*, orr_program* program, const orr_edit* edit, const orr_options*) {
  return orr::guard([&] {
    const orr::Program p(program, edit);
    std::vector<orr::Value> products;
    p.each(1u << ORR_ROLE_ACTIVATION, [&](orr::Value v, const orr_value_info& info) {
      if (std::string_view(info.kind) == "matmul") products.push_back(v);
    });
    for (orr::Value v : products) p.replace(v, p.cast(p.cast(v, ORR_BF16), ORR_F32));
  });
}

// Calls that mean nothing before there are gradients and ranks.
constexpr bool early = fault("makes_an_axis_too_early") || fault("places_too_early") ||
                       fault("remarks_too_early") || fault("loops_too_early") ||
                       fault("shards_too_early") || fault("is_independent_too_early");

orr_status* too_early(void*, orr_program* program, const orr_edit* edit, const orr_options*) {
  return orr::guard([&] {
    const orr::Program p(program, edit);
    orr_shard how{};
    how.size = sizeof how, how.what = ORR_SHARD_PARAM, how.axis = "data";
    how.owner = -1, how.ahead = 1;
    if (fault("makes_an_axis_too_early")) orr::check(edit->axis(program, "early", 1));
    if (fault("remarks_too_early")) orr::check(edit->diag(program, "a line of the plan"));
    if (fault("loops_too_early")) orr::check(edit->loop(program));
    if (fault("is_independent_too_early")) orr::check(edit->independent(program, "data"));
    p.each(1u << ORR_ROLE_PARAM, [&](orr::Value v, const orr_value_info&) {
      if (fault("places_too_early")) orr::check(edit->place(program, v.id, "data", 0));
      if (fault("shards_too_early")) orr::check(edit->shard(program, v.id, &how));
    });
  });
}

orr_strategy_api bad_table() {
  orr_strategy_api bad = kApi;
  bad.describe = bad_describe, bad.predict = bad_predict, bad.transform = bad_transform;
  if (fault("changes_the_values")) bad.transform_forward = narrow;
  if (early) bad.transform_forward = too_early;
  return bad;
}

const orr_strategy_api bad = bad_table();

}  // namespace

ORR_PLUGIN(ORR_KIND_STRATEGY, FAULT_NAME, "0.1.0", "A bad strategy", orr::strategy_entry<bad>, 1,
           {{"strategy", 1, 1}})
