// SPDX-License-Identifier: Apache-2.0
//
// Arrow's files (Feather) and streams, as Hugging Face's datasets writes them: messages, one behind
// the other, that are record batches. A file has a footer besides.
#include <arrow/io/file.h>
#include <arrow/ipc/api.h>

#include <cstring>

#include "chunks.h"

namespace data {
namespace {

using arrow::ipc::Message;

constexpr int64_t kFileMagic = 8;  // "ARROW1" and two zeros, before the messages of a file

template <class T>
T at(const uint8_t* place) {
  T value;
  std::memcpy(&value, place, sizeof value);
  return value;
}

// A field of a table of FlatBuffers; null if it is left out. REQUIRES: Message::Open has verified
// the tables.
const uint8_t* field(const uint8_t* table, int number) {
  const uint8_t* places = table - at<int32_t>(table);
  const int place = 4 + 2 * number;
  if (place >= at<uint16_t>(places)) return nullptr;
  const auto offset = at<uint16_t>(places + place);
  return offset ? table + offset : nullptr;
}

// What Message does not tell of a record batch: its number of rows.
int64_t rows_in(const Message& batch) {
  const uint8_t* root = batch.metadata()->data();
  const uint8_t* header = field(root + at<uint32_t>(root), 2);
  const uint8_t* length = header ? field(header + at<uint32_t>(header), 0) : nullptr;
  return length ? at<int64_t>(length) : 0;
}

arrow::ipc::IpcReadOptions single_thread() {
  auto options = arrow::ipc::IpcReadOptions::Defaults();
  options.use_threads = false;
  return options;
}

class ArrowMessages : public ChunkFile {
 public:
  ArrowMessages(const std::string& name, int64_t begin) {
    path = name;
    file_ = need(path, arrow::io::ReadableFile::Open(path));
    size_ = need(path, file_->GetSize());
    for (int64_t offset = begin; !scan(offset);) continue;
    if (!schema) refuse(path, ": the file is altered (it has no schema)");
  }

 protected:
  struct Place {
    int64_t offset;
    int32_t metadata;
  };

  Arrays chosen(const arrow::RecordBatch& batch, size_t chunk, const std::vector<int>& columns) {
    Arrays read;
    for (const int column : columns) read.push_back(batch.column(column));
    check_chunk(path, read, rows[chunk]);
    return read;
  }

  std::shared_ptr<arrow::io::RandomAccessFile> file_;
  std::vector<Place> places_;
  arrow::ipc::DictionaryMemo dictionaries_;

 private:
  [[noreturn]] void refuse_short() const {
    refuse(path, ": the file is cut short: it has no mark at its end; restore it from a copy");
  }

  // Looks at a message, and moves on to the next; true at the end.
  bool scan(int64_t& offset) {
    if (offset + 8 > size_) refuse_short();
    int32_t prefix[2];
    need(path, file_->ReadAt(offset, sizeof prefix, prefix));
    if (prefix[0] != -1)
      refuse(path, ": no message begins at byte ", offset,
             ": the file is altered, or older than Arrow 0.15; restore it or write it again");
    if (prefix[1] == 0) return true;
    const int64_t begin = offset + 8, body = begin + prefix[1];
    if (prefix[1] < 0 || body > size_) refuse_short();
    const auto message =
        need(path, Message::Open(need(path, file_->ReadAt(begin, prefix[1])), nullptr));
    if (message->body_length() < 0) refuse(path, ": the file is altered (a length below 0)");
    if (message->body_length() > size_ - body) refuse_short();
    if (message->type() == arrow::ipc::MessageType::SCHEMA && !schema)
      schema = need(path, arrow::ipc::ReadSchema(*message, &dictionaries_));
    if (message->type() == arrow::ipc::MessageType::RECORD_BATCH) {
      places_.push_back({offset, 8 + prefix[1]});
      rows.push_back(rows_in(*message));
    }
    offset = body + message->body_length();
    return false;
  }

  int64_t size_ = 0;
};

// Dictionaries, which texts of few kinds have, are known to the footer's reader alone.
class ArrowFile : public ArrowMessages {
 public:
  explicit ArrowFile(const std::string& name) : ArrowMessages(name, kFileMagic) {
    reader_ = need(path, arrow::ipc::RecordBatchFileReader::Open(file_, single_thread()));
    if (static_cast<size_t>(reader_->num_record_batches()) != rows.size())
      refuse(path, ": the file is altered (it has ", rows.size(), " batches, its footer says ",
             reader_->num_record_batches(), "); restore it from a copy");
    schema = reader_->schema();
  }

  Arrays read(size_t chunk, const std::vector<int>& columns) override {
    return chosen(*need(path, reader_->ReadRecordBatch(static_cast<int>(chunk))), chunk, columns);
  }

 private:
  std::shared_ptr<arrow::ipc::RecordBatchFileReader> reader_;
};

class ArrowStream : public ArrowMessages {
 public:
  explicit ArrowStream(const std::string& name) : ArrowMessages(name, 0) {
    for (const auto& column : schema->fields())
      if (column->type()->id() == arrow::Type::DICTIONARY)
        refuse(path, ": column '", column->name(),
               "' has a dictionary, which is read of files, not of streams: save it as Feather");
  }

  Arrays read(size_t chunk, const std::vector<int>& columns) override {
    const Place& place = places_[chunk];
    const auto message =
        need(path, arrow::ipc::ReadMessage(place.offset, place.metadata, file_.get()));
    return chosen(
        *need(path, arrow::ipc::ReadRecordBatch(*message, schema, &dictionaries_, single_thread())),
        chunk, columns);
  }
};

}  // namespace

std::unique_ptr<ChunkFile> open_arrow_file(const std::string& path) {
  return std::make_unique<ArrowFile>(path);
}

std::unique_ptr<ChunkFile> open_arrow_stream(const std::string& path) {
  return std::make_unique<ArrowStream>(path);
}

}  // namespace data
