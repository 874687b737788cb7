// SPDX-License-Identifier: Apache-2.0
#include "dcp.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <orrery/sdk/plugin.hpp>
#include <orrery/sdk/utf8.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "../refuse.h"
#include "chunk_writer.h"
#include "dcp_elements.h"
#include "metadata_writer.h"
#include "opened_checkpoint.h"
#include "pickle_writer.h"
#include "tensors.h"

namespace data {
namespace {

namespace fs = std::filesystem;
using Numbers = std::vector<int64_t>;

// An archive has less than 4 GiB; whoever reads one may hold all of it in memory.
constexpr int64_t kMostBytes = int64_t{1} << 30;

// A path in the checkpoint's directory: the folder of the save, and the file.
std::string path_in_checkpoint(const std::string& file) {
  const fs::path path(file);
  return (path.parent_path().filename() / path.filename()).string();
}

void check_name(const std::string& name) {
  bool is_fine = is_printable(name) && !name.empty();
  for (size_t at = 0; is_fine && at < name.size();) {
    const size_t bytes = orr::code_point(name, at).bytes;
    is_fine = bytes > 0, at += bytes;
  }
  if (!is_fine)
    refuse("a tensor's name is empty, no UTF-8, or holds control characters: '", name, "'");
}

// -- what a writer tells of its chunks, a line for each
void put(std::ostream& line, const Numbers& numbers) {
  line << '\t' << numbers.size();
  for (int64_t number : numbers) line << ' ' << number;
}
Numbers numbers_in(std::istream& line) {
  size_t count = 0;
  line >> count;
  Numbers numbers(count);
  for (int64_t& number : numbers) line >> number;
  return numbers;
}

class Shard {
 public:
  explicit Shard(const std::string& prefix) : file_(prefix + "0.distcp") {}

  // Writes a box whole, or in parts along its first dim that has several indices.
  void add(const orr_box& box, const TorchElements& kind, Numbers offset, Numbers dims,
           const char* elements) {
    int64_t bytes = kind.bytes;
    size_t d = 0;
    for (int64_t dim : dims) bytes *= dim;
    while (d < dims.size() && dims[d] == 1) ++d;
    if (bytes <= kMostBytes || d == dims.size()) return write(box, kind, offset, dims, elements);
    const int64_t all = dims[d], row = bytes / all, most = std::max<int64_t>(1, kMostBytes / row);
    for (int64_t begin = 0; begin < all; begin += most) {
      Numbers place = offset;
      place[d] += begin, dims[d] = std::min(most, all - begin);
      add(box, kind, place, dims, elements + begin * row);
    }
  }
  std::string finish() {
    if (writer_) writer_->finish();
    return text_.str();
  }

 private:
  void write(const orr_box& box, const TorchElements& kind, const Numbers& offset,
             const Numbers& dims, const char* elements) {
    if (!writer_) writer_.emplace(file_);
    const uint64_t begin = writer_->bytes();
    writer_->tensor(kind, dims, elements);
    text_ << kind.dtype;
    put(text_, {box.whole.dims, box.whole.dims + box.whole.rank});
    put(text_, offset);
    put(text_, dims);
    text_ << '\t' << begin << '\t' << writer_->bytes() - begin << '\t' << path_in_checkpoint(file_)
          << '\t' << box.name << '\n';
  }

  std::string file_;
  std::optional<ChunkWriter> writer_;
  std::ostringstream text_;
};

void add_line(const std::string& text, std::map<std::string, WrittenTensor>& tensors) {
  std::istringstream line(text);
  std::string dtype, name;
  std::getline(line, dtype, '\t');
  const Numbers whole = numbers_in(line);
  WrittenChunk chunk{numbers_in(line), {}, {}};
  chunk.sizes = numbers_in(line);
  line >> chunk.place.begin >> chunk.place.bytes >> chunk.place.path;
  line.ignore();
  std::getline(line, name);
  WrittenTensor& tensor = tensors.try_emplace(name, WrittenTensor{dtype, whole, {}}).first->second;
  tensor.chunks.push_back(std::move(chunk));
}

// The facts of the run, each written to the file.
class Facts {
 public:
  explicit Facts(const std::string& file) : path_(path_in_checkpoint(file)), writer_(file) {}

