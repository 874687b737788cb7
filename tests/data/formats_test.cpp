// SPDX-License-Identifier: Apache-2.0
//
// Files of tokens, of MNIST and of CIFAR: recorded ones (make.py), and what is wrong with others.
#include <cstring>
#include <tuple>

#include "data/batch_reader.h"
#include "mutations.h"
#include "readers.h"

namespace orrery {
namespace {

// A field of all samples in order.
template <class T>
std::vector<T> read_field(const DatasetPtr& data, const std::string& name) {
  std::vector<Pick> picks;
  for (int64_t i = 0; i < data->samples(); ++i) picks.push_back({i});
  for (size_t f = 0; f < data->fields().size(); ++f) {
    const DataField& field = data->fields()[f];
    if (field.name != name) continue;
    std::vector<T> all(picks.size() * static_cast<size_t>(field.sample.elements()));
    BatchReader(data, picks).load(f, 0, data->samples(), reinterpret_cast<std::byte*>(all.data()));
    return all;
  }
  ADD_FAILURE() << "there is no field " << name;
  return {};
}

void read_all(const DatasetPtr& data) {
  for (const DataField& field : data->fields())
    field.sample.dtype == ORR_F32 ? (void)read_field<float>(data, field.name)
                                  : (void)read_field<int32_t>(data, field.name);
}

void expect_refused(const std::string& why, const std::string& path, const char* fragment) {
  EXPECT_NE(why.find(path), std::string::npos) << why;
  EXPECT_NE(why.find(fragment), std::string::npos) << why;
}

TEST(Tokens, WindowsOfAFileOfU16) {
  const DatasetPtr data = token_files({recorded("tokens.bin")}, "u16", 3);
  EXPECT_EQ(data->samples(), 47);
  const auto x = read_field<int32_t>(data, "x"), y = read_field<int32_t>(data, "y");
  for (int32_t i = 0; i < 47 * 3; ++i) {
    EXPECT_EQ(x[static_cast<size_t>(i)], (i / 3 + i % 3) * 7);
    EXPECT_EQ(y[static_cast<size_t>(i)], (i / 3 + i % 3 + 1) * 7);
  }
}

// Three files, of which the second is shorter than a window: every token but the first is predicted
// once by windows side by side.
TEST(Tokens, WindowsRunOnOverFiles) {
  const ScratchFile second("second.bin"), third("third.bin");
  const std::string all = contents(recorded("tokens.bin"));
  second.write(all.substr(0, 4)), third.write(all.substr(4, 60));
  const DatasetPtr data =
      open_data("tokens", recorded("tokens.bin"),
                {{"length", int64_t{9}}, {"more.1", second.path()}, {"more.2", third.path()}}, {});
  ASSERT_EQ(data->samples(), 50 + 2 + 30 - 9);
  EXPECT_TRUE(data->slow());
  const auto x = read_field<int32_t>(data, "x"), y = read_field<int32_t>(data, "y");
  for (size_t i = 0; i < 73 * 9; ++i) {
    const auto token = static_cast<int32_t>(i / 9 + i % 9);
    EXPECT_EQ(x[i], (token < 50 ? token : token - 50) * 7) << i;
    EXPECT_EQ(y[i], (token < 49 ? token + 1 : token - 49) * 7) << i;
  }
}

TEST(Tokens, EachOfSeveralFilesHoldsWholeTokens) {
  const ScratchFile odd("odd.bin");
  odd.write("xxx");
  expect_refused(refusal([&] {
                   open_data("tokens", recorded("tokens.bin"),
                             {{"length", int64_t{9}}, {"more.1", odd.path()}}, {});
                 }),
                 odd.path(), "3 bytes are no whole number of u16 tokens");
}

// A header of llm.c, of `magic` and `version`, and as many tokens of `bytes` bytes: 0, 1, 2, ...
std::string with_header(int32_t magic, int32_t version, int32_t tokens, size_t bytes) {
  std::string file(1024, '\0');
  const int32_t first[] = {magic, version, tokens};
  std::memcpy(file.data(), first, sizeof first);
  for (int32_t i = 0; i < tokens; ++i)
    file.append(reinterpret_cast<const char*>(&i), bytes);  // little-endian
  return file;
}

TEST(Tokens, TheHeaderOfLlmcIsNoToken) {
  const ScratchFile file("llmc.bin");
  const auto read = [&](const Attrs& options) {
    return open_data("tokens", file.path(), options, {{"x", ORR_I32}, {"y", ORR_I32}});
  };
  for (const auto& [magic, version, bytes] :
       {std::tuple{20240520, 1, size_t{2}}, std::tuple{20240801, 7, size_t{4}}}) {
    file.write(with_header(magic, version, 30, bytes));
    const DatasetPtr data = read({{"length", int64_t{4}}});
    ASSERT_EQ(data->samples(), 26);
    const auto y = read_field<int32_t>(data, "y");
    for (int32_t i = 0; i < 26 * 4; ++i) EXPECT_EQ(y[static_cast<size_t>(i)], i / 4 + i % 4 + 1);
    expect_refused(refusal([&] {
                     read({{"length", int64_t{4}}, {"dtype", "i64"}});
                   }),
                   file.path(), "leave dtype out");
    file.write(with_header(magic, version, 30, bytes).substr(0, 1050));
    expect_refused(refusal([&] {
                     read({{"length", int64_t{4}}});
                   }),
                   file.path(), "its header says 30 tokens of");
  }
}

TEST(Tokens, FilesOfOtherFormatsAreNoTokens) {
  const auto refused = [](const std::string& path, const char* why) {
    expect_refused(refusal([&] { token_files({path}, "u8", 3); }), path, why);
  };
  refused(recorded("u2.npy"), "it is a .npy file, not token ids alone");
  refused(recorded("all.safetensors"), "it is a safetensors file");
  const ScratchFile file("other.bin");
  file.write(std::string("PAR1") + std::string(60, 'x') + "PAR1");
  refused(file.path(), "it is a Parquet file");
  file.write("PK\x03\x04" + std::string(60, 'x'));
  refused(file.path(), "it is a zip archive");
}

// CIFAR is downloaded as a tar archive, in a version of pickles beside that of records.
TEST(Cifar, FilesOfOtherFormatsAreNoRecords) {
  const auto refused = [](const std::string& path, const char* why) {
    expect_refused(refusal([&] { cifar_files({path}, 10, ORR_F32); }), path, why);
  };
  refused(recorded("u2.npy"), "it is a .npy file, not records of CIFAR");
  const ScratchFile file("other.bin");
  file.write(std::string("\x80\x02}q\x01", 5) + std::string(3068, '\1'));
  refused(file.path(), "it is a pickle of Python's");
  file.write("data_batch_1.bin" + std::string(241, '\0') + "ustar" + std::string(2811, '\1'));
  refused(file.path(), "it is a tar archive, not records of CIFAR: give the .bin files");
}

// What gzip -d reads: several members, and zeros behind them.
TEST(Idx, PackedFilesMayHavePadding) {
  const ScratchFile file("padded.gz");
  const std::string packed = contents(recorded("images.idx.gz"));
  const auto read = [&] {
    return read_field<float>(idx_files(file.path(), recorded("labels.idx"), ORR_F32), "x");
  };
  file.write(packed);
  const auto whole = read();
  for (size_t zeros : {1, 511, 300000}) {
    file.write(packed + std::string(zeros, '\0'));
    EXPECT_EQ(read(), whole) << zeros;
  }
  file.write(packed + std::string(5, '\0') + "x");
  expect_refused(refusal([&] { (void)read(); }), file.path(), "the packed file is");
}

TEST(Tokens, RefusesWhatHoldsNoWindow) {
  const std::string path = recorded("tokens.bin");
  expect_refused(refusal([&] { token_files({path}, "u16", 50); }), path,
                 "there are 50 tokens, windows of 50 need at least 51");
  expect_refused(refusal([&] { token_files({path}, "i64", 3); }), path,
                 "100 bytes are no whole number of i64 tokens");
  expect_refused(refusal([&] { token_files({path}, "u16", 0); }), path, "window of 0");
  expect_refused(refusal([&] { token_files({path}, "u16", INT64_MAX); }), path, "window of");
  expect_refused(refusal([&] { token_files({"nowhere"}, "u16", 3); }), "nowhere", "missing");
}

TEST(Tokens, MutationsAreReadOrRefused) {
  const ScratchFile file("mutated_tokens.bin");
  expect_mutations_stand(contents(recorded("tokens.bin")), file, 100, {"x", std::string(9, '\xff')},
                         [&] { read_all(token_files({file.path()}, "u16", 40)); });
}

TEST(Tokens, AFileThatShrinksMeanwhileIsAnError) {
  const ScratchFile file("shrinks.bin");
  file.write(std::string(100, 'x'));
  const DatasetPtr data = token_files({file.path()}, "u16", 40);
  std::filesystem::resize_file(file.path(), 1);
  expect_refused(refusal([&] { read_all(data); }), file.path(), "became shorter");
}

// The rows of the next batch are read by a thread: the same rows as without, and no others.
TEST(BatchReader, RowsReadAheadAreThoseOfTheFile) {
  const DatasetPtr data = token_files({recorded("tokens.bin")}, "u16", 1);
  const auto first = std::make_shared<BatchReader>(data, std::vector<Pick>{{0}, {1}, {2}, {3}});
  const auto next = std::make_shared<BatchReader>(data, std::vector<Pick>{{9}, {8}, {7}, {6}});
  const auto rows = [](BatchReader& batch, size_t field, int64_t begin) {
    std::vector<int32_t> two(2);
    batch.load(field, begin, begin + 2, reinterpret_cast<std::byte*>(two.data()));
    return two;
  };
  first->set_next(next);
  EXPECT_EQ(rows(*first, 0, 2), (std::vector<int32_t>{14, 21}));
  EXPECT_EQ(rows(*next, 0, 2), (std::vector<int32_t>{49, 42}));
  EXPECT_EQ(rows(*next, 1, 2), (std::vector<int32_t>{56, 49}));
  EXPECT_EQ(rows(*next, 0, 0), (std::vector<int32_t>{63, 56}));
  int32_t last = 0;
  next->load(0, 3, 4, reinterpret_cast<std::byte*>(&last));
  EXPECT_EQ(last, 42);
  next->release();
  EXPECT_EQ(rows(*next, 0, 2), (std::vector<int32_t>{49, 42}));
}

TEST(BatchReader, AnErrorAheadIsThrownWhereTheRowsAreWanted) {
  const ScratchFile file("ahead.bin");
  file.write(std::string(100, 'x'));
  const DatasetPtr data = token_files({file.path()}, "u16", 1);
  const auto first = std::make_shared<BatchReader>(data, std::vector<Pick>{{0}});
  const auto next = std::make_shared<BatchReader>(data, std::vector<Pick>{{40}});
  std::filesystem::resize_file(file.path(), 10);
  first->set_next(next);
  int32_t token = 0;
  first->load(0, 0, 1, reinterpret_cast<std::byte*>(&token));
  expect_refused(refusal([&] { next->load(0, 0, 1, reinterpret_cast<std::byte*>(&token)); }),
                 file.path(), "became shorter");
}

TEST(Idx, ImagesAreWhatNumpyMakesOfThem) {
  const DatasetPtr data = idx_files(recorded("images.idx"), recorded("labels.idx"), ORR_F32);
  EXPECT_EQ(data->fields()[0].sample, (Type{ORR_F32, {1, 4, 5}}));
  const HostTensor expected = load_npy(recorded("images.npy"));
  const auto x = read_field<float>(data, "x");
  ASSERT_EQ(x.size() * sizeof(float), expected.bytes->size());
  EXPECT_EQ(std::memcmp(x.data(), expected.bytes->data(), expected.bytes->size()), 0);
  EXPECT_EQ(read_field<int32_t>(data, "y"), (std::vector<int32_t>{7, 0, 9}));
  const DatasetPtr bytes = idx_files(recorded("images.idx"), recorded("labels.idx"), ORR_U8);
  EXPECT_EQ(read_field<uint8_t>(bytes, "x")[1], 37);
}

TEST(Idx, NamesWhatIsWrong) {
  const std::string images = recorded("images.idx"), labels = recorded("labels.idx");
  expect_refused(refusal([&] { idx_files(labels, images, ORR_F32); }), labels, "exchanged");
  expect_refused(refusal([&] { idx_files(images, images, ORR_F32); }), images, "labels are [N]");
  const ScratchFile file("damaged.idx");
  const auto refused = [&](const std::string& bytes, const char* why) {
    file.write(bytes);
    expect_refused(refusal([&] { idx_files(file.path(), labels, ORR_F32); }), file.path(), why);
  };
  const std::string whole = contents(images);
  refused("\x1f\x8b\x08\x08", "the packed file is cut short");
  refused("P5 4 5", "not an idx file");
  refused(whole.substr(0, 9), "cut short");
  refused(whole.substr(0, 60), "44 bytes of elements are not those of [3,4,5]");
  refused(whole + "x", "61 bytes of elements");
  std::string other = whole.substr(0, 4) + std::string(4, '\0') + whole.substr(8, 8);
  refused(other, "[0,4,5]: there is nothing in it");
  other = whole;
  other[2] = 0x0a;
  refused(other, "element code 10");
  other = whole.substr(0, 4) + std::string(4, '\xff') + whole.substr(8);
  refused(other, "[4294967295,4,5]");
}

TEST(Idx, MutationsAreReadOrRefused) {
  const ScratchFile file("mutated.idx");
  for (const char* name : {"images.idx", "labels.idx"}) {
    const bool is_images = std::string(name) == "images.idx";
    expect_mutations_stand(
        contents(recorded(name)), file, 300,
        {std::string(4, '\0'), "\xff\xff\xff\xff", std::string("\0\0\x08\x03", 4)}, [&] {
          read_all(idx_files(is_images ? file.path() : recorded("images.idx"),
                             is_images ? recorded("labels.idx") : file.path(), ORR_F32));
        });
  }
}

TEST(Cifar, RecordsOfBothKinds) {
  const DatasetPtr ten = cifar_files({recorded("cifar10.bin")}, 10, ORR_F32);
  EXPECT_EQ(read_field<int32_t>(ten, "y"), (std::vector<int32_t>{3, 9}));
  const DatasetPtr hundred = cifar_files({recorded("cifar100.bin")}, 100, ORR_F32);
  EXPECT_EQ(read_field<int32_t>(hundred, "coarse"), (std::vector<int32_t>{19, 0}));
  EXPECT_EQ(read_field<int32_t>(hundred, "y"), (std::vector<int32_t>{99, 42}));
  for (const DatasetPtr& data : {ten, hundred}) {
    const auto x = read_field<float>(data, "x");
    for (int i = 0; i < 2 * 3072; ++i)
      ASSERT_EQ(x[static_cast<size_t>(i)],
                static_cast<float>((i / 3072 + 3 * (i % 3072)) % 256) / 255);
  }
}

TEST(Cifar, MutationsAreReadOrRefused) {
  const ScratchFile file("mutated.bin");
  for (int64_t classes : {10, 100})
    expect_mutations_stand(contents(recorded(classes == 10 ? "cifar10.bin" : "cifar100.bin")), file,
                           300, {"x", std::string(3073, '\0'), std::string(3074, '\7')},
                           [&] { read_all(cifar_files({file.path()}, classes, ORR_F32)); });
}

TEST(Cifar, NamesWhatIsWrong) {
  const std::string path = recorded("cifar10.bin");
  expect_refused(refusal([&] { cifar_files({path}, 100, ORR_F32); }), path, "records of 3074");
  const ScratchFile file("mislabelled.bin");
  std::string bytes = contents(path);
  bytes[3073] = 10;
  file.write(bytes);
  expect_refused(refusal([&] { cifar_files({file.path()}, 10, ORR_F32); }), file.path(),
                 "record 1 has the label 10, below 10 expected");
  file.write(bytes.substr(1));
  expect_refused(refusal([&] { cifar_files({file.path()}, 10, ORR_F32); }), file.path(),
                 "6145 bytes");
  expect_refused(refusal([&] { cifar_files({path}, 20, ORR_F32); }), "cifar", "classes is 20");
}

}  // namespace
}  // namespace orrery
