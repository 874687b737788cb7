// SPDX-License-Identifier: Apache-2.0
//
// A scratch directory per test, and tensors with bytes worth comparing.
#pragma once

#include <grp.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
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

  // Names in a checkpoint that are not of it: it has the lock of this process, a manifest and a
  // folder.
  int leftovers(const std::string& name = "ck") const {
    if (!std::filesystem::exists(path(name))) return 0;
    int count = -3;
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

using NamedTensor = std::pair<std::string, TensorSource>;

// Small enough to damage byte by byte: two parameters and a moment.
inline std::vector<NamedTensor> small_tensors(unsigned salt) {
  return {{"w", filled({ORR_F32, {3, 5}}, salt)},
          {"b", filled({ORR_BF16, {5}}, salt + 1)},
          {"optim.w.m", filled({ORR_F32, {3, 5}}, salt + 2)}};
}

// The boxes of each tensor that a writer of several has: its share of the elements.
inline std::vector<ShardBox> share_of(const NamedTensor& tensor, int writer, int writers) {
  const Type& whole = tensor.second.type;
  if (writers == 1 && whole.elements() > 0)
    return {{tensor.first, Dims(whole.dims.size(), 0), tensor.second}};
  const int64_t n = whole.elements();
  const Part part{{}, n * writer / writers, n * (writer + 1) / writers};
  std::vector<ShardBox> pieces;
  for (const Box& box : boxes_of(part, whole)) {
    const Type type{whole.dtype, box.shape};
    pieces.push_back({tensor.first,
                      box.offset,
                      {type, [=] {
                         HostTensor all = tensor.second.read(), taken = HostTensor::make(type);
                         int64_t at = 0, size = orr_dtype_bytes(type.dtype);
                         const Dims strides = row_major(whole.dims);
                         for (size_t d = 0; d < strides.size(); ++d)
                           at += box.offset[d] * strides[d];
                         copy_box(box.shape, size, all.data<std::byte>() + at * size, strides,
                                  taken.data<std::byte>(), row_major(box.shape));
                         return taken;
                       }}});
  }
  return pieces;
}

// Saves as `writers` ranks would, one after another. `series`: the directory of several.
inline void save_checkpoint(const std::string& directory, const CheckpointFacts& facts,
                            const std::vector<NamedTensor>& tensors, int writers = 1,
                            const std::string& series = "") {
  CheckpointWriter writer(directory, series);
  std::vector<std::string> texts;
  TensorTypes types;
  for (const NamedTensor& t : tensors) types[t.first] = t.second.type;
  for (int w = 0; w < writers; ++w) {
    std::vector<ShardBox> pieces;
    for (const NamedTensor& t : tensors)
      for (ShardBox& piece : share_of(t, w, writers)) pieces.push_back(std::move(piece));
    texts.push_back(to_text(write_shard(writer.folder(), w, pieces)));
  }
  writer.complete(facts, types, texts);
}

inline Checkpoint load_checkpoint(const std::string& directory) { return Checkpoint(directory); }

inline CheckpointFacts facts_of_step(int64_t step) { return {step, step * 4, 17, "step text"}; }

inline bool holds(const Checkpoint& loaded, const std::vector<NamedTensor>& tensors) {
  if (loaded.tensors().size() != tensors.size()) return false;
  for (const NamedTensor& t : tensors) {
    auto found = loaded.tensors().find(t.first);
    if (found == loaded.tensors().end() || found->second != t.second.type ||
        *loaded.read(t.first).bytes != *t.second.read().bytes)
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

// Runs as a user who is not root, so that permissions count. Returns what it threw; "": nothing.
inline std::string as_user(const std::string& root, const std::function<void()>& body) {
  constexpr uid_t kUser = 65534;
  int told[2];
  if (::pipe(told) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    std::string text;
    if (::getuid() == 0 && (::chown(root.c_str(), kUser, kUser) != 0 || ::setgroups(0, nullptr) ||
                            ::setgid(kUser) != 0 || ::setuid(kUser) != 0))
      text = "cannot become another user";
    else
      try {
        body();
      } catch (const std::exception& e) {
        text = e.what();
      }
    [[maybe_unused]] const auto n = ::write(told[1], text.data(), text.size());
    ::_exit(0);
  }
  ::close(told[1]);
  std::string text(4096, '\0');
  text.resize(static_cast<size_t>(std::max<ssize_t>(::read(told[0], text.data(), 4096), 0)));
  ::close(told[0]);
  int status = -1;
  ::waitpid(child, &status, 0);
  return status == 0 ? text : "the child died: " + text;
}

}  // namespace orrery
