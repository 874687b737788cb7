// SPDX-License-Identifier: Apache-2.0
//
// .npy against NumPy's own files (make.py), against headers that lie, and against noise.
#include <sys/stat.h>

#include "mutations.h"
#include "program/elements.h"
#include "readers.h"

namespace orrery {
namespace {

TEST(Npy, ReadsWhatNumpyWrites) {
  struct Case {
    const char* name;
    int32_t dtype;
    int first;
  };
  const Case cases[] = {
      {"f2", ORR_F16, 0},      {"f4", ORR_F32, 0},          {"f8", ORR_F64, 0},
      {"big_f4", ORR_F32, 0},  {"i1", ORR_I32, -2},         {"i2", ORR_I32, -2},
      {"i4", ORR_I32, -2},     {"i8", ORR_I64, -2},         {"big_i2", ORR_I32, -2},
      {"u1", ORR_U8, 0},       {"big_i8", ORR_I64, -2},     {"u2", ORR_I32, 0},
      {"u4", ORR_I64, 0},      {"u8", ORR_I64, 0},          {"bf16", ORR_BF16, 0},
      {"fortran", ORR_F64, 0}, {"big_fortran", ORR_I32, 0}, {"version3", ORR_F32, 0}};
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

const ScratchFile& scratch() {
  static const ScratchFile file("damaged.npy");
  return file;
}

std::string refusal_of(const std::string& bytes) {
  scratch().write(bytes);
  return refusal([] { load_npy(scratch().path()); });
}

// A header and some bytes of data.
std::string with_header(std::string header, char version = 1, size_t bytes = 16) {
  header.resize(117, ' ');
  header += '\n';
  const std::string size = {static_cast<char>(header.size()), 0};
  return std::string("\x93NUMPY") + version + '\0' + size + header + std::string(bytes, 'x');
}

std::string array(const std::string& shape, char version = 1, size_t bytes = 16) {
  return with_header("{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }", version,
                     bytes);
}

TEST(Npy, NamesWhatIsWrong) {
  EXPECT_NE(refusal_of("hello, world").find("not a .npy file"), std::string::npos);
  const std::string why = refusal_of(array("(100,)", 1, 72));
  EXPECT_NE(why.find("72 of 400 data bytes"), std::string::npos) << why;
}

// What NumPy 2.4 reads ("") and refuses, but for types that tensors lack.
TEST(Npy, ReadsTheHeadersThatNumpyReads) {
  const std::string types = "{'descr': '<f4', 'fortran_order': ", shape = ", 'shape': (4,)}";
  const std::string shapes = "{'descr': '<f4', 'fortran_order': False, 'shape': ";
  const std::pair<std::string, const char*> headers[] = {
      {types + "False" + shape, ""},
      {types + "True" + shape, ""},
      {types + "1" + shape, "fortran_order is not a valid bool: 1;"},
      {types + "'True'" + shape, "fortran_order is not a valid bool: 'True';"},
      {types + "Truely" + shape, "fortran_order is not a valid bool: Truely;"},
      {types + shape, "no Python dictionary"},
      {"{'shape': (4,), 'descr': \"<f4\", \"fortran_order\" : False , } ", ""},
      {"{'fortran_order':False,'shape':( 2,2 ),'descr':'<f4'}", ""},
      {"{'descr': '<f8', 'descr': '<f4', 'fortran_order': False, 'shape': (4,)}", ""},
      {"{'descr': '<f4', 'fortran_order': False}", "lacks 'shape'"},
      {"{'descr': '<f4', 'shape': (4,)}", "lacks 'fortran_order'"},
      {"{'fortran_order': False, 'shape': (4,)}", "lacks 'descr'"},
      {types + "False, 'order': 1" + shape, "has the key 'order'"},
      {types + "False" + shape + " x", "no Python dictionary"},
      {"['descr', '<f4', 'fortran_order', False, 'shape', (4,)]", "no Python dictionary"},
      {types + "False, 'shape': (4,)", "no Python dictionary"},
      {types + "False 'shape': (4,)}", "lacks 'shape'"},
      {"{'descr': 4, 'fortran_order': False" + shape, "elements of type 4"},
      {"{'descr': '<f4, 'fortran_order': False" + shape, "no Python dictionary"},
      {"{'descr': [('a', '<f4')], 'fortran_order': False" + shape,
       "elements of type [('a', '<f4')]"},
      {shapes + "(2L, 2L)}", ""},
      {shapes + "(2,2,)}", ""},
      {shapes + "(4)}", "the shape (4) is not valid: a tuple expected"},
      {shapes + "[4]}", "the shape [4] is not valid: a tuple expected"},
      {shapes + "4}", "the shape 4 is not valid"},
      {shapes + "(,)}", "the shape (,) is not valid"},
      {shapes + "(2 2)}", "the shape (2 2) is not valid"},
      {shapes + "(4.0,)}", "the shape (4.0,) is not valid: whole numbers from 0 expected"},
  };
  for (const auto& [header, why] : headers) {
    const std::string said = refusal_of(with_header(header));
    EXPECT_EQ(said.empty(), !*why) << header << ": " << said;
    EXPECT_NE(said.find(why), std::string::npos) << header << ": " << said;
  }
  std::string minor = array("(4,)");
  minor[7] = 1;
  EXPECT_NE(refusal_of(minor).find("version 1.1 of .npy is not known"), std::string::npos);
}

// As array() makes it, but in Fortran order.
std::string in_columns(const std::string& shape, const std::vector<float>& elements) {
  std::string bytes = array(shape, 1, 0);
  bytes.replace(bytes.find("False"), 5, "True ");
  return bytes.append(reinterpret_cast<const char*>(elements.data()), elements.size() * 4);
}

TEST(Npy, FortranOrderIsReadAsTheArrayThatItIs) {
  const HostTensor numpys = load_npy(recorded("fortran.npy"));
  EXPECT_EQ(numpys.type, (Type{ORR_F64, {2, 3}}));
  for (int i = 0; i < 6; ++i) EXPECT_EQ(numpys.data<double>()[i], i);

  // Element (i, k, m) is 10000 i + 100 k + m; there are more than are read at once.
  std::vector<float> columns;
  for (int m = 0; m < 70; ++m)
    for (int k = 0; k < 40; ++k)
      for (int i = 0; i < 30; ++i) columns.push_back(static_cast<float>(10000 * i + 100 * k + m));
  scratch().write(in_columns("(30, 40, 70)", columns));
  const DatasetPtr rows = open_data("npy", scratch().path(), {}, {});
  ASSERT_EQ(rows->samples(), 30);
  const auto bytes = read_one(*rows, {29}, 0);
  for (int k = 0; k < 40; ++k)
    for (int m = 0; m < 70; ++m)
      ASSERT_EQ(read_element(ORR_F32, bytes.data() + (k * 70 + m) * 4), 290000 + 100 * k + m);
}

TEST(Npy, FortranOrderWithoutElementsOrDims) {
  for (const char* shape : {"(0, 5)", "(3, 0)"})
    EXPECT_EQ(refusal_of(in_columns(shape, {})), "") << shape;
  EXPECT_EQ(refusal_of(in_columns("()", {1})), "");
}

TEST(Npy, FortranOrderLargerThanTheMemoryIsRefused) {
  scratch().write(in_columns("(2, 549755813888)", {}));
  std::filesystem::resize_file(scratch().path(), (std::uintmax_t{1} << 42) + 4096);
  const std::string why = refusal([] { load_npy(scratch().path()); });
  scratch().write("");
  EXPECT_NE(why.find("save numpy.ascontiguousarray(x)"), std::string::npos) << why;
}

TEST(Npy, AValueAboveI64IsNamed) {
  std::string bytes = contents(recorded("u8.npy"));
  bytes.back() = '\xff';
  EXPECT_NE(refusal_of(bytes).find("the value 18374686479671623685 does not fit into i64"),
            std::string::npos)
      << refusal_of(bytes);
}

TEST(Npy, RefusesShapesThatNoMemoryHolds) {
  for (const char* shape :
       {"(2305843009213693952, 8)", "(4294967296, 4294967296, 4)", "(99999999999999999999,)",
        "(-4, -1)", "(4, x)", "(4", "4,", "(1,1,1,1,1,1,1,1,1)", "(4000000000,)", "(5,)"})
    EXPECT_NE(refusal_of(array(shape)), "") << shape;
  EXPECT_NE(refusal_of(array("(2305843009213693952, 8)")).find("overflows 64 bits"),
            std::string::npos);
  EXPECT_NE(refusal_of(array("(4,)", 9)).find("version 9.0 of .npy is not known"),
            std::string::npos);
  for (const char* shape : {"(4,)", "(2, 2)", "()", "(0, 5)", "(0,)", "(2,2,1)"})
    EXPECT_EQ(refusal_of(array(shape)), "") << shape;
}

TEST(Npy, TheFirstDimCountsTheSamples) {
  const DatasetPtr rows = open_data("npy", recorded("f4.npy"), {{"field", "rows"}}, {});
  EXPECT_EQ(rows->samples(), 2);
  EXPECT_EQ(rows->fields()[0].name, "rows");
  EXPECT_EQ(rows->fields()[0].sample, (Type{ORR_F32, {3}}));
  const auto bytes = read_one(*rows, {1}, 0);
  EXPECT_EQ(read_element(ORR_F32, bytes.data() + 4), 4);
  for (const char* shape : {"()", "(0, 4)"}) {
    scratch().write(array(shape));
    const std::string why = refusal([] { open_data("npy", scratch().path(), {}, {}); });
    EXPECT_NE(why.find(": its first dim counts the samples"), std::string::npos) << why;
  }
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
