// @name@: files of f32 numbers and nothing else, `width` of them in a sample. See orrery/data.h for
// what a reader says of its datasets.
#include <orrery/sdk/data.hpp>

#include <cstring>
#include <fstream>
#include <iterator>

namespace {

class Numbers : public orr::Dataset {
 public:
  Numbers(const std::string& path, int64_t width) : bytes_(4 * static_cast<size_t>(width)) {
    std::ifstream file(path, std::ios::binary);
    all_.assign(std::istreambuf_iterator<char>(file), {});
    if (all_.empty()) throw orr::Error(ORR_INVALID, path + ": cannot be read, or is empty");
    if (all_.size() % bytes_)
      throw orr::Error(ORR_INVALID, path + ": no whole number of samples; check `width`");
    fields = {{"x", {width}, "<f4"}};
    samples = static_cast<int64_t>(all_.size() / bytes_);
    slow = false;
  }

  void read(const int64_t* wanted, int64_t n, void* const* to) const override {
    auto* x = static_cast<char*>(to[0]);
    for (int64_t i = 0; x && i < n; ++i, x += bytes_)
      std::memcpy(x, &all_[static_cast<size_t>(wanted[i]) * bytes_], bytes_);
  }

 private:
  size_t bytes_;  // of a sample
  std::vector<char> all_;
};

std::unique_ptr<orr::Dataset> open(const std::string& path, const orr::DataOptions& options) {
  const int64_t width = options.integer("width", 1);
  if (width < 1 || width > 1 << 20) throw orr::Error(ORR_INVALID, "@name@: width is 1 to 2^20");
  return std::make_unique<Numbers>(path, width);
}

using Table = orr::Reader<open>;

}  // namespace

ORR_PLUGIN(ORR_KIND_DATA, "@name@", "0.1.0", "Files of f32 numbers", Table::entry, 1,
           {{"data", 1, 1}})
