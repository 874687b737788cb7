// SPDX-License-Identifier: Apache-2.0
//
// The records of TensorBoard's event files. A record is its length (u64, little-endian), the masked
// CRC-32C of these 8 bytes, the payload, and the payload's masked CRC-32C. A payload is a protobuf
// message Event, of which the few fields that are needed are written by hand:
//   Event: wall_time 1 double, step 2 int64, file_version 3 string, summary 5, session_log 7
//   Summary: value 1 = { tag 1, simple_value 2 float, image 4, tensor 8, metadata 9 }
//   Image: height 1, width 2, colorspace 3 (the channels), encoded_image_string 4 (a PNG)
//   SummaryMetadata: plugin_data 1 = { plugin_name 1, content 2 }, data_class 4
//   TensorProto: dtype 1, tensor_shape 2 = { dim 2 = { size 1 } }, tensor_content 4, string_val 8
#pragma once

#include <boost/crc.hpp>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace event_file {

inline uint32_t masked_crc(std::string_view bytes) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  const uint32_t c = crc.checksum();
  return ((c >> 15) | (c << 17)) + 0xa282ead8u;
}

template <class T>
std::string little(T value) {  // this host is little-endian (orrery/types.h)
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

inline std::string record(std::string_view payload) {
  const std::string length = little<uint64_t>(payload.size());
  return length + little(masked_crc(length)) + std::string(payload) + little(masked_crc(payload));
}

inline std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 128; value >>= 7) out += static_cast<char>(value | 128);
  return out + static_cast<char>(value);
}
inline std::string integer(int field, int64_t value) {
  return varint(static_cast<uint64_t>(field) << 3) + varint(static_cast<uint64_t>(value));
}
inline std::string real(int field, double value) {
  return varint(static_cast<uint64_t>(field) << 3 | 1) + little(value);
}
inline std::string real32(int field, float value) {
  return varint(static_cast<uint64_t>(field) << 3 | 5) + little(value);
}
inline std::string bytes(int field, std::string_view value) {
  return varint(static_cast<uint64_t>(field) << 3 | 2) + varint(value.size()) + std::string(value);
}

inline std::string event(double time, int64_t step, const std::string& rest) {
  return real(1, time) + integer(2, step) + rest;
}
inline std::string scalar(std::string_view tag, double value) {
  return bytes(5, bytes(1, bytes(1, tag) + real32(2, static_cast<float>(value))));
}

inline std::string image(std::string_view tag, int64_t width, int64_t height, int64_t channels,
                         const std::string& png) {
  const std::string content =
      integer(1, height) + integer(2, width) + integer(3, channels) + bytes(4, png);
  return bytes(5, bytes(1, bytes(1, tag) + bytes(4, content)));
}

// A value of one of TensorBoard's plugins that show tensors; `own` is what the plugin reads itself.
inline std::string tensor(std::string_view tag, std::string_view plugin, const std::string& content,
                          const std::string& own = "") {
  const std::string named = bytes(1, plugin) + (own.empty() ? "" : bytes(2, own));
  const std::string metadata = bytes(1, named) + integer(4, 2);
  return bytes(5, bytes(1, bytes(1, tag) + bytes(8, content) + bytes(9, metadata)));
}
inline std::string text(std::string_view tag, std::string_view markdown) {
  return tensor(tag, "text", integer(1, 7) + bytes(2, "") + bytes(8, markdown));
}
// Rows (left, right, count), as many as the buckets have.
inline std::string histogram(std::string_view tag, const std::vector<double>& rows) {
  const auto dim = [](int64_t size) { return bytes(2, integer(1, size)); };
  const std::string content(reinterpret_cast<const char*>(rows.data()),
                            rows.size() * sizeof(double));
  return tensor(tag, "histograms",
                integer(1, 2) + bytes(2, dim(static_cast<int64_t>(rows.size() / 3)) + dim(3)) +
                    bytes(4, content));
}

}  // namespace event_file
