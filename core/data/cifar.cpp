// SPDX-License-Identifier: Apache-2.0
#include "data/cifar.h"

#include "base/error.h"
#include "data/columns.h"
#include "data/joined.h"
#include "data/pixels.h"

namespace orrery {
namespace {

constexpr uint64_t kImage = 3 * 32 * 32;

// A record begins with labels; each is below its number of classes.
struct Label {
  const char* field;
  uint8_t classes;
};

// All labels are looked at: a file of the other kind may have a fitting size.
void check_labels(const Bytes& bytes, uint64_t record, const std::vector<Label>& labels) {
  std::vector<std::byte> read(labels.size());
  for (uint64_t i = 0; i < bytes.size() / record; ++i) {
    bytes.read(read.data(), read.size(), i * record);
    for (size_t k = 0; k < labels.size(); ++k)
      if (static_cast<uint8_t>(read[k]) >= labels[k].classes)
        fail(ORR_INVALID,
             "{}: record {} has the label {}, below {} expected: the file is altered, "
             "or classes is wrong",
             bytes.label(), i, static_cast<int>(read[k]), labels[k].classes);
  }
}

DatasetPtr cifar_file(const std::string& path, const std::vector<Label>& labels, int32_t dtype) {
  const Bytes bytes = open_bytes(path);
  const uint64_t record = labels.size() + kImage;
  if (bytes.size() == 0 || bytes.size() % record)
    fail(ORR_INVALID,
         "{}: {} bytes are no whole number of records of {}: the file is cut short, "
         "or classes is wrong",
         path, bytes.size(), record);
  check_labels(bytes, record, labels);
  std::vector<Column> columns{
      {{"x", {dtype, {3, 32, 32}}}, bytes, pixels({Stored::u8}, dtype), labels.size(), record}};
  for (size_t k = 0; k < labels.size(); ++k)
    columns.push_back({{labels[k].field, {ORR_I32, {}}}, bytes, {Stored::u8}, k, record});
  return std::make_shared<Columns>(columns, static_cast<int64_t>(bytes.size() / record));
}

}  // namespace

DatasetPtr cifar_files(const std::vector<std::string>& paths, int64_t classes, int32_t dtype) {
  if (classes != 10 && classes != 100)
    fail(ORR_INVALID, "cifar: classes is {}: 10 or 100", classes);
  std::vector<Label> labels{{"y", 10}};
  if (classes == 100) labels = {{"coarse", 20}, {"y", 100}};
  std::vector<DatasetPtr> parts;
  for (const std::string& path : paths) parts.push_back(cifar_file(path, labels, dtype));
  return join(parts, paths);
}

}  // namespace orrery
