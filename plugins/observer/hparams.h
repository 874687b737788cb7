// SPDX-License-Identifier: Apache-2.0
//
// What TensorBoard's table of hyperparameters reads: two summaries of a run, one with what the
// script was given, one with how it ended. Messages of the plugin hparams:
//   HParamsPluginData: version 1, session_start_info 3, session_end_info 4
//   SessionStartInfo: hparams 1 = map { key 1, value 2 }, group_name 4, start_time_secs 5
//   SessionEndInfo: status 1 (1 success, 2 failure), end_time_secs 2
//   google.protobuf.Value: number_value 2, string_value 3, bool_value 4
#pragma once

#include <charconv>
#include <map>
#include <string>
#include <string_view>

#include "event_file.h"

namespace hparams {

// A number, true or false where the text is one.
inline std::string value(std::string_view text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && stop == end) return event_file::real(2, number);
  if (text == "true" || text == "false") return event_file::integer(4, text == "true");
  return event_file::bytes(3, text);
}

inline std::string summary(std::string_view tag, const std::string& info) {
  const std::string nothing = event_file::integer(1, 1) + event_file::bytes(2, "") +
                              event_file::bytes(5, event_file::little(0.0f));
  return event_file::tensor(tag, "hparams", nothing, event_file::integer(1, 0) + info);
}

// `given`: names and values, as texts.
inline std::string begin(const std::map<std::string, std::string>& given, double time,
                         const std::string& group) {
  std::string all;
  for (auto& [name, text] : given)
    all += event_file::bytes(1, event_file::bytes(1, name) + event_file::bytes(2, value(text)));
  all += event_file::bytes(4, group) + event_file::real(5, time);
  return summary("_hparams_/session_start_info", event_file::bytes(3, all));
}

inline std::string end(bool failed, double time) {
  const std::string info = event_file::integer(1, failed ? 2 : 1) + event_file::real(2, time);
  return summary("_hparams_/session_end_info", event_file::bytes(4, info));
}

}  // namespace hparams
