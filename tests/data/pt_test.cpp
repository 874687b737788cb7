// SPDX-License-Identifier: Apache-2.0
//
// Damaged files of torch.save are read or refused; tests/lua/specs/torch_files.lua reads whole
// ones.
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

}  // namespace
}  // namespace orrery
