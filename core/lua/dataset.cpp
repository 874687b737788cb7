// SPDX-License-Identifier: Apache-2.0
//
// Datasets in Lua: cut, sharded, and asked for batches.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/digest.h"
#include "data/augment.h"
#include "data/batch_reader.h"
#include "data/random.h"
#include "data/slice.h"
#include "lua/call.h"
#include "lua/mapped.h"
#include "lua/own_order.h"
#include "run/runtime.h"

namespace orrery::lua {
namespace {

// A loop over batches. The one under way and the next exist: the next is read ahead.
struct Batches {
  static constexpr const char* kClass = "Batches";
  Samples samples;
  BatchOrder order;  // of the next
  int64_t last;
  int64_t workers = 1;
  std::shared_ptr<BatchReader> current = {}, next = {};
  bool told_wrap = false;
};

BatchOrder order_in(const Table& options, int64_t step) {
  const bool own = options.has("seed");
  const BatchOrder order{
      step, options.integer("size"), options.flag("shuffle"),
      own ? static_cast<uint64_t>(options.integer("seed")) : runtime_options().seed};
  if (order.size < 1 || order.step < 1) {
    fail(ORR_INVALID, "batches: step {} and size {}: both are at least 1", order.step, order.size);
  }
  if (order.size > INT64_MAX / order.step)
    fail(ORR_INVALID, "batches: step {} and size {}: more samples than can be counted", order.step,
         order.size);
  return order;
}

std::shared_ptr<BatchReader> make_batch(const Samples& samples, const BatchOrder& order,
                                        int64_t workers = 1) {
  return std::make_shared<BatchReader>(samples.data, batch_picks(samples, order), workers);
}

// {field = Field}.
void push_batch(lua_State* L, const std::shared_ptr<BatchReader>& batch) {
  Digest identity;
  for (const Pick& pick : batch->picks()) identity.add(&pick.sample, sizeof pick.sample);
  lua_newtable(L);
  const std::vector<DataField>& fields = batch->data()->fields();
  for (size_t i = 0; i < fields.size(); ++i) {
    Type type = fields[i].sample;
    type.dims.insert(type.dims.begin(), static_cast<int64_t>(batch->picks().size()));
    push(L, Field{{type,
                   [batch, i](int64_t begin, int64_t end, std::byte* to) {
                     batch->load(i, begin, end, to);
                   },
                   identity.number()}});
    lua_setfield(L, -2, fields[i].name.c_str());
  }
}

// Says once of a dataset that a pass in order of its samples has begun again within a batch, which
// counts samples twice where the pass was to be over a test set. [rank 0]
void tell_wrap(const std::string& line, const Samples& samples, const BatchOrder& order,
               bool& told) {
  const int64_t items = samples.items(), first = (order.step - 1) * order.size;
  if (told || order.shuffle || order.listed || order.rest != Rest::joined || first >= items ||
      first + order.size <= items)
    return;
  told = true;
  if (world_info().rank == 0)
    spdlog::warn(
        "{}: batch {} of size {} has the last of {} samples and begins again with the first: a "
        "pass that has each sample once is data:batches {{ size = {}, epochs = 1 }}",
        line, order.step, order.size, items, order.size);
}

Pushed batch(lua_State* L, DatasetRef& self, int64_t step, const Table& options) {
  const BatchOrder order = order_in(options, step);
  tell_wrap(user_line(L), self.samples, order, self.told_wrap);
  push_batch(L, make_batch(self.samples, order));
  return {1};
}

// upvalue: Batches
int next_batch(lua_State* L) {
  return guard(L, [](lua_State* state) {
    auto& loop = check<Batches>(state, lua_upvalueindex(1));
    if (loop.current) loop.current->release();
    if (loop.order.step > loop.last) return 0;
    tell_wrap(user_line(state), loop.samples, loop.order, loop.told_wrap);
    loop.current = loop.next ? loop.next : make_batch(loop.samples, loop.order, loop.workers);
    const int64_t epoch = loop.order.epoch(loop.order.items(loop.samples)) + 1;
    lua_pushinteger(state, loop.order.step++);
    loop.next =
        loop.order.step > loop.last ? nullptr : make_batch(loop.samples, loop.order, loop.workers);
    loop.current->set_next(loop.next);
    push_batch(state, loop.current);
    lua_pushinteger(state, epoch);
    return 3;
  });
}

// The last step of so many epochs, whose ends `order` keeps from now on.
int64_t last_of_epochs(const Table& options, int64_t items, BatchOrder& order) {
  const std::string rest = options.has("last") ? options.text("last") : "short";
  if (rest != "short" && rest != "drop")
    fail(ORR_INVALID, "batches: last is '{}': it is 'short' or 'drop'", rest);
  order.rest = rest == "short" ? Rest::own_batch : Rest::dropped;
  const int64_t epochs = options.integer("epochs"), each = order.batches(items);
  if (epochs < 1) fail(ORR_INVALID, "batches: epochs is {}, expected at least 1", epochs);
  if (each == 0)
    fail(ORR_INVALID, "batches: {} samples do not fill a batch of {}, and last = 'drop'", items,
         order.size);
  if (epochs > INT64_MAX / each)
    fail(ORR_INVALID, "batches: {} epochs have more steps than can be counted", epochs);
  return epochs * each;
}

// How many threads read a batch.
int64_t workers_in(const Table& options, const Dataset& data) {
  constexpr int64_t most = 256;
  const int64_t workers = options.integer("workers");
  if (workers < 1 || workers > most)
    fail(ORR_INVALID, "batches: workers is {}: 1 to {} threads", workers, most);
  if (workers > 1 && data.main_thread())
    fail(ORR_INVALID,
         "batches: workers is {}, but functions of Dataset:map are called by the main "
         "thread alone; leave it out",
         workers);
  return workers;
}

Pushed batches(lua_State* L, DatasetRef& self, const Table& options) {
  const bool by_epochs = options.has("epochs"), ends = by_epochs || options.has("steps");
  if (by_epochs && options.has("steps"))
    fail(ORR_INVALID, "batches: steps and epochs both say where it ends: give one of them");
  if (options.has("last") && !by_epochs)
    fail(ORR_INVALID, "batches: last is about the ends of epochs: give epochs, not steps");
  BatchOrder order = order_in(options, options.integer("from"));
  if (options.has("order")) {
    if (!order.shuffle)
      fail(ORR_INVALID, "batches: order and shuffle both say the order: give one of them");
    order.listed = options.with("order", [&](lua_State* state, int at) {
      return own_order(Function(state, at), self.samples.items(), order.seed);
    });
    order.length = static_cast<int64_t>(order.listed(0).size());
  }
  const int64_t last = by_epochs ? last_of_epochs(options, order.items(self.samples), order)
                       : ends    ? options.integer("steps")
                                 : std::numeric_limits<int64_t>::max() - 1;
  Runtime::get().set_planned_steps(ends ? last : 0);
  push(L, Batches{self.samples, order, last, workers_in(options, *self.samples.data)});
  lua_pushcclosure(L, next_batch, 1);
  return {1};
}

// Each sample once, in order, `limit` of them at most.
Pushed pass(lua_State* L, DatasetRef& self, int64_t size, int64_t limit) {
  Samples all = self.samples;
  if (limit < all.items()) {
    const int64_t last = (limit - 1) * all.shards + all.shard;
    all.data = slice(all.data, 0, last * std::max<int64_t>(all.data->window(), 1) + 1);
  }
  const BatchOrder order{1, std::min(size, all.items()), false, 0, Rest::own_batch};
  push(L, Batches{all, order, order.batches(all.items())});
  lua_pushcclosure(L, next_batch, 1);
  return {1};
}

// The only field of the first sample.
HostTensor first(DatasetRef& self) {
  HostTensor tensor = HostTensor::make(self.samples.data->fields().front().sample);
  const Pick pick{0};
  std::byte* const to[] = {tensor.data<std::byte>()};
  self.samples.data->read({&pick, 1}, to);
  return tensor;
}

// Throws Error unless every shard has a sample, so that all ranks do or none.
void check_shards(const Samples& all, int64_t shards, const char* call) {
  if (all.items() < shards)
    fail(ORR_INVALID, "{}: {} samples do not fill {} shards", call, all.items(), shards);
}

Pushed split(lua_State* L, DatasetRef& self, double fraction) {
  if (!(fraction > 0 && fraction < 1))
    fail(ORR_INVALID, "split: the fraction is {}, expected a number between 0 and 1", fraction);
  const DatasetPtr& data = self.samples.data;
  const int64_t overlap = data->window(), all = data->samples() + overlap;
  auto cut = static_cast<int64_t>(std::floor(static_cast<double>(all) * fraction));
  // Of a shard, where a round of the shards ends: the rest has no samples of other shards.
  if (self.samples.shards > 1) cut -= cut % (self.samples.shards * std::max<int64_t>(overlap, 1));
  const int64_t head = cut - overlap, tail = all - cut - overlap;
  if (head < 1 || tail < 1) {
    fail(ORR_INVALID, "split: {} of {} samples leaves a part without a sample", fraction,
         data->samples());
  }
  for (const auto& part : {slice(data, 0, head), slice(data, cut, tail)}) {
    check_shards({part}, self.samples.shards, "split");
    push(L, DatasetRef{{part, self.samples.shard, self.samples.shards}});
  }
  return {2};
}

// The sample of the data that stands at a position, from 1.
int64_t sample_at(const Samples& all, int64_t position, const char* call) {
  if (position < 1 || position > all.items())
    fail(ORR_INVALID, "{}: position {} of {} samples: the first is 1", call, position, all.items());
  return ((position - 1) * all.shards + all.shard) * std::max<int64_t>(all.data->window(), 1);
}

DatasetRef take(lua_State* L, DatasetRef& self, Index positions) {
  const Samples& all = self.samples;
  std::vector<int64_t> samples = to_integers(L, positions, "position");
  if (samples.empty()) fail(ORR_INVALID, "take: the list is empty; give at least one position");
  for (int64_t& sample : samples) sample = sample_at(all, sample, "take");
  return {{chosen(all.data, std::move(samples))}};
}

Pushed sample(lua_State* L, DatasetRef& self, int64_t position) {
  push_sample(L, *self.samples.data, {sample_at(self.samples, position, "sample")});
  return {1};
}

DatasetRef map(lua_State* L, DatasetRef& self, Function change) {
  const bool main = lua_pushthread(L) == 1;
  lua_pop(L, 1);
  if (!main) fail(ORR_INVALID, "map: inside a coroutine; map the dataset before it begins");
  Samples changed = self.samples;
  changed.data = mapped(changed.data, std::move(change), user_line(L));
  return {changed};
}

DatasetRef shard(DatasetRef& self, int64_t rank, int64_t size) {
  Samples part = self.samples;
  if (size < 1 || rank < 0 || rank >= size)
    fail(ORR_INVALID, "shard: {} of {}: ranks are 0..size-1", rank, size);
  check_shards(part, size, "shard");
  part.shard = part.shard + rank * part.shards;
  part.shards *= size;
  return {part};
}

Pushed fields(lua_State* L, DatasetRef& self) {
  push_list(L, self.samples.data->fields(), [](lua_State* to, const DataField& field) {
    lua_newtable(to);
    push_shape(to, field.sample.dims);
    lua_setfield(to, -2, "dims");
    set_field(to, "name", field.name), set_field(to, "dtype", dtype_name(field.sample.dtype));
    set_field(to, "type", to_string(field.sample));
  });
  return {1};
}

DatasetRef augmented(DatasetRef& self, const Table& options) {
  const auto numbers = [](lua_State* L, int index) {
    return list_at(L, index, [](lua_State* state, int at) { return to_number(state, at, ""); });
  };
  Samples changed = self.samples;
  changed.data =
      augment(self.samples.data,
              {options.text("field"), options.integer("crop"), options.integer("pad"),
               options.flag("flip"), options.with("mean", numbers), options.with("std", numbers)});
  return {changed};
}

const Tokenizer& tokenizer_of(const DatasetRef& self) {
  const auto& tokenizer = self.samples.data->tokenizer();
  if (!tokenizer) fail(ORR_INVALID, "this dataset was not made of text: it knows no tokens' texts");
  return *tokenizer;
}

const Tokenizer& tokenizer_of(const TokenizerRef& self) { return *self.tokenizer; }

template <class T>
HostTensor encode(T& self, const std::string& text) {
  const std::vector<int32_t> ids = tokenizer_of(self).encode(text, "encode");
  HostTensor tensor = HostTensor::make({ORR_I32, {static_cast<int64_t>(ids.size())}});
  std::copy(ids.begin(), ids.end(), tensor.data<int32_t>());
  return tensor;
}

template <class T>
std::string decode(lua_State* L, T& self, Index ids) {
  return tokenizer_of(self).decode(to_integers(L, ids, "token"));
}

void save(TokenizerRef& self, const std::string& directory) { self.tokenizer->save(directory); }

int64_t vocab_of(TokenizerRef& self) { return self.tokenizer->vocab(); }

std::vector<std::string> classes(DatasetRef& self) { return self.samples.data->classes(); }
int64_t draw(int64_t seed, int64_t ordinal, int64_t below) {
  constexpr uint32_t purpose = 0x57ea3b0f;
  return static_cast<int64_t>(
      random_bits(static_cast<uint64_t>(seed), purpose, 0, static_cast<uint64_t>(ordinal)) %
      static_cast<uint64_t>(below));
}

int64_t samples(DatasetRef& self) { return self.samples.items(); }
int64_t length(DatasetRef& self, Index) { return samples(self); }

// "Dataset of 150 samples: x f32[4], y i64[]".
std::string show(DatasetRef& self, Index) {
  std::string fields;
  for (const DataField& field : self.samples.data->fields())
    fields += (fields.empty() ? "" : ", ") + field.name + " " + to_string(field.sample);
  return fmt::format("Dataset of {} samples: {}", samples(self), fields);
}

// Only text has one.
Pushed vocab(lua_State* L, DatasetRef& self) {
  if (!self.samples.data->tokenizer()) return {0};
  push_value(L, tokenizer_of(self).vocab());
  return {1};
}

}  // namespace

std::vector<Api> dataset_api() {
  return {
      {"Dataset.samples: integer", call<samples>},
      {"Dataset.__len(a: any, b?: any) -> integer; How many samples there are.", call<length>},
      {"Dataset.__tostring(a: any, b?: any) -> string; How many samples, and its fields.",
       call<show>},
      {"Dataset.vocab: integer", call<vocab>},
      {"Dataset.classes: string[]", call<classes>},
      {"Dataset:batch(step: integer, options) -> table; The batch of a step: lazy fields, each "
       "rank loads its rows. "
       "@option size: integer; samples in the whole batch, over all ranks "
       "@option shuffle: boolean = true; a new order in every epoch; random windows of text "
       "@option seed?: integer; the job's seed if left out",
       call<batch>},
      {"Dataset:batches(options) -> fun(): integer, table, integer; for step, batch, epoch in "
       "data:batches{size = 32} do. Steps and epochs count from 1. Files are read ahead while a "
       "step is under way. "
       "@option size: integer; samples in the whole batch, over all ranks "
       "@option steps?: integer; last step; goes on for ever if left out "
       "@option epochs?: integer; instead of steps: so many passes over all samples, each of which "
       "begins a batch of its own "
       "@option last?: string; with epochs: 'short': the last batch of an epoch has what is left, "
       "or 'drop': what does not fill a batch is left out; 'short' if left out "
       "@option from: integer = 1; first step; run.steps + 1 continues a run "
       "@option shuffle: boolean = true; a new order in every epoch; random windows of text "
       "@option order?: function; order(epoch, random) lists the samples of an epoch, from 1, some "
       "left out or several times, in each epoch as many. It goes by these two alone, so that a "
       "run that continues has the same: random(), random(n) and random(m, n) are as math.random's "
       "@option seed?: integer; of all orders; the job's seed if left out "
       "@option workers: integer = 1; threads that read and decode a batch ahead; they change no "
       "bit",
       call<batches>},
      {"engine.first(data: Dataset) -> HostTensor; The first sample of a dataset of one field.",
       call<first>},
      {"Dataset:split(fraction: number) -> orrery.Dataset, orrery.Dataset; The first part and the "
       "rest.",
       call<split>},
      {"Dataset:take(positions: integers) -> Dataset; The samples at these positions, from 1, in "
       "this order; a position may be there several times.",
       call<take>},
      {"Dataset:shard(rank: integer, size: integer) -> Dataset; Every size-th sample, from the "
       "rank-th on.",
       call<shard>},
      {"engine.sample(data: Dataset, position: integer) -> table; The sample at a position, from "
       "1: HostTensors by the names of fields.",
       call<sample>},
      {"Dataset:map(change: function) -> Dataset; The samples that change(sample, random) returns: "
       "tables of HostTensors, lists or numbers by the names of fields, as its argument is one of "
       "HostTensors. It is called when a sample is read, on the rank that needs it, and goes by "
       "its arguments alone, so that all ranks and runs that continue have the same: random(), "
       "random(n) and random(m, n) are as math.random's, other numbers in every epoch.",
       call<map>},
      {"engine.pass(data: Dataset, size: integer, limit: integer) -> fun(): integer, table, "
       "integer; As Dataset:batches, each of the first `limit` samples once and in order.",
       call<pass>},
      {"engine.draw(seed: integer, ordinal: integer, below: integer) -> integer; A random number "
       "from "
       "0, the same for the same seed and ordinal.",
       call<draw>},
      {"engine.fields(data: Dataset) -> table[]; Its fields: name, dims, dtype and type, such as "
       "\"f32[3,32,32]\".",
       call<fields>},
      {"engine.augment(data: Dataset, options: table) -> Dataset; Dataset:augment, with checked "
       "options.",
       call<augmented>},
      {"Dataset:encode(text: string) -> HostTensor; The token ids of a text.",
       call<encode<DatasetRef>>},
      {"Dataset:decode(ids: integers) -> string; The text of a list of token ids.",
       call<decode<DatasetRef>>},
      {"Tokenizer.vocab: integer", call<vocab_of>},
      {"Tokenizer:encode(text: string) -> HostTensor; The token ids of a text.",
       call<encode<TokenizerRef>>},
      {"Tokenizer:decode(ids: integers) -> string; The text of a list of token ids.",
       call<decode<TokenizerRef>>},
      {"Tokenizer:save(directory: string); Writes vocab.json and merges.txt, as data.bpe reads "
       "them; of a tokenizer from data.tiktoken ranks.tiktoken, as data.tiktoken reads it, without "
       "the special tokens. None of them says where text is cut.",
       call<save>},
  };
}

}  // namespace orrery::lua
