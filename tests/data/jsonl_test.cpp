// SPDX-License-Identifier: Apache-2.0
//
// JSON lines against what pandas reads of them (make.py), and lines with mistakes.
#include <algorithm>
#include <cstring>

#include "mutations.h"
#include "readers.h"

namespace orrery {
namespace {

DatasetPtr lines_file(const std::string& path, const std::vector<CsvField>& fields) {
  return table_file("jsonl", path, fields);
}

TEST(JsonLines, NumbersAndKindsAreThoseOfPandas) {
  const DatasetPtr data =
      lines_file(recorded("table.jsonl"), {{"x", {"a", "b", "a name, with a comma"}, true, "f64"},
                                           {"y", {"kind"}, false, "class"},
                                           {"big", {"big"}, false, "i64"},
                                           {"nested", {"nested"}, false, "f64"},
                                           {"yes", {"yes"}, true, "bool"}});
  ASSERT_EQ(data->samples(), 4);
  EXPECT_EQ(data->fields()[0].sample, (Type{ORR_F64, {3}}));
  EXPECT_EQ(data->fields()[1].sample, (Type{ORR_I32, {}}));
  EXPECT_EQ(data->fields()[3].sample, (Type{ORR_F64, {2, 3}}));
  EXPECT_EQ(data->fields()[4].sample, (Type{ORR_BOOL, {1}}));
  EXPECT_EQ(read_all(data, 0), *load_npy(recorded("table.npy")).bytes);
  EXPECT_EQ(read_all(data, 1), *load_npy(recorded("table_kinds.npy")).bytes);
  EXPECT_EQ(read_all(data, 3), *load_npy(recorded("table_nested.npy")).bytes);
  EXPECT_EQ(read_all(data, 4),
            (std::vector{std::byte{1}, std::byte{0}, std::byte{1}, std::byte{0}}));
  EXPECT_EQ(data->classes()[2], "say \"hi\"");
  int64_t big = 0;
  std::memcpy(&big, read_all(data, 2).data(), sizeof big);
  EXPECT_EQ(big, int64_t{1} << 40);
}

// The texts of a field, whose lengths differ.
void expect_texts(const DatasetPtr& data, const std::vector<std::string>& texts) {
  ASSERT_EQ(data->samples(), static_cast<int64_t>(texts.size()));
  const auto longest = std::max_element(texts.begin(), texts.end(),
                                        [](auto& a, auto& b) { return a.size() < b.size(); });
  EXPECT_EQ(data->fields()[0].sample, (Type{ORR_U8, {static_cast<int64_t>(longest->size())}}));
  for (int64_t i = data->samples() - 1; i >= 0; --i) {
    const std::vector<std::byte> bytes = read_one(*data, {i}, 0);
    std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    std::string wanted = texts[static_cast<size_t>(i)];
    wanted.resize(text.size());
    EXPECT_EQ(text, wanted) << i;
  }
}

TEST(JsonLines, TextsAreBytesUpToTheLongest) {
  const ScratchFile file("texts.jsonl");
  file.write("{\"a\":\"\"}\n{\"a\":\"\\u00e4 b\\n\"}\n{\"a\":\"longest\"}\n{\"a\":\"x\"}\n");
  expect_texts(lines_file(file.path(), {{"x", {"a"}, false, "text"}}),
               {"", "\xc3\xa4 b\n", "longest", "x"});
  file.write("a,b\n1,\"two\nlines\"\n2,\n3, x \n");
  expect_texts(table_file("csv", file.path(), {{"x", {"b"}, false, "text"}}),
               {"two\nlines", "", " x "});
  file.write("{\"a\":\"x\"}\n{\"a\":7}\n");
  const std::string why = refusal([&] { lines_file(file.path(), {{"x", {"a"}, false, "text"}}); });
  EXPECT_EQ(why.find(file.path() + ": line 2: key 'a' has 7, a text expected"), 0u) << why;
  EXPECT_EQ(refusal([&] {
              lines_file(file.path(), {{"x", {"a", "b"}, true, "text"}});
            }),
            "jsonl: 'x' has 2 columns: a text is of one");
}

class JsonText : public testing::Test {
 protected:
  std::string refused(const std::string& text, const std::string& dtype = "",
                      bool is_list = false) const {
    file_.write(text);
    const std::string why = refusal([&] {
      lines_file(file_.path(), {{"x", {"a"}, is_list, dtype}});
    });
    EXPECT_TRUE(why.empty() || why.starts_with(file_.path())) << why;
    return why.empty() ? why : why.substr(file_.path().size());
  }
  const ScratchFile file_{"table.jsonl"};
};

TEST_F(JsonText, ReadsWhatProgramsWrite) {
  for (const char* text : {"{\"a\":1}", "{\"a\":1}\r\n\r\n{\"b\":[{}],\"a\":-2.5e3}\n",
                           " { \"a\" : true }\n\n", "{\"a\":[1,2]}\n{\"a\":[3,4]}\n"})
    EXPECT_EQ(refused(text), "") << text;
  EXPECT_EQ(refused("{\"a\":1}\n{\"a\":[2]}\n{\"a\":3}\n", "", true), "");
}

TEST_F(JsonText, NamesWhatIsWrong) {
  const auto expect = [&](const std::string& text, const std::string& why,
                          const std::string& dtype = "", bool is_list = false) {
    EXPECT_TRUE(refused(text, dtype, is_list).starts_with(why)) << refused(text, dtype, is_list);
  };
  expect("", ": the file is empty");
  expect("\n \n", ": the file is empty");
  expect("{\"a\":1}\nhello\n", ": line 2 is no JSON");
  expect("{\"a\":1}{\"a\":2}\n", ": line 1 is no JSON");
  expect("{\"a\":NaN}\n", ": line 1 is no JSON");
  expect("{\"a\":1}\n\n[1]\n", ": line 3 is no object");
  expect("{\"a\":1}\n{\"b\":1}\n", ": line 2: there is no key 'a'");
  expect("{\"a\":\"1\"}\n", ": line 1: key 'a' has \"1\", a number expected");
  expect("{\"a\":null}\n", ": line 1: key 'a' has null, a number expected");
  expect("{\"a\":[1,[2]]}\n", ": line 1: key 'a' has [2], a number expected");
  expect("{\"a\":[[1],[2,3]]}\n", ": line 1: key 'a' is [2], the first line has [2,1]");
  expect("{\"a\":[]}\n", ": line 1: key 'a' is an empty list");
  expect("{\"a\":[1,2]}\n{\"a\":[1]}\n", ": line 2: key 'a' is [1], the first line has [2]");
  expect("{\"a\":[1,2]}\n{\"a\":1}\n", ": line 2: key 'a' is a number, the first line has [2]");
  expect("{\"a\":[1,2]}\n{\"a\":1}\n", ": line 2: key 'a' is a number, the first line has [2]", "",
         true);
  expect("{\"a\":1}\n{\"a\":[1]}\n", ": line 2: key 'a' has [1], a number expected");
  expect("{\"a\":1.5}\n", ": line 1: key 'a' has '1.5', a whole number expected", "i32");
  expect("{\"a\":3000000000}\n", ": line 1: key 'a': the value 3000000000 does not fit into i32",
         "i32");
  expect("{\"a\":16777217}\n", ": line 1: key 'a': f32 would round the whole number 16777217");
  expect("{\"a\":7}\n", ": line 1: key 'a' has 7, a text expected", "class");
  expect("{\"a\":" + std::string(20, '[') + "1" + std::string(20, ']') + "}\n",
         ": line 1: key 'a' has lists 20 deep");
}

TEST_F(JsonText, MutationsAreReadOrRefused) {
  expect_mutations_stand(contents(recorded("table.jsonl")), file_, 300,
                         {"\"", ",", "\n", "[", "]", "{", "1e999", "-", std::string(2, '\0')}, [&] {
                           lines_file(file_.path(), {{"x", {"a", "b"}, true, "f32"},
                                                     {"y", {"kind"}, false, "class"},
                                                     {"nested", {"nested"}, false, "f64"},
                                                     {"big", {"big"}, false, "i32"}});
                         });
}

}  // namespace
}  // namespace orrery
