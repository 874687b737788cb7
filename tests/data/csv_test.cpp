// SPDX-License-Identifier: Apache-2.0
//
// Tables against what pandas reads of them (make.py), and tables with mistakes.
#include <cstring>

#include "mutations.h"
#include "readers.h"

namespace orrery {
namespace {

TEST(Csv, NumbersAndKindsAreThoseOfPandas) {
  const DatasetPtr data =
      csv_file(recorded("table.csv"), {{"x", {"a", "b", "a name, with a comma"}, true, "f64"},
                                       {"y", {"kind"}, false, "class"},
                                       {"big", {"big"}, false, "i64"}});
  ASSERT_EQ(data->samples(), 4);
  EXPECT_EQ(data->fields()[0].sample, (Type{ORR_F64, {3}}));
  EXPECT_EQ(data->fields()[1].sample, (Type{ORR_I32, {}}));
  EXPECT_EQ(read_all(data, 0), *load_npy(recorded("table.npy")).bytes);
  EXPECT_EQ(read_all(data, 1), *load_npy(recorded("table_kinds.npy")).bytes);
  EXPECT_EQ(data->classes()[2], "say \"hi\"");
  int64_t big = 0;
  std::memcpy(&big, read_all(data, 2).data(), sizeof big);
  EXPECT_EQ(big, int64_t{1} << 40);
}

class CsvText : public testing::Test {
 protected:
  std::string refused(const std::string& text, const std::string& dtype = "") const {
    file_.write(text);
    const std::string why = refusal([&] { csv_file(file_.path(), {{"x", {"a"}, false, dtype}}); });
    EXPECT_TRUE(why.empty() || why.starts_with(file_.path())) << why;
    return why.empty() ? why : why.substr(file_.path().size());
  }
  const ScratchFile file_{"table.csv"};
};

TEST_F(CsvText, ReadsWhatProgramsWrite) {
  for (const char* text : {"a\n1", "a\n1\n", "a,b\r\n1,2\r\n",
                           "\xef\xbb\xbf"
                           "a\n1\n\n2\n",
                           "\"a\"\n\"1\"\n", " a , b \n 1 , 2 \n", "a,b\n1,\n"})
    EXPECT_EQ(refused(text), "") << text;
}

TEST_F(CsvText, NamesWhatIsWrong) {
  const auto expect = [&](const std::string& text, const std::string& why,
                          const std::string& dtype = "") {
    EXPECT_TRUE(refused(text, dtype).starts_with(why)) << refused(text, dtype);
  };
  expect("", ": the file is empty");
  expect("a\n", ": there is no line below");
  expect("b,c\n1,2\n", ": there is no column 'a'; it has b, c");
  expect("a,a\n1,2\n", ": two columns are named 'a'");
  expect("a,b\n1,2\n3\n", ": line 3: 1 values, the first line names 2 columns");
  expect("a\n1\n\n,\n", ": line 4: 2 values");
  expect("a\n1\nx1\n", ": line 3: column 'a' has 'x1', a number expected");
  expect("a,b\n,1\n", ": line 2: column 'a' has '', a number expected");
  expect("a\nnan\n", ": line 2: column 'a' has 'nan'");
  expect("a\n1.5\n", ": line 2: column 'a' has '1.5', a whole number expected", "i32");
  expect("a\n3000000000\n", ": line 2: column 'a': the value 3000000000 does not fit into i32",
         "i32");
  expect("a\n1e39\n", ": line 2: column 'a': the value 1e39 does not fit into f32");
  expect("a,b\n1,\"two\nlines\"\nx,3\n", ": line 4: column 'a' has 'x'");
  expect("a\n\"1\n2\n", ": line 2: a quote is not closed");
  expect("a\n\"1\"2\n", ": line 2: a closing quote is followed by '2'");
  expect("a,b\n\"1\n", ": line 2: a quote is not closed");
}

TEST_F(CsvText, FilesOfOtherFormatsAreNoTables) {
  for (const auto& [text, why] :
       {std::pair{"PK\x03\x04" + std::string(60, 'a'),
                  ": it is a zip archive (.npz, .pt, .xlsx), not"},
        {contents(recorded("f4.npy")), ": it is a .npy file, not a table as text"},
        {"PAR1\x15\x04" + std::string(60, 'a') + "PAR1", ": it is a Parquet file, not"}})
    EXPECT_TRUE(refused(text).starts_with(why)) << refused(text);
  EXPECT_EQ(refused("PAR1,a\n1,2\n"), "");  // a text, all the same
}

// Those of 24 bits and zeros behind them are f32; pandas keeps the others as int64.
TEST_F(CsvText, WholeNumbersThatF32RoundsAreRefused) {
  for (const char* number : {"16777216", "16777218", "-33554428", "1099511627776", "0", "-0",
                             "16777217.0", "0.1", "123456789e3"})
    EXPECT_EQ(refused("a\n" + std::string(number)), "") << number;
  for (const char* number : {"16777217", "-16777217", "123456789", "1700000001",
                             "9223372036854775807", "18446744073709551617"}) {
    const std::string text = "a\n1\n" + std::string(number);
    EXPECT_EQ(refused(text), ": line 3: column 'a': f32 would round the whole number " +
                                 std::string(number) +
                                 "; dtypes = {x = \"i64\"} or \"f64\" keeps it, \"f32\" rounds it");
    EXPECT_EQ(refused(text, "f32"), "");
  }
  EXPECT_EQ(refused("a\n9223372036854775807", "i64"), "");
}

TEST_F(CsvText, SeveralColumnsAreAList) {
  file_.write("a,b\n1,2\n");
  EXPECT_EQ(csv_file(file_.path(), {{"x", {"a", "b"}}})->fields()[0].sample.dims, (Dims{2}));
  EXPECT_EQ(csv_file(file_.path(), {{"x", {"a"}}})->fields()[0].sample.dims, (Dims{}));
  EXPECT_EQ(refusal([&] {
              csv_file(file_.path(), {{"x", {}}});
            }),
            "csv: 'x' has no columns; give at least one");
  EXPECT_EQ(refusal([&] {
              csv_file(file_.path(), {{"x", {"a", "b"}, true, "class"}});
            }),
            "csv: 'x' has 2 columns: a class is of one");
}

TEST_F(CsvText, OneFieldIsTheClass) {
  file_.write("a,b\n1,2\n");
  const CsvField x{"x", {"a"}, false, "class"}, y{"y", {"b"}, false, "class"};
  EXPECT_NE(refusal([&] {
              csv_file(file_.path(), {x, y});
            }).find("several fields are classes"),
            std::string::npos);
}

TEST_F(CsvText, MutationsAreReadOrRefused) {
  expect_mutations_stand(contents(recorded("table.csv")), file_, 300,
                         {"\"", ",", "\n", "\r\n", "1e999", "-", std::string(2, '\0')}, [&] {
                           csv_file(file_.path(), {{"x", {"a", "b"}, true, "f32"},
                                                   {"y", {"kind"}, false, "class"},
                                                   {"big", {"big"}, false, "i32"}});
                         });
}

}  // namespace
}  // namespace orrery
