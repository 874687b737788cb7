// SPDX-License-Identifier: Apache-2.0
//
// A file of a run's directory that observers write text to, and numbers and texts as JSON has them.
#pragma once

#include <orrery/sdk/plugin.hpp>

#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

namespace observer {

// The shortest decimal that reads back as the value; null if it is not finite.
inline std::string number(double value) {
  if (!std::isfinite(value)) return "null";
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
}

inline std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    char escaped[8];
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::snprintf(escaped, sizeof escaped, "\\u%04x", c);
      out += escaped;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

class TextFile {
  struct Close {
    void operator()(FILE* file) const { std::fclose(file); }
  };

 public:
  // `mode` as of fopen. Throws orr::Error.
  void open(const std::string& path, const char* mode) {
    path_ = path;
    file_.reset(std::fopen(path.c_str(), mode));
    if (!file_) fail("open");
  }
  // Of a file of lines, at its end. A line that a process which was killed left unfinished is cut
  // off. Throws orr::Error.
  void append(const std::string& path) {
    cut_unfinished_line(path);
    open(path, "ae");
  }
  void close() { file_.reset(); }
  explicit operator bool() const { return file_ != nullptr; }

  void write(std::string_view bytes) {
    if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) fail("write");
  }
  void flush() {
    if (std::fflush(file_.get()) != 0) fail("write");
  }
  void seek_end() { std::fseek(file_.get(), 0, SEEK_END); }
  long at() { return std::ftell(file_.get()); }
  void seek(long at) {
    if (std::fseek(file_.get(), at, SEEK_SET) != 0) fail("write");
  }

 private:
  static void cut_unfinished_line(const std::string& path) {
    const std::unique_ptr<FILE, Close> file(std::fopen(path.c_str(), "r+e"));
    if (!file || std::fseek(file.get(), 0, SEEK_END) != 0) return;  // there is none, or a pipe
    long end = std::ftell(file.get());
    const auto ends_a_line = [&] {
      return std::fseek(file.get(), end - 1, SEEK_SET) == 0 && std::fgetc(file.get()) == '\n';
    };
    while (end > 0 && !ends_a_line()) --end;
    if (ftruncate(fileno(file.get()), end) != 0) return;  // what opens it next says why
  }

  [[noreturn]] void fail(const char* what) const {
    throw orr::Error(ORR_FAILED, "cannot " + std::string(what) + " " + path_ + ": " +
                                     std::strerror(errno) +
                                     "; check the run directory and its disk");
  }

  std::string path_;
  std::unique_ptr<FILE, Close> file_;
};

}  // namespace observer
