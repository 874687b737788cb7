// SPDX-License-Identifier: Apache-2.0
#include "run/saving.h"

#include <filesystem>

#include "base/error.h"
#include "base/quiet.h"
#include "run/agree.h"

namespace orrery {

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

namespace {

// The texts of all ranks, in their order. Collective.
std::vector<std::string> texts_of_all(const std::string& mine, const std::string& line) {
  const std::vector<uint64_t> sizes = numbers_of_all({mine.size()}, "run:save", line);
  HostTensor text = HostTensor::make({ORR_U8, {static_cast<int64_t>(mine.size())}});
  std::copy(mine.begin(), mine.end(), text.data<char>());
  const HostTensor all = world_allgather(text, line);
  std::vector<std::string> texts;
  const char* at = all.data<char>();
  for (uint64_t size : sizes) texts.emplace_back(at, size), at += size;
  return texts;
}

}  // namespace

Saving::Saving(SaveContents contents, SaveHow how)
    : contents_(std::move(contents)), how_(std::move(how)) {
  std::string folder;
  throw_together(error_of([&] {
    format_ = &format_named(how_.format);
    if (!completes()) return;
    writer_.emplace(contents_.directory, how_.lock_in, format_);
    folder = writer_->folder();
  }));
  if (!alone()) {
    // Rank 0's directory as the script names it there, and the folder in it.
    const std::string name = std::filesystem::path(folder).filename().string();
    const std::string of_0 = texts_of_all(address_in(contents_.directory, name), contents_.line)[0];
    if (!completes()) folder = of_0;
  }
  const std::string error = error_of([&] { folder_.emplace(folder); });
  if (is_address(folder)) throw_together(error);  // of a rank without the plugin
  if (how_.beside) {
    const AllSignalsBlocked quiet;
    thread_ = std::thread([this] { write(); });
  } else {
    write();
    finish();
  }
}

Saving::~Saving() {
  if (thread_.joinable()) thread_.join();
}

void Saving::write() {
  error_ = error_of([&] {
    text_ = format_->write(*folder_, alone() ? 0 : world_info().rank, contents_.pieces,
                           contents_.tensors);
  });
  contents_.pieces.clear();
  written_ = true;
}

void Saving::finish() {
  if (done_) return;
  done_ = true;
  if (thread_.joinable()) thread_.join();
  try {
    throw_together(error_);
    const auto texts = alone() ? std::vector{text_} : texts_of_all(text_, contents_.line);
    throw_together(error_of([&] {
      if (completes()) complete(texts);
    }));
  } catch (...) {
    writer_.reset();  // removes what was written
    throw;
  }
}

void Saving::complete(const std::vector<std::string>& texts) {
  writer_->complete(contents_.facts, contents_.tensors, texts);
  const auto name_of = [](const std::string& path) {
    return std::filesystem::path(path).filename();
  };
  for (const std::string& old : how_.remove)
    if (name_of(old) != name_of(contents_.directory)) remove_checkpoint(old, how_.lock_in);
}

void Saving::throw_together(const std::string& error) const {
  if (!alone()) fail_together(error, "run:save", contents_.line);
  if (!error.empty()) throw Error(ORR_FAILED, error);
}

}  // namespace orrery
