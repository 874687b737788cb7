// SPDX-License-Identifier: Apache-2.0
//
// Unigram (Kudo, ACL 2018), the way of T5: tokens have scores, the logarithms of their shares, and
// of all ways to write a text as tokens the one of the largest sum is taken.
#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "../refuse.h"
#include "../trie.h"
#include "characters.h"
#include "models.h"

namespace data {
namespace {

constexpr double kUnknownPenalty = 10;  // below the least score of a token

class Unigram : public Model {
 public:
  explicit Unigram(Part& part)
      : Model(Vocabulary()), where_(part.where()), falls_back_(part.flag("byte_fallback", false)) {
    const nlohmann::json& list = part.any("vocab");
    if (!list.is_array()) part.refuse("'vocab' is not [[\"token\", score], ...]");
    for (const nlohmann::json& each : list) add(part, each);
    if (part.has("unk_id"))
      unknown_ = static_cast<int32_t>(part.integer("unk_id", 0, vocabulary_.size() - 1));
  }

  void encode(std::string_view text, std::vector<int32_t>& ids) const override {
    const std::vector<Step> steps = best_steps(text);
    std::vector<std::pair<size_t, size_t>> found;  // from the last to the first
    size_t behind = 0;  // the end of unknown tokens that follow each other
    for (size_t end = text.size(); end > 0; end = steps[end].begin) {
      const Step& step = steps[end];
      if (unknown_ && step.id == *unknown_) {
        if (!behind) behind = end;
        if (step.begin > 0 && steps[step.begin].id == *unknown_) continue;
        found.emplace_back(step.begin, behind);
        behind = 0;
      } else {
        found.emplace_back(step.begin, end);
      }
    }
    std::ranges::reverse(found);
    for (const auto& [begin, end] : found) add_token(text.substr(begin, end - begin), ids);
  }

 private:
  // The best way to the end of a token: where the last one begins, and which it is.
  struct Step {
    size_t begin = SIZE_MAX;  // there is none yet
    double score = 0;
    int32_t id = 0;
  };

  void add(Part& part, const nlohmann::json& entry) {
    const int64_t id = vocabulary_.size();
    const bool is_one = entry.is_array() && entry.size() == 2 && entry[0].is_string() &&
                        entry[1].is_number() && std::isfinite(entry[1].get<double>());
    if (!is_one)
      part.refuse("vocab[" + std::to_string(id) + "] is " +
                  entry.dump(-1, ' ', false).substr(0, 80) + ", expected [\"token\", score]");
    const auto token = entry[0].get<std::string>();
    vocabulary_.add(part, token, id);
    scores_.push_back(entry[1].get<double>());
    least_ = std::min(least_, scores_.back());
    if (!token.empty()) texts_.add(token, static_cast<int32_t>(id));
  }

  std::vector<Step> best_steps(std::string_view text) const {
    std::vector<Step> steps(text.size() + 1);
    const auto offer = [&](size_t begin, size_t end, double score, int32_t id) {
      const double sum = score + steps[begin].score;
      if (steps[end].begin == SIZE_MAX || sum > steps[end].score) steps[end] = {begin, sum, id};
    };
    each_character(text, [&](char32_t, size_t begin, size_t behind) {
      bool is_known = false;
      texts_.each_at(text, begin, [&](size_t end, int32_t id) {
        offer(begin, end, scores_[static_cast<size_t>(id)], id);
        is_known |= end == behind;
      });
      if (is_known) return;
      if (!unknown_)
        refuse(where_, ": the text has what no token stands for, and no 'unk_id' is given");
      offer(begin, behind, least_ - kUnknownPenalty, *unknown_);
    });
    return steps;
  }

  void add_token(std::string_view text, std::vector<int32_t>& ids) const {
    const int32_t id = vocabulary_.id(text);
    if (id >= 0) return ids.push_back(id);
    if (falls_back_ && vocabulary_.add_bytes(text, ids)) return;
    ids.push_back(*unknown_);
  }

  std::string where_;
  bool falls_back_;
  std::vector<double> scores_;
  double least_ = std::numeric_limits<double>::infinity();
  std::optional<int32_t> unknown_;
  Trie texts_;
};

}  // namespace

std::unique_ptr<Model> make_unigram(Part& part) { return std::make_unique<Unigram>(part); }

}  // namespace data
