// SPDX-License-Identifier: Apache-2.0
#include "gpt.h"

#include <random>

#include "program/build.h"
#include "program/train.h"

namespace program_test {

using namespace orrery;

namespace {

class Builder {
 public:
  Builder(Gpt& gpt, const GptShape& shape) : gpt_(gpt), p_(gpt.program), s_(shape) {}

  void run() {
    at("GPT");
    ValueId ids = p_.batch_input("ids", {ORR_I64, {s_.batch, s_.ctx}});
    ValueId labels = p_.batch_input("labels", {ORR_I64, {s_.batch, s_.ctx}});
    ValueId tok = param("tok.weight", {s_.vocab, s_.dim});
    at("GPT.tok");
    ValueId x = build::gather(p_, tok, ids);
    at("GPT.pos");
    ValueId pos =
        build::gather(p_, param("pos.weight", {s_.ctx, s_.dim}), build::iota(p_, s_.ctx, ORR_I64));
    at("GPT");
    x = dropout("GPT.drop", add(x, pos));
    for (int64_t i = 1; i <= s_.layers; ++i) x = block("blocks." + std::to_string(i), x);
    x = norm("norm", x);
    at("GPT.head");
    ValueId head = s_.tied ? tok : param("head.weight", {s_.vocab, s_.dim});
    ValueId logits = build::matmul(p_, x, head, false, true);
    at("");
    train(build::cross_entropy(p_, logits, labels, kNone, std::nullopt));
  }

 private:
  void at(const std::string& region) { p_.set_site({region, "gpt.lua:1"}); }
  ValueId add(ValueId a, ValueId b) { return p_.pointwise(ORR_FN_ADD, {a, b}); }
  ValueId mul(ValueId a, Operand b) { return p_.pointwise(ORR_FN_MUL, {a, b}); }

  std::shared_ptr<State> state(const std::string& name, const Dims& dims, Role role) {
    auto s = std::make_shared<State>();
    s->name = name, s->type = {ORR_F32, dims}, s->role = role;
    return s;
  }

  ValueId param(const std::string& name, const Dims& dims) {
    auto s = state(name, dims, Role::param);
    HostTensor t = HostTensor::make(s->type);
    std::mt19937 random(static_cast<uint32_t>(gpt_.params.size()) + 1);
    std::uniform_real_distribution<float> uniform(-0.5, 0.5);
    for (int64_t i = 0; i < t.type.elements(); ++i) t.data<float>()[i] = uniform(random);
    s->initial = Initial::of_data(t);
    gpt_.params.push_back(s);
    return p_.state_value(s);
  }

  ValueId dropout(const std::string& region, ValueId x) {
    at(region);
    return build::dropout(p_, x, s_.dropout);
  }

  ValueId linear(const std::string& path, ValueId x, int64_t out) {
    ValueId w = param(path + ".weight", {out, p_.type(x).dims.back()});
    ValueId b = param(path + ".bias", {out});
    at("GPT." + path);
    return add(build::matmul(p_, x, w, false, true), b);
  }

  ValueId norm(const std::string& path, ValueId x) {
    ValueId w = param(path + ".weight", {s_.dim}), b = param(path + ".bias", {s_.dim});
    at("GPT." + path);
    return build::layernorm(p_, x, w, b, 1e-5);
  }

  ValueId block(const std::string& path, ValueId x) {
    const int64_t keys = s_.kv_heads ? s_.dim / s_.heads * s_.kv_heads : s_.dim;
    ValueId qkv = linear(path + ".qkv", norm(path + ".ln1", x), s_.dim + 2 * keys);
    auto parts = build::split(p_, qkv, -1, {s_.dim, keys, keys});
    build::AttentionOptions how{
        .heads = s_.heads, .kv_heads = s_.kv_heads, .causal = s_.causal, .window = s_.window};
    if (s_.biased) how.bias = param(path + ".near", {s_.heads, s_.ctx, s_.ctx});
    at("GPT." + path);
    ValueId a = build::attention(p_, parts[0], parts[1], parts[2], how);
    ValueId y = dropout("GPT." + path + ".drop1", linear(path + ".proj", a, s_.dim));
    at("GPT." + path);
    x = add(x, y);
    ValueId h = linear(path + ".mlp.1", norm(path + ".ln2", x), 4 * s_.dim);
    at("GPT." + path + ".mlp.2");
    h = p_.pointwise(ORR_FN_GELU, {h});
    y = dropout("GPT." + path + ".drop2", linear(path + ".mlp.3", h, s_.dim));
    at("GPT." + path);
    return add(x, y);
  }

  ValueId moment(const State& param, const char* name, ValueId gradient, double decay) {
    auto s = state("optim." + param.name + "." + name, param.type.dims, Role::state);
    gpt_.moments.push_back(s);
    ValueId old = p_.state_value(s);
    ValueId now = add(mul(old, Operand::number(decay)), mul(gradient, Operand::number(1 - decay)));
    p_.update(old, now);
    return now;
  }

  void train(ValueId loss) {
    TrainParts parts;
    if (s_.clip > 0) parts.clips = {{s_.clip, gpt_.params}};
    parts.update = [this](Program&, const std::shared_ptr<State>& param, ValueId value,
                          ValueId gradient) {
      ValueId m = moment(*param, "m", gradient, 0.9),
              v = moment(*param, "v", mul(gradient, gradient), 0.99);
      ValueId root = add(p_.pointwise(ORR_FN_SQRT, {v}), p_.constant(1e-3, ORR_F32));
      return p_.pointwise(ORR_FN_SUB,
                          {value, mul(p_.pointwise(ORR_FN_DIV, {m, root}), Operand::number(1e-2))});
    };
    build_training(p_, loss, gpt_.params, parts);
  }

  Gpt& gpt_;
  Program& p_;
  const GptShape& s_;
};

}  // namespace

std::vector<std::shared_ptr<State>> Gpt::states() const {
  std::vector<std::shared_ptr<State>> all = params;
  all.insert(all.end(), moments.begin(), moments.end());
  return all;
}

Gpt make_gpt(const GptShape& shape) {
  Gpt gpt;
  Builder(gpt, shape).run();
  return gpt;
}

Named gpt_batch(const GptShape& shape, int step) {
  Named fields;
  int64_t n = shape.batch * shape.ctx;
  for (int64_t i = 0; i < n; ++i) {
    fields["ids"].push_back(static_cast<double>((i * 7 + step * 3 + i * i) % shape.vocab));
    fields["labels"].push_back(static_cast<double>((i * 5 + step + i * i * 3) % shape.vocab));
  }
  fields["$weight"] = Values(static_cast<size_t>(shape.batch), 1);
  fields["$step"] = {static_cast<double>(step)};
  return fields;
}

}  // namespace program_test
