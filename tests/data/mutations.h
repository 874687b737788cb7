// SPDX-License-Identifier: Apache-2.0
//
// What every reader of files must stand: a file with some bytes changed, left out or put in is read
// or refused by an Error that names it. A fault, or memory out of proportion, ends the test.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <orrery/sdk/plugin.hpp>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"

namespace orrery {

inline std::string recorded(const std::string& name) {
  return std::string(ORRERY_FILES) + "/" + name;
}

inline std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A file that is gone at the end.
class ScratchFile {
 public:
  explicit ScratchFile(const std::string& name)
      : path_((std::filesystem::temp_directory_path() / ("orrery_data_" + name)).string()) {}
  ~ScratchFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }
  void write(const std::string& bytes) const {
    std::filesystem::remove(path_);  // some file systems put on the disk what is overwritten
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }

 private:
  std::string path_;
};

// What the Error says that `read` throws; "" if it throws none.
inline std::string refusal(const std::function<void()>& read) {
  try {
    read();
  } catch (const Error& error) {
    return error.what();
  } catch (const orr::Error& error) {  // of a plugin's own code
    return error.what();
  }
  return "";
}

// `read` reads the scratch file, all of it. The seed is the same every time. At least `least` of
// the thousand files must be refused, so that the edits are known to hit, by an Error that names
// the file, or its directory if that is what is read.
inline void expect_mutations_stand(const std::string& bytes, const ScratchFile& file, int least,
                                   const std::vector<std::string>& pieces,
                                   const std::function<void()>& read,
                                   const std::string& directory = "") {
  const std::string& named = directory.empty() ? file.path() : directory;
  std::mt19937 random(5);
  int refused = 0;
  for (int round = 0; round < 1000; ++round) {
    std::string damaged = bytes;
    for (unsigned edits = random() % 4 + 1; edits > 0; --edits) {
      const size_t at = random() % damaged.size();
      const std::string& piece = pieces[random() % pieces.size()];
      switch (random() % 4) {
        case 0: damaged[at] = static_cast<char>(random()); break;
        case 1: damaged.erase(at, random() % 9); break;
        case 2: damaged.insert(at, piece); break;
        default: damaged.replace(at, std::min(piece.size(), damaged.size() - at), piece);
      }
      if (damaged.empty()) damaged = "x";
    }
    file.write(damaged);
    const std::string why = refusal(read);
    refused += !why.empty();
    EXPECT_TRUE(why.empty() || why.find(named) != why.npos) << why;
  }
  EXPECT_GE(refused, least);
}

}  // namespace orrery
