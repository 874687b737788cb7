// SPDX-License-Identifier: Apache-2.0
//
// records.jsonl in the run directory: the texts, images and histograms that the script records, one
// object per line; it is there once there is one. An image is a file of its own.
//   {"step":12,"time":1700000000.25,"name":"sample","text":"once upon a time"}
//   {"step":12,...,"name":"fake","image":"images/fake-12.png"}
//   {"step":12,...,"name":"w","histogram":{"least":-1,"most":1,"counts":[3,0,5]}}
#pragma once

#include <filesystem>

#include "buckets.h"
#include "json_text.h"
#include "png.h"
#include "text_file.h"

namespace observer {

class RecordFile {
 public:
  void begin(const std::string& directory) { directory_ = directory; }
  void close() { file_.close(); }

  void text(const orr_event_record& e) { write(e, "\"text\":" + observer::quoted(e.detail)); }

  void histogram(const orr_event_record& e) {
    const std::vector<double> rows = buckets(e.elements, e.count);
    if (rows.empty()) return write(e, "\"histogram\":null");
    std::string counts;
    for (size_t i = 2; i < rows.size(); i += 3) counts += (i > 2 ? "," : "") + number(rows[i]);
    write(e, "\"histogram\":{\"least\":" + number(rows[0]) +
                 ",\"most\":" + number(rows[rows.size() - 2]) + ",\"counts\":[" + counts + "]}");
  }

  void image(const orr_event_record& e) {
    const std::string name = "images/" + file_name(e);
    std::error_code ignored;  // what cannot be made cannot be written to
    std::filesystem::create_directories(directory_ + "/images", ignored);
    TextFile out;
    out.open(directory_ + "/" + name);
    out.write(png(e));
    out.close();
    write(e, "\"image\":" + observer::quoted(name));
  }

 private:
  // "fake-12.png". A name that is no good in a path is told from others by its checksum.
  static std::string file_name(const orr_event_record& e) {
    constexpr size_t most = 60;
    const std::string_view name = e.text;
    std::string safe;
    for (const char c : name.substr(0, most)) {
      const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
      safe += plain || c == '-' || c == '_' ? c : '_';
    }
    std::string mark;
    if (safe != name) {
      char text[16];
      const auto* bytes = reinterpret_cast<const Bytef*>(name.data());
      std::snprintf(text, sizeof text, ".%08lx", crc32(0, bytes, uInt(name.size())));
      mark = text;
    }
    return safe + "-" + std::to_string(e.step) + mark + ".png";
  }

  void write(const orr_event_record& e, const std::string& rest) {
    if (!file_) file_.append(directory_ + "/records.jsonl");
    file_.write("{\"step\":" + std::to_string(e.step) + ",\"time\":" + number(e.time) +
                ",\"name\":" + observer::quoted(e.text) + "," + rest + "}\n");
    file_.flush();
  }

  std::string directory_;
  TextFile file_;
};

}  // namespace observer
