// SPDX-License-Identifier: Apache-2.0
//
// strategy.rounds, a driver as a third party writes one: ranks train alone on their own parts of
// the batch, with programs of their own for the update; whenever somebody reads weights, these
// become the means of all ranks'. `fault` has it break a rule.
#include <string>
#include <vector>

#include <orrery/sdk/driver.hpp>
#include <orrery/sdk/program.hpp>
#include <orrery/sdk/strategy.hpp>
#include <orrery/sdk/traffic.hpp>

namespace {

constexpr const char* kAxis = "round";
constexpr orr_option kOptions[] = {{"fault", ORR_ATTR_TEXT, 0, "", "what it does wrong"}};

struct Kept {
  int32_t value;
  std::string name;
  orr_tensor type;
  bool is_param;
};

int32_t gradient_state(const orr::Program& program, const Kept& parameter) {
  const std::string name = "gradient." + parameter.name;
  orr::StateOf how{name.c_str()};
  how.dtype = parameter.type.dtype, how.passing = true;
  how.dims = std::vector<int64_t>(parameter.type.dims, parameter.type.dims + parameter.type.rank);
  return program.state(how);
}

class Rounds : public orr::Driver {
 public:
  explicit Rounds(std::string fault) : fault_(std::move(fault)) {}

  void write(const orr::Program& step, const std::vector<int64_t>& leaf_first) override {
    std::vector<Kept> states;
    step.each(1u << ORR_ROLE_PARAM | 1u << ORR_ROLE_STATE, [&](int32_t v, const auto& info) {
      const bool is_param = info.role == ORR_ROLE_PARAM;
      if (is_param || *info.beside) states.push_back({v, info.name, info.type, is_param});
    });
    for (size_t r = 0; r + 1 < leaf_first.size(); ++r)
      write_update(step, states, static_cast<int32_t>(r));
    for (const Kept& s : states) step.update(s.value, s.value);
    for (const Kept& s : states) {
      if (!s.is_param) continue;
      params_.push_back(s.name);
      if (const orr::Value gradient = step.gradient(s.value); gradient.exists())
        step.update(gradient_state(step, s), gradient);
    }
    if (fault_ == "late") orr::drive(step, std::make_unique<Rounds>(""), "stop");
  }

  void open(const orr_driver_host& host) override {
    host_ = &host;
    const int64_t first = host.leaf_first[host.rank], last = host.leaf_first[host.rank + 1];
    orr::check(host.piece(host.self, first, last + (fault_ == "piece"), &piece_));
    if (host.ranks > 1) orr::check(host.split(host.self, 0, host.rank, &group_));
    if (fault_ == "state") orr::PackedStates(host, {"no such state"});
    for (const std::string& name : params_) {
      weights_.emplace_back();
      orr::check(host.state(host.self, name.c_str(), &weights_.back()));
    }
  }

  void step(const orr_driver_step& step, double* outputs) override {
    orr::check(host_->compute(host_->self, piece_ + (fault_ == "pieces"), outputs));
    const int32_t rank = fault_ == "program" ? 7 : host_->rank;
    orr::check(host_->run(host_->self, name_of(rank).c_str(), step.scalars, step.step));
    outputs_.resize(static_cast<size_t>(host_->n_outputs));
    if (fault_ == "throws") throw "it";
  }

  void settle() override {
    if (fault_ == "outside") orr::check(host_->compute(host_->self, piece_, outputs_.data()));
    for (const orr_buffer& weights : weights_) {
      if (host_->ranks == 1) continue;
      orr_coll c{};
      c.size = sizeof c, c.op = ORR_COLL_ALL_REDUCE, c.dtype = ORR_F32, c.redop = ORR_RED_SUM;
      c.name = "weights", c.where = host_->where, c.send = c.recv = weights;
      c.count = static_cast<int64_t>(weights.bytes / sizeof(float));
      orr::check(host_->post(host_->self, group_, &c, 1));
      predicted_ += orr::traffic::bytes_sent(c, host_->rank, host_->ranks);
      for (int64_t i = 0; i < c.count; ++i)
        orr::data<float>(weights)[i] /= static_cast<float>(host_->ranks);
    }
  }

  void stop(const std::string&) override {}
  uint64_t predicted() const override { return predicted_; }

 private:
  static std::string name_of(int32_t rank) { return "update." + std::to_string(rank); }

  void write_update(const orr::Program& step, const std::vector<Kept>& states, int32_t rank) const {
    const orr::Program to(step.program(name_of(fault_ == "names" ? 0 : rank), rank), step.edit());
    std::vector<int32_t> given, as, now, next;
    for (const Kept& s : states) {
      now.push_back(s.value), next.push_back(step.updated(s.value));
      const orr::Value gradient = step.gradient(s.value);
      if (!s.is_param || !gradient.exists() || fault_ == "cut") continue;
      given.push_back(gradient), as.push_back(gradient_state(to, s));
    }
    const std::vector<orr::Value> before = to.copy_part(step, given, as, now),
                                  after = to.copy_part(step, given, as, next);
    for (size_t i = 0; i < states.size(); ++i) to.update(before[i], after[i]);
  }

  const std::string fault_;
  std::vector<std::string> params_;
  const orr_driver_host* host_ = nullptr;
  int32_t piece_ = 0, group_ = 0;
  std::vector<orr_buffer> weights_;
  std::vector<double> outputs_;
  uint64_t predicted_ = 0;
};

orr_status* describe(void*, orr_strategy_info* out) {
  return orr::guard([&] {
    out->numeric_class = ORR_CLASS_APPROX;
    out->n_options = 1, out->options = kOptions;
    out->provides = "rounds", out->requires_ = "", out->conflicts = "";
  });
}

void share_batch(const orr::Program& program) {
  program.axis(kAxis, 0);
  program.each(1u << ORR_ROLE_BATCH, [&](int32_t v, const auto&) { program.place(v, kAxis, 0); });
}

[[maybe_unused]] orr_status* transform(void*, orr_program* raw, const orr_edit* edit,
                                       const orr_options* o) {
  return orr::guard([&] {
    const std::string fault = o->text(o->self, "fault", "");
    const orr::Program program(raw, edit);
    share_batch(program);
    if (fault == "early") program.program("early", 0);
    orr_driver holes{};
    holes.size = sizeof holes;
    if (fault == "holes") orr::check(edit->drive(raw, &holes));
    orr_serve serve{};
    serve.size = sizeof serve, serve.axis = kAxis;
    if (fault == "serve") orr::check(edit->serve(raw, &serve));
    for (int times = fault == "twice" ? 2 : 1; times-- > 0;)
      orr::drive(program, std::make_unique<Rounds>(fault), "train in one process");
  });
}

[[maybe_unused]] constexpr orr_strategy_api kApi =
    orr::strategy_table(describe, transform, orr::predict_nothing);

}  // namespace

ORR_PLUGIN(ORR_KIND_STRATEGY, "rounds", "0.1.0",
           "ranks train alone, and meet when weights are read", orr::strategy_entry<kApi>, 1,
           {{"strategy", 1, 1}})
