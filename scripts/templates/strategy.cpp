// @name@: sparse gradients. Of every gradient each rank sends the largest elements alone; the
// others are added to the next step's (Lin et al., "Deep Gradient Compression", ICLR 2018). See
// orrery/sdk/program.hpp for the calls that edit a program.
#include <algorithm>

#include <orrery/sdk/program.hpp>
#include <orrery/sdk/strategy.hpp>

namespace {

constexpr const char* kAxis = "@name@";

constexpr orr_option kOptions[] = {
    {"fraction", ORR_ATTR_INT, 0, "100", "one element of so many is sent, one at least"},
};

orr_status* describe(void*, orr_strategy_info* out) {
  return orr::guard([&] {
    out->numeric_class = ORR_CLASS_APPROX;  // not the numbers of one process
    out->n_options = 1, out->options = kOptions;
    out->provides = "", out->requires_ = "", out->conflicts = "";
  });
}

// x[k] of every rank, one behind the other, as [ranks * k, width].
orr::Value of_all(const orr::Program& p, orr::Value x, const std::vector<int64_t>& dims) {
  const orr::Value all =
      p.op("all_gather", {x},
           {orr::text_attr("axis", kAxis), orr::int_attr("ranks", p.axis_size(kAxis))});
  return p.reshape(all, dims);
}

// The gradient that all ranks use, given this rank's summand of it.
orr::Value exchange(const orr::Program& p, orr::Value parameter, orr::Value gradient,
                    int64_t fraction) {
  const orr::Value residual =
      p.state({.name = "residual", .like = parameter, .varying = kAxis, .leave = ORR_LEAVE_SUM});
  const std::vector<int64_t> shape = p.dims(gradient);
  int64_t n = 1;
  for (const int64_t d : shape) n *= d;
  const int64_t k = std::max<int64_t>(1, n / fraction), ranks = p.axis_size(kAxis);

  const orr::Value row = p.reshape(gradient + residual, {1, n});
  const std::vector<orr::Value> largest =
      p.ops("topk", {p.pointwise(ORR_FN_ABS, {row})}, {orr::int_attr("k", k)});
  const orr::Value column = p.reshape(row, {n, 1}), at = p.reshape(largest[1], {k});
  const orr::Value sent = p.op("gather", {column, at});

  const std::vector<orr_attr> rows = {orr::int_attr("rows", n)};
  p.update(residual, p.reshape(column - p.op("scatter_add", {at, sent}, rows), shape));
  const orr::Value everyones =
      p.op("scatter_add", {of_all(p, at, {ranks * k}), of_all(p, sent, {ranks * k, 1})}, rows);
  return p.reshape(everyones, shape);
}

orr_status* transform(void*, orr_program* program, const orr_edit* edit,
                      const orr_options* options) {
  return orr::guard([&] {
    const orr::Program p(program, edit);
    const int64_t fraction = options->integer(options->self, "fraction", 100);
    if (fraction < 1)
      throw orr::Error(ORR_INVALID, "fraction " + std::to_string(fraction) + ": give at least 1");
    p.axis(kAxis, 0);  // all ranks that are left
    p.each(1u << ORR_ROLE_BATCH,
           [&](orr::Value field, const orr_value_info&) { p.place(field, kAxis, 0); });
    p.exchange(kAxis,
               [fraction](const orr::Program& step, orr::Value parameter, orr::Value gradient) {
                 return exchange(step, parameter, gradient, fraction);
               });
  });
}

// No formula of its own for what is sent: the host knows what every op sends.
constexpr orr_strategy_api table = orr::strategy_table(describe, transform);

}  // namespace

ORR_PLUGIN(ORR_KIND_STRATEGY, "@name@", "0.1.0", "Sparse gradients", orr::strategy_entry<table>, 1,
           {{"strategy", 1, 1}})
