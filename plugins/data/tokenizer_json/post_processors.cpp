// SPDX-License-Identifier: Apache-2.0
#include "post_processors.h"

#include <nlohmann/json.hpp>

namespace data {
namespace {

int32_t id_in(Part& part, const nlohmann::json& value, int64_t ids) {
  const bool fits =
      value.is_number_unsigned() && value.get<uint64_t>() < static_cast<uint64_t>(ids);
  if (!fits)
    part.refuse("has the id " + value.dump(-1, ' ', false).substr(0, 40) + ", ids are 0 to " +
                std::to_string(ids - 1));
  return value.get<int32_t>();
}

// A field ["token", id].
int32_t named_id(Part& part, const std::string& name, int64_t ids) {
  const nlohmann::json& pair = part.any(name);
  if (!pair.is_array() || pair.size() != 2) part.refuse("'" + name + "' is not [\"token\", id]");
  return id_in(part, pair[1], ids);
}

// BERT's and RoBERTa's: their own token before a text, and another one behind it.
Template bert(Part& part, int64_t ids) {
  part.ignore("trim_offsets"), part.ignore("add_prefix_space");
  return {named_id(part, "cls", ids), std::nullopt, named_id(part, "sep", ids)};
}

void add_special(Template& made, Part& special, Part piece, int64_t ids) {
  Part token = special.part(piece.text("id"));
  piece.ignore("type_id"), piece.finish();
  token.ignore("id"), token.ignore("tokens");
  const nlohmann::json& list = token.any("ids");
  if (!list.is_array()) token.refuse("'ids' is not a list");
  for (const nlohmann::json& id : list) made.push_back(id_in(token, id, ids));
  token.finish();
}

// {"single": [{"SpecialToken": {"id": name}}, {"Sequence": {"id": "A"}}, ...], "special_tokens":
// {name: {"ids": [...]}}}
Template by_template(Part& part, int64_t ids) {
  part.ignore("pair");
  Part special = part.part("special_tokens");
  Template made;
  for (Part& piece : part.parts("single")) {
    if (piece.has("SpecialToken")) {
      add_special(made, special, piece.part("SpecialToken"), ids);
    } else {
      Part sequence = piece.part("Sequence");
      if (sequence.text("id") != "A") sequence.refuse("a single text has no other sequence than A");
      sequence.ignore("type_id"), sequence.finish();
      made.push_back(std::nullopt);
    }
    piece.finish();
  }
  return made;
}

std::vector<Template> made_of(Part& part, int64_t ids, int depth) {
  const std::string type = part.type();
  if (type == "BertProcessing" || type == "RobertaProcessing") return {bert(part, ids)};
  if (type == "TemplateProcessing") return {by_template(part, ids)};
  if (type == "ByteLevel") {  // it changes offsets alone
    for (const char* field : {"add_prefix_space", "trim_offsets", "use_regex"}) part.ignore(field);
    return {};
  }
  if (type != "Sequence") part.refuse("a post-processor '" + type + "' is not supported");
  std::vector<Template> all;
  for (Part& each : part.parts("processors"))
    for (Template& one : make_templates(std::move(each), ids, depth + 1))
      all.push_back(std::move(one));
  return all;
}

}  // namespace

std::vector<Template> make_templates(Part part, int64_t ids, int depth) {
  return made_within(part, depth, [&](Part& whole) { return made_of(whole, ids, depth); });
}

std::vector<int32_t> with_template(const Template& around, const std::vector<int32_t>& ids) {
  std::vector<int32_t> all;
  for (const std::optional<int32_t>& id : around) {
    if (id) {
      all.push_back(*id);
    } else {
      all.insert(all.end(), ids.begin(), ids.end());
    }
  }
  return all;
}

}  // namespace data
