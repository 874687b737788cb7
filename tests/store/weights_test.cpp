// SPDX-License-Identifier: Apache-2.0
//
// Files of weights against those that Hugging Face's libraries write (make.py, make_gpt2.py).
#include "store/weights.h"

#include <cmath>
#include <cstring>

#include "../data/mutations.h"
#include "program/elements.h"
#include "store/stored.h"

namespace orrery {
namespace {

TEST(Weights, EveryKindOfElementIsRead) {
  const Weights weights(recorded("all.safetensors"));
  EXPECT_EQ(weights.names().size(), 17u);
  for (const char* name :
       {"u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f16", "f32", "f64", "bf16"}) {
    const HostTensor x = weights.read(name);
    EXPECT_EQ(x.type, (Type{stored_by_name(name)->dtype, {2, 3}})) << name;
    for (int i = 0; i < 6; ++i)
      EXPECT_EQ(read_element(x.type.dtype, x.data<std::byte>() + i * orr_dtype_bytes(x.type.dtype)),
                i)
          << name;
  }
  EXPECT_EQ(weights.type("bool").dtype, ORR_BOOL);
}

TEST(Weights, EightBitsAreWhatMlDtypesMakesOfThem) {
  const Weights weights(recorded("all.safetensors"));
  for (const std::string name : {"f8_e4m3", "f8_e5m2"}) {
    const HostTensor x = weights.read(name), expected = weights.read(name + ".f32");
    for (int i = 0; i < 256; ++i) {
      const float a = x.data<float>()[i], b = expected.data<float>()[i];
      EXPECT_TRUE(std::isnan(a) ? std::isnan(b) : a == b) << name << " " << i << ": " << a << b;
    }
  }
}

TEST(Weights, BecomeTheDtypeThatIsAskedFor) {
  const Weights weights(recorded("all.safetensors"));
  const HostTensor half = weights.read("f32", ORR_BF16);
  EXPECT_EQ(read_element(ORR_BF16, half.data<uint16_t>() + 5), 5);
  EXPECT_NE(refusal([&] { weights.read("f32", ORR_I32); }).find("'f32' is f32[2,3], i32 expected"),
            std::string::npos);
  EXPECT_NE(refusal([&] { weights.read("f31"); }).find("there is no tensor 'f31'"),
            std::string::npos);
}

TEST(Weights, SeveralFilesByTheirIndexAreWhatOneFileIs) {
  const Weights one(recorded("gpt2/model.safetensors"));
  const Weights several(recorded("gpt2/sharded/model.safetensors.index.json"));
  EXPECT_EQ(one.names(), several.names());
  for (const std::string& name : one.names())
    EXPECT_EQ(*one.read(name).bytes, *several.read(name).bytes) << name;
}

TEST(Weights, NamesWhatIsWrongWithAnIndex) {
  const ScratchFile index("index.json");
  const auto refused = [&](const std::string& text, const char* why) {
    index.write(text);
    const std::string message = refusal([&] { Weights weights(index.path()); });
    EXPECT_NE(message.find(why), std::string::npos) << message;
  };
  refused("{", "not an index");
  refused("[]", "not an index");
  refused(R"({"weight_map":{"a":1}})", "'a' is in 1: expected the name of a file beside");
  refused(R"({"weight_map":{"a":"../x.safetensors"}})", "expected the name of a file beside");
  refused(R"({"weight_map":{"a":"none.safetensors"}})", "is missing; restore it");
  const std::string beside =
      std::filesystem::path(index.path()).parent_path() / "orrery_x.safetensors";
  std::filesystem::copy_file(recorded("all.safetensors"), beside,
                             std::filesystem::copy_options::overwrite_existing);
  refused(R"({"weight_map":{"a":"orrery_x.safetensors"}})", "there is no tensor 'a', which");
  std::filesystem::remove(beside);
}

TEST(Weights, MutationsAreReadOrRefused) {
  const ScratchFile file("mutated.safetensors");
  const std::vector<std::string> pieces = {
      "\"", "{", "}", "[", "I64", "F8_E4M3", "99999999", "0", std::string(8, '\0')};
  const std::string whole = contents(recorded("all.safetensors"));
  for (const std::string& bytes : {whole, whole.substr(0, whole.size() - 1)})
    expect_mutations_stand(bytes, file, 300, pieces, [&] {
      const Weights weights(file.path());
      for (const std::string& name : weights.names()) weights.read(name);
    });
}

TEST(Weights, MutationsOfAnIndexAreReadOrRefused) {
  const std::string index = contents(recorded("gpt2/sharded/model.safetensors.index.json"));
  const ScratchFile file("mutated.json");
  std::vector<std::string> beside;
  for (const char* number : {"1", "2", "3"}) {
    const std::string name = std::string("model-0000") + number + "-of-00003.safetensors";
    beside.push_back(std::filesystem::path(file.path()).parent_path() / name);
    std::filesystem::copy_file(recorded("gpt2/sharded/" + name), beside.back(),
                               std::filesystem::copy_options::overwrite_existing);
  }
  file.write(index);
  EXPECT_EQ(refusal([&] { Weights weights(file.path()); }), "");
  expect_mutations_stand(index, file, 300, {"\"", "{", ":", ",", "../", "[", std::string(2, '\0')},
                         [&] { Weights weights(file.path()); });
  for (const std::string& path : beside) std::filesystem::remove(path);
}

TEST(Weights, ATransposedMatrixHasRowsForColumns) {
  HostTensor x = HostTensor::make({ORR_I32, {2, 3}});
  for (int i = 0; i < 6; ++i) x.data<int32_t>()[i] = i;
  const HostTensor y = transposed(x, "x");
  EXPECT_EQ(y.type.dims, (Dims{3, 2}));
  EXPECT_EQ(std::vector<int32_t>(y.data<int32_t>(), y.data<int32_t>() + 6),
            (std::vector<int32_t>{0, 3, 1, 4, 2, 5}));
  EXPECT_NE(refusal([] { transposed(HostTensor::make({ORR_F32, {2}}), "b"); }), "");
}

}  // namespace
}  // namespace orrery