  void add(const char* name, int64_t number) {
    PickleWriter pickle;
    pickle.number(number);
    add(name, pickle);
  }
  void add(const char* name, const char* text) {
    PickleWriter pickle;
    pickle.text(text);
    add(name, pickle);
  }
  std::vector<WrittenValue> finish() {
    writer_.finish();
    return values_;
  }

 private:
  void add(const char* name, const PickleWriter& pickle) {
    const uint64_t begin = writer_.bytes();
    writer_.value(pickle.bytes());
    values_.push_back({"orrery", name, {path_, begin, writer_.bytes() - begin}});
  }

  std::string path_;
  ChunkWriter writer_;
  std::vector<WrittenValue> values_;
};

// -- the table
orr_status* write(void*, const char* prefix, const orr_boxes* boxes, orr_give_bytes* give,
                  void* to) {
  return orr::guard([&] {
    Shard shard(prefix);
    for (uint64_t i = 0; i < boxes->count; ++i) {
      orr_box box{};
      box.size = sizeof box;
      boxes->box(boxes->self, i, &box);
      check_name(box.name);
      const TorchElements* kind = torch_elements(box.whole.dtype);
      if (!kind)
        refuse("'", box.name,
               "' has a dtype that is not written to checkpoints of PyTorch; save "
               "in Orrery's own format");
      const void* elements = nullptr;
      orr::check(boxes->bytes(boxes->self, i, &elements));
      shard.add(box, *kind, {box.offset, box.offset + box.whole.rank},
                {box.dims, box.dims + box.whole.rank}, static_cast<const char*>(elements));
    }
    const std::string text = shard.finish();
    give(to, text.data(), text.size());
  });
}

orr_status* complete(void*, const char* prefix, const orr_run_facts* facts,
                     const char* const* texts, uint64_t n, orr_give_bytes* give, void* to) {
  return orr::guard([&] {
    std::map<std::string, WrittenTensor> tensors;
    for (uint64_t i = 0; i < n; ++i) {
      std::istringstream lines(texts[i]);
      for (std::string line; std::getline(lines, line);) add_line(line, tensors);
    }
    Facts written(std::string(prefix) + "0.distcp");
    written.add("step", facts->step);
    written.add("seed", static_cast<int64_t>(facts->seed));
    written.add("microbatches", facts->microbatches);
    written.add("fast_sums", facts->fast_sums);
    written.add("extra", facts->extra);
    const std::vector<WrittenValue> values = written.finish();
    for (const WrittenValue& value : values)
      if (tensors.contains(value.outer + "." + value.inner))
        refuse("a tensor is called '", value.outer, ".", value.inner,
               "', as a fact of the run is here; give it another name");
    const std::string metadata = metadata_of(tensors, values);
    give(to, metadata.data(), metadata.size());
  });
}

int32_t serves(void*, const char* directory) {
  std::error_code ignored;
  return fs::exists(fs::path(directory) / ".metadata", ignored);
}

OpenedCheckpoint& of(orr_checkpoint* opened) {
  return *reinterpret_cast<OpenedCheckpoint*>(opened);
}

orr_status* open(void*, const char* directory, orr_checkpoint** out) {
  return orr::guard(
      [&] { *out = reinterpret_cast<orr_checkpoint*>(new OpenedCheckpoint(directory)); });
}
orr_status* facts(orr_checkpoint* opened, orr_run_facts* out) {
  return orr::guard([&] { of(opened).facts(out); });
}
orr_status* tensors(orr_checkpoint* opened, orr_give_tensor* give, void* to) {
  return orr::guard([&] { of(opened).tensors(give, to); });
}
orr_status* files(void*, const char* directory, orr_give_name* give, void* to) {
  return orr::guard([&] {
    for (const std::string& path : checkpoint_files(directory)) give(to, path.c_str());
  });
}
orr_status* read(orr_checkpoint* opened, const char* name, const int64_t* offset,
                 const int64_t* dims, void* to) {
  return orr::guard([&] { of(opened).read(name, offset, dims, to); });
}
void close(orr_checkpoint* opened) { delete &of(opened); }

}  // namespace

const orr_checkpoint_api dcp_table = {sizeof(orr_checkpoint_api),
                                      nullptr,
                                      "dcp",
                                      ".metadata",
                                      write,
                                      complete,
                                      serves,
                                      files,
                                      open,
                                      facts,
                                      tensors,
                                      read,
                                      close};

}  // namespace data
