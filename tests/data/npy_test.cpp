// SPDX-License-Identifier: Apache-2.0
//
// .npy against NumPy's own files (make.py), against headers that lie, and against noise.
#include "data/npy.h"

#include <sys/stat.h>

#include "mutations.h"
#include "program/elements.h"

namespace orrery {
namespace {

TEST(Npy, ReadsWhatNumpyWrites) {
  struct Case {
    const char* name;
    int32_t dtype;
    int first;
  };
  const Case cases[] = {{"f2", ORR_F16, 0},     {"f4", ORR_F32, 0},      {"f8", ORR_F64, 0},
                        {"big_f4", ORR_F32, 0}, {"i1", ORR_I32, -2},     {"i2", ORR_I32, -2},
                        {"i4", ORR_I32, -2},    {"i8", ORR_I64, -2},     {"big_i2", ORR_I32, -2},
                        {"u1", ORR_U8, 0},      {"big_i8", ORR_I64, -2}, {"u2", ORR_I32, 0},
                        {"u4", ORR_I64, 0},     {"u8", ORR_I64, 0},      {"bf16", ORR_BF16, 0}};
  for (const Case& c : cases) {
    const HostTensor x = load_npy(recorded(std::string(c.name) + ".npy"));
    EXPECT_EQ(x.type, (Type{c.dtype, {2, 3}})) << c.name;
    for (int i = 0; i < 6; ++i)
      EXPECT_EQ(read_element(c.dtype, x.data<std::byte>() + i * orr_dtype_bytes(c.dtype)),
                c.first + i)
          << c.name;
  }
  const HostTensor truth = load_npy(recorded("b1.npy"));
  for (int i = 0; i < 6; ++i) EXPECT_EQ(truth.data<uint8_t>()[i], i != 0);
}

TEST(Npy, ReadsBackWhatItWrote) {
  const ScratchFile file("written.npy");
  for (int32_t dtype : {ORR_F32, ORR_F64, ORR_F16, ORR_I32, ORR_I64, ORR_U8, ORR_BOOL}) {
    HostTensor x = HostTensor::make({dtype, {2, 3}});
    for (int i = 0; i < 6; ++i) {
      write_element(dtype, x.data<std::byte>() + i * orr_dtype_bytes(dtype), i % 2);
    }
    save_npy(file.path(), x);
    const HostTensor y = load_npy(file.path());
    EXPECT_EQ(y.type, x.type);
    EXPECT_EQ(*y.bytes, *x.bytes);
  }
}

TEST(Npy, DataBeginsAtAMultipleOf64) {
  const ScratchFile file("aligned.npy");
  save_npy(file.path(), HostTensor::make({ORR_F32, {5}}));
  EXPECT_EQ((std::filesystem::file_size(file.path()) - 20) % 64, 0u);
}

const ScratchFile& scratch() {
  static const ScratchFile file("damaged.npy");
  return file;
}

std::string refusal_of(const std::string& bytes) {
  scratch().write(bytes);
  return refusal([] { load_npy(scratch().path()); });
}

TEST(Npy, NamesWhatIsWrong) {
  EXPECT_NE(refusal_of("hello, world").find("not a .npy file"), std::string::npos);
  save_npy(scratch().path(), HostTensor::make({ORR_F32, {100}}));
  const std::string why = refusal_of(contents(scratch().path()).substr(0, 200));
  EXPECT_NE(why.find("72 of 400 data bytes"), std::string::npos) << why;
  const std::string fortran = refusal([] { load_npy(recorded("fortran.npy")); });
  EXPECT_NE(fortran.find("Fortran order; save numpy.ascontiguousarray(x)"), std::string::npos);
}

TEST(Npy, AValueAboveI64IsNamed) {
  std::string bytes = contents(recorded("u8.npy"));
  bytes.back() = '\xff';
  EXPECT_NE(refusal_of(bytes).find("the value 18374686479671623685 does not fit into i64"),
            std::string::npos)
      << refusal_of(bytes);
}

// A header and 16 bytes of data.
std::string array(const std::string& shape, char version = 1) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }";
  header.resize(117, ' ');
  header += '\n';
  const std::string size = {static_cast<char>(header.size()), 0};
  return std::string("\x93NUMPY") + version + '\0' + size + header + std::string(16, 'x');
}

TEST(Npy, RefusesShapesThatNoMemoryHolds) {
  for (const char* shape :
       {"(2305843009213693952, 8)", "(4294967296, 4294967296, 4)", "(99999999999999999999,)",
        "(-4, -1)", "(4, x)", "(4", "4,", "(1,1,1,1,1,1,1,1,1)", "(4000000000,)", "(5,)"})
    EXPECT_NE(refusal_of(array(shape)), "") << shape;
  EXPECT_NE(refusal_of(array("(2305843009213693952, 8)")).find("overflows 64 bits"),
            std::string::npos);
  EXPECT_NE(refusal_of(array("(4,)", 9)).find("version 9 of .npy is not known"), std::string::npos);
  for (const char* shape : {"(4,)", "(2, 2)", "()", "(0, 5)", "(0,)", "(2,2,1)"})
    EXPECT_EQ(refusal_of(array(shape)), "") << shape;
}

TEST(Npy, DoesNotWaitForAPipe) {
  const ScratchFile pipe("pipe.npy");
  ASSERT_EQ(::mkfifo(pipe.path().c_str(), 0600), 0);
  const std::string why = refusal([&] { load_npy(pipe.path()); });
  EXPECT_NE(why.find("is not a regular file"), std::string::npos) << why;
}

TEST(Npy, MutationsAreReadOrRefused) {
  const std::vector<std::string> pieces = {"'shape': (",
                                           ")",
                                           "(",
                                           "-",
                                           "9223372036854775807",
                                           ",",
                                           "'",
                                           "<f8",
                                           std::string(3, '\0'),
                                           "\xff\xff\xff\xff"};
  for (const char* shape : {"(2, 2)", "(4,)"})
    for (char version : {1, 2})
      expect_mutations_stand(array(shape, version), scratch(), 100, pieces,
                             [] { load_npy(scratch().path()); });
}

}  // namespace
}  // namespace orrery
