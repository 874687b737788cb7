// SPDX-License-Identifier: Apache-2.0
//
// A scratch directory per test, and tensors with bytes worth comparing.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "base/error.h"
#include "store/checkpoint.h"

namespace orrery {

class StoreTest : public testing::Test {
 protected:
  StoreTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "orrery-store-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
  }
  ~StoreTest() override { std::filesystem::remove_all(root_); }

  std::string path(const std::string& name) const { return root_ / name; }

  // Names in a checkpoint that are not of it: it has the lock of this process, a manifest and two
  // files.
  int leftovers(const std::string& name = "ck") const {
    if (!std::filesystem::exists(path(name))) return 0;
    int count = -4;
    for ([[maybe_unused]] auto& entry : std::filesystem::directory_iterator(path(name))) ++count;
    return count;
  }

 private:
  std::filesystem::path root_;
};

inline HostTensor filled(const Type& type, unsigned salt) {
  HostTensor tensor = HostTensor::make(type);
  for (size_t i = 0; i < tensor.bytes->size(); ++i)
    (*tensor.bytes)[i] = static_cast<std::byte>((i * 31 + salt * 7 + i / 251) & 0xff);
  return tensor;
}

// Small enough to damage byte by byte: two parameters and a moment.
inline std::vector<NamedTensor> small_tensors(unsigned salt) {
  return {{"w", true, filled({ORR_F32, {3, 5}}, salt)},
          {"b", true, filled({ORR_BF16, {5}}, salt + 1)},
          {"optim.w.m", false, filled({ORR_F32, {3, 5}}, salt + 2)}};
}

inline CheckpointFacts facts_of_step(int64_t step) { return {step, step * 4, 17, "step text"}; }

inline bool holds(const LoadedCheckpoint& loaded, const std::vector<NamedTensor>& tensors) {
  if (loaded.tensors.size() != tensors.size()) return false;
  for (const NamedTensor& t : tensors) {
    auto found = loaded.tensors.find(t.name);
    if (found == loaded.tensors.end() || found->second.type != t.tensor.type ||
        *found->second.bytes != *t.tensor.read().bytes)
      return false;
  }
  return true;
}

inline std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void spill(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// The message of the Error that `call` throws; fails the test if it throws none.
inline std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  ADD_FAILURE() << "no Error was thrown";
  return "";
}

}  // namespace orrery
