// SPDX-License-Identifier: Apache-2.0
#include "store/remote_checkpoint.h"

#include <fcntl.h>

#include <algorithm>
#include <list>
#include <random>
#include <regex>

#include "base/error.h"
#include "store/manifest.h"

namespace orrery {
namespace {

std::string label_of(const std::string& address) { return fmt::format("checkpoint '{}'", address); }
std::string manifest_of(const std::string& address) { return address_in(address, kManifestFile); }

// A number that no other writer has; manifests allow digits alone.
std::string own_number() {
  std::random_device device;
  std::uniform_int_distribution<uint64_t> any(100'000'000'000'000'000, 999'999'999'999'999'999);
  return std::to_string(any(device));
}

// Removes the files that a manifest names. What cannot be removed is told, and stays.
void remove_files(const RemoteFiles& files, const std::string& address,
                  const std::string& manifest) {
  try {
    for (auto& [name, facts] : parse_manifest(manifest, label_of(address)).files)
      files.remove(address_in(address, name));
  } catch (const std::exception& e) {
    tell_once(
        fmt::format("{}: files of an older checkpoint stay: {}", label_of(address), e.what()));
  }
}

class RemotePlace : public CheckpointPlace {
 public:
  explicit RemotePlace(const std::string& address)
      : address_(address), files_(address), folder_(address_in(address, own_number())) {
    old_ = files_.get_text(manifest_of(address), old_text_);
    if (old_.there && !looks_like_manifest(old_text_))
      fail(ORR_INVALID, "{}: {} there is not of a checkpoint; save under another address",
           label_of(address), kManifestFile);
  }
  ~RemotePlace() override {
    if (done_) return;
    try {
      for (const std::string& file : files_.list(folder_ + "/")) files_.remove(file);
    } catch (const std::exception&) {
      // They stay; no manifest names them.
    }
  }
  RemotePlace(const RemotePlace&) = delete;

  std::string folder() const override { return folder_; }
  void commit(const std::string& manifest) override {
    const std::string at = manifest_of(address_);
    if (!files_.put_text(at, manifest, old_)) {
      // A request that was repeated may find what it has written itself.
      std::string now;
      files_.get_text(at, now);
      if (now != manifest)
        fail(ORR_FAILED,
             "{}: another process has saved there since this save began, and its checkpoint stays; "
             "save under another address",
             label_of(address_));
    }
    done_ = true;
    if (old_.there) remove_files(files_, address_, old_text_);
  }

 private:
  const std::string address_;
  const RemoteFiles files_;
  const std::string folder_;
  RemoteFiles::State old_;  // of the manifest before
  std::string old_text_;
  bool done_ = false;
};

class RemoteSource : public CheckpointSource {
 public:
  explicit RemoteSource(const std::string& address) : address_(address), files_(address) {}

  std::string manifest(const std::string& label) const override {
    std::string text;
    if (!files_.get_text(manifest_of(address_), text).there)
      fail(ORR_FAILED, "{} is missing; check the address", label);
    return text;
  }
  File open(const std::string& name, const FileFacts& expected, const std::string& label) override {
    const SharedCopy& copy = copies_.emplace_back(files_, address_in(address_, name),
                                                  expected.digest + name, expected.bytes);
    if (!copy.there())
      fail_damaged("{} is missing; restore it from a copy or check the address", label);
    return File::open(AT_FDCWD, copy.path(), label, false);
  }

 private:
  const std::string address_;
  const RemoteFiles files_;
  std::list<SharedCopy> copies_;
};

}  // namespace

std::unique_ptr<CheckpointPlace> remote_place(const std::string& address) {
  return std::make_unique<RemotePlace>(address);
}
std::unique_ptr<CheckpointSource> remote_source(const std::string& address) {
  return std::make_unique<RemoteSource>(address);
}

bool is_remote_checkpoint(const std::string& address) {
  std::string text;
  return RemoteFiles(address).get_text(manifest_of(address), text).there;
}

std::vector<InSeries> remote_checkpoints_in(const std::string& address) {
  static const std::regex pattern("(step-([0-9]{8,18}))/checkpoint\\.json");
  const RemoteFiles files(address);
  const std::string inside = address_in(address, "");
  std::vector<InSeries> found;
  for (const std::string& file : files.list(inside + "step-")) {
    std::smatch match;
    const std::string name = file.substr(std::min(inside.size(), file.size()));
    if (!std::regex_match(name, match, pattern)) continue;
    InSeries one{address_in(address, match[1]), std::stoll(match[2].str()), true, ""};
    try {
      std::string text;
      if (!files.get_text(file, text).there) continue;  // removed meanwhile
      one.extra = parse_manifest(text, one.path).facts.extra;
    } catch (const Error&) {
      // Opening it says what is wrong.
    }
    found.push_back(std::move(one));
  }
  std::sort(found.begin(), found.end(), [](auto& a, auto& b) { return a.step < b.step; });
  return found;
}

void open_remote_series(const std::string& address) {
  if (is_remote_checkpoint(address))
    fail(ORR_INVALID,
         "checkpoints '{}': there is a checkpoint of that address; give another one, and run:load "
         "it",
         address);
  const RemoteFiles files(address);
  const std::string trial = address_in(address, "checkpoint.trial-" + own_number());
  files.put_text(trial, "Whether checkpoints can be written here.\n");
  files.remove(trial);
}

void remove_remote_checkpoint(const std::string& address) {
  const RemoteFiles files(address);
  std::string text;
  if (!files.get_text(manifest_of(address), text).there) return;
  if (!looks_like_manifest(text)) fail(ORR_FAILED, "{} is none of this program", label_of(address));
  files.remove(manifest_of(address));
  remove_files(files, address, text);
}

}  // namespace orrery
