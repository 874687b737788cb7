// SPDX-License-Identifier: Apache-2.0
//
// The binary files of CIFAR-10 and CIFAR-100, also packed by gzip or zstd: records of one label
// byte (two for CIFAR-100: coarse and fine) and 3 x 32 x 32 bytes. The option `classes` is 10 or
// 100.
#include "formats.h"
#include "refuse.h"
#include "rows.h"

namespace data {
namespace {

constexpr size_t kImage = size_t{3} * 32 * 32;

// A record begins with labels; each is below its number of classes.
struct Label {
  const char* field;
  unsigned char classes;
};

// All labels are looked at: a file of the other kind may have a fitting size.
void check_labels(const Bytes& bytes, uint64_t record, const std::vector<Label>& labels) {
  std::vector<unsigned char> read(labels.size());
  for (uint64_t i = 0; i < bytes.size() / record; ++i) {
    bytes.read(read.data(), read.size(), i * record);
    for (size_t k = 0; k < labels.size(); ++k)
      if (read[k] >= labels[k].classes)
        refuse(bytes.label(), ": record ", i, " has the label ", int{read[k]}, ", below ",
               int{labels[k].classes}, " expected: the file is altered, or classes is wrong");
  }
}

std::unique_ptr<orr::Dataset> open(const std::string& path, const orr::DataOptions& options) {
  const int64_t classes = options.integer("classes", 10);
  if (classes != 10 && classes != 100) refuse("cifar: classes is ", classes, ": 10 or 100");
  std::vector<Label> labels{{"y", 10}};
  if (classes == 100) labels = {{"coarse", 20}, {"y", 100}};
  const BytesPtr bytes = open_unpacked(path);
  refuse_formats(*bytes, "records of CIFAR: give the .bin files of the binary version");
  const uint64_t record = labels.size() + kImage;
  if (bytes->size() == 0 || bytes->size() % record)
    refuse(path, ": ", bytes->size(), " bytes are no whole number of records of ", record,
           ": the file is cut short, or classes is wrong");
  check_labels(*bytes, record, labels);
  std::vector<Column> columns{
      {{"x", {3, 32, 32}, "|u1", ORR_F32, true}, bytes, labels.size(), record, kImage}};
  for (size_t k = 0; k < labels.size(); ++k)
    columns.push_back({{labels[k].field, {}, "|u1", ORR_I32}, bytes, k, record, 1});
  return std::make_unique<Rows>(columns, static_cast<int64_t>(bytes->size() / record));
}

}  // namespace
}  // namespace data

ORR_PLUGIN(ORR_KIND_DATA, "cifar", "0.1.0", "Binary files of CIFAR-10 and CIFAR-100",
           orr::Reader<data::open>::entry, 1, {{"data", 1, 1}})
