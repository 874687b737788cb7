// SPDX-License-Identifier: Apache-2.0
//
// Damaged files of torch.save and directories of torch.distributed.checkpoint are read or refused;
// tests/lua/specs/torch_files.lua and torch_checkpoints.lua read whole ones.
#include <array>

#include "mutations.h"
#include "readers.h"

namespace orrery {
namespace {

TEST(Pt, MutationsAreReadOrRefused) {
  const ScratchFile file("mutated.pt");
  for (const char* name : {"pt/tensors.pt", "pt/layers.bin"})
    expect_mutations_stand(contents(recorded(name)), file, 100, {"(", "t", "R", "\xff\xff\xff\x7f"},
                           [&] {
                             const DatasetPtr data = open_data("pt", file.path(), {}, {});
                             for (size_t i = 0; i < data->fields().size(); ++i)
                               read_one(*data, {0}, i);
                           });
}

TEST(Pt, FilesThatAreCutShortAreRefused) {
  const ScratchFile file("short.pt");
  const std::string whole = contents(recorded("pt/tensors.pt"));
  for (size_t bytes = 0; bytes < whole.size(); bytes += 37) {
    file.write(whole.substr(0, bytes));
    const std::string why = refusal([&] { open_data("pt", file.path(), {}, {}); });
    EXPECT_NE(why.find(file.path()), std::string::npos) << bytes << ": " << why;
  }
}

std::string little(uint64_t value, int bytes) {
  std::string text;
  for (; bytes > 0; --bytes, value >>= 8) text += static_cast<char>(value & 0xff);
  return text;
}

// A zip archive of one entry, as torch.save stores them.
std::string zip_of(const std::string& name, const std::string& bytes) {
  const std::string sizes =
      little(0, 8) + little(bytes.size(), 4) + little(bytes.size(), 4) + little(name.size(), 2);
  const std::string local = "PK\3\4" + little(0, 6) + sizes.substr(0, 8) + sizes.substr(8);
  const std::string entry = local + little(0, 2) + name + bytes;
  const std::string central = "PK\1\2" + little(0, 8) + sizes + little(0, 16) + name;
  return entry + central + "PK\5\6" + little(0, 4) + little(1, 2) + little(1, 2) +
         little(central.size(), 4) + little(entry.size(), 4) + little(0, 2);
}

TEST(Pt, ListsInListsOfAnyDepthAreRefused) {
  const ScratchFile file("deep.pt");
  constexpr size_t kDepth = 3'000'000;
  const std::string lists = std::string(kDepth, ']') + std::string(kDepth - 1, 'a');
  file.write(zip_of("x/data.pkl", "\x80\x02" + lists + "."));
  const std::string why = refusal([&] { open_data("pt", file.path(), {}, {}); });
  EXPECT_NE(why.find("values are in each other"), why.npos) << why;
}

// A copy of a recorded checkpoint.
class Copy {
 public:
  explicit Copy(const std::string& name)
      : directory_(std::filesystem::temp_directory_path() / "orrery_data_dcp") {
    std::filesystem::remove_all(directory_);
    std::filesystem::copy(recorded("dcp/" + name), directory_);
  }
  ~Copy() { std::filesystem::remove_all(directory_); }
  std::string path() const { return directory_.string(); }
  std::string read() const {
    return refusal([&] { read_all(); });
  }
  void read_all() const {
    const DatasetPtr data = open_data("pt", path(), {}, {});
    for (size_t i = 0; i < data->fields().size(); ++i) read_one(*data, {0}, i);
  }

 private:
  const std::filesystem::path directory_;
};

TEST(Checkpoint, MutationsAreReadOrRefused) {
  for (const char* name : {".metadata", "__1_0.distcp"}) {
    const Copy copy("two");
    const ScratchFile file("dcp/" + std::string(name));
    const std::string whole = contents(file.path());
    ASSERT_EQ(copy.read(), "");
    expect_mutations_stand(
        whole, file, 100, {"(", "t", "R", "b", "\x81", "\xff\xff\xff\x7f"},
        [&] { copy.read_all(); }, copy.path());
  }
}

TEST(Checkpoint, FilesThatAreCutShortAreRefused) {
  for (const char* name : {".metadata", "__1_0.distcp"}) {
    const Copy copy("two");
    const ScratchFile file("dcp/" + std::string(name));
    const std::string whole = contents(file.path());
    for (size_t bytes = 0; bytes < whole.size(); bytes += 97) {
      file.write(whole.substr(0, bytes));
      EXPECT_NE(copy.read().find(file.path()), std::string::npos) << bytes << ": " << copy.read();
    }
  }
}

// What replaces a part of the metadata that is as long, and what the Error then says.
TEST(Checkpoint, HostileMetadataIsRefused) {
  const std::vector<std::array<std::string, 3>> cases = {
      {"pathlib", "posixpa", ".metadata: it has 'posixpa.PosixPath', which is not loaded"},
      {"float32", "float8x", ".metadata: it has 'torch.float8x', which is not loaded"},
      {"__1_0.distcp", "/etc/shadow.", "in '/etc/shadow.', which is no file of the directory"},
      {"__1_0.distcp", "__7_0.distcp", "__7_0.distcp is missing"},
      {"TensorProperties", "MetadataIndexxxx", "MetadataIndexxxx', which is not loaded"},
      {"1.0.0", "9.0.0", "version 9.0.0 of checkpoints; 1 is read"},
      {"model.2.bias", "model.9.bias", "a chunk of 'model.9.bias' is in no file"}};
  const Copy copy("two");
  const ScratchFile file("dcp/.metadata");
  const std::string whole = contents(file.path());
  for (const auto& [from, to, error] : cases) {
    std::string altered = whole;
    ASSERT_NE(altered.find(from), altered.npos) << from;
    altered.replace(altered.find(from), from.size(), to);
    file.write(altered);
    EXPECT_NE(copy.read().find(error), std::string::npos) << from << ": " << copy.read();
  }
}

// Two files of different saves.
TEST(Checkpoint, ChunksOfAnotherTensorAreRefused) {
  const Copy copy("two");
  const ScratchFile first("dcp/__0_0.distcp"), second("dcp/__1_0.distcp");
  first.write(contents(second.path()));
  EXPECT_NE(copy.read().find("that .metadata says; one of them is altered"), std::string::npos)
      << copy.read();
}

}  // namespace
}  // namespace orrery
