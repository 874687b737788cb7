// SPDX-License-Identifier: Apache-2.0
#include "product_cache.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <orrery/sdk/plugin.hpp>

#include "blas.h"
#include "device.h"

namespace orr_cuda {
namespace {

std::string digits_of(const cublasLtMatmulAlgo_t& algorithm) {
  static const char digits[] = "0123456789abcdef";
  unsigned char bytes[sizeof algorithm];
  std::memcpy(bytes, &algorithm, sizeof algorithm);
  std::string text;
  for (unsigned char b : bytes) text += digits[b >> 4], text += digits[b & 15];
  return text;
}

std::filesystem::path folder() {
  const char* named = std::getenv("XDG_CACHE_HOME");
  if (named && *named) return std::filesystem::path(named) / "orrery";
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home && *home ? home : "/tmp") / ".cache/orrery";
}

// "NVIDIA H200, driver 13000, cuBLASLt 130100", in characters that file names have.
std::string machine() {
  char name[64] = "";
  int version = 0;
  check(driver().cuDeviceGetName(name, sizeof name, opened().device), "cuDeviceGetName");
  check(driver().cuDriverGetVersion(&version), "cuDriverGetVersion");
  std::string text = std::string(name) + "-driver-" + std::to_string(version) + "-cublaslt-" +
                     std::to_string(blas().cublasLtGetVersion());
  for (char& c : text)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '-';
  return text;
}

}  // namespace

ProductCache& ProductCache::get() {
  static ProductCache only;
  return only;
}

ProductCache::ProductCache() : path_(folder() / ("products-" + machine() + ".txt")) { read(); }

void ProductCache::read() {
  std::ifstream in(path_);
  for (std::string line; std::getline(in, line);) {
    const size_t middle = line.find(" = ");
    if (middle != std::string::npos)
      found_.insert_or_assign(line.substr(0, middle), line.substr(middle + 3));
  }
}

bool ProductCache::holds(const std::string& shape, const cublasLtMatmulAlgo_t& algorithm) const {
  const auto at = found_.find(shape);
  return at != found_.end() && at->second == digits_of(algorithm);
}

void ProductCache::keep(const std::string& shape, const cublasLtMatmulAlgo_t& algorithm) {
  const std::string line = shape + " = " + digits_of(algorithm) + "\n";
  found_.insert_or_assign(shape, digits_of(algorithm));
  std::error_code ignored;
  std::filesystem::create_directories(folder(), ignored);
  const int file = open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  const bool written =
      file >= 0 && write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  const std::string why = std::strerror(errno);
  if (file >= 0) close(file);
  if (written || told_) return;
  told_ = true;
  orr::host->log(ORR_LOG_WARN, ("cuda: " + path_ + ": " + why +
                                "; products are measured again next time: "
                                "name a folder that can be written with XDG_CACHE_HOME")
                                   .c_str());
}

}  // namespace orr_cuda
