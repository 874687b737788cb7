// SPDX-License-Identifier: Apache-2.0
//
// NVRTC's stand-in: the host's compiler makes a library of the source, and its path is the "cubin".
#include <nvrtc.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

#include "function.h"

struct _nvrtcProgram {
  std::string source, cubin, log;
};

namespace {

namespace fs = std::filesystem;

// FAKE_NVRTC_FOLDER, where libraries stay for later processes, or one that goes with this process;
// libraries that are open stay usable.
const fs::path& folder() {
  struct Folder {
    fs::path path;
    bool kept = false;
    Folder() {
      const char* named = std::getenv("FAKE_NVRTC_FOLDER");
      std::string fresh = (fs::temp_directory_path() / "fake_nvrtc.XXXXXX").string();
      kept = named && *named;
      if (!kept && !mkdtemp(fresh.data())) std::abort();
      path = kept ? named : fresh;
      fs::create_directories(path);
    }
    ~Folder() {
      std::error_code ignored;
      if (!kept) fs::remove_all(path, ignored);
    }
  };
  static const Folder made;
  return made.path;
}

std::string with_kernels(const std::string& source) {
  static const std::regex kernel(R"(extern "C" __global__ void __launch_bounds__\(\d+\) (\w+)\()");
  const bool barriers = source.find("__syncthreads") != source.npos;
  std::string text = std::string(barriers ? "#define FAKE_BARRIERS\n" : "") +
                     "#include \"" FAKE_WORDS "\"\n" + source;
  for (std::sregex_iterator at(source.begin(), source.end(), kernel), end; at != end; ++at)
    text += "FAKE_KERNEL(" + (*at)[1].str() + ")\n";
  return text;
}

std::string read(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// FAKE_NVRTC_LOG names a file that gets a line "SOURCE BEGIN END" for each compilation of each
// process: a hash, and nanoseconds of the machine's clock.
class Logged {
 public:
  explicit Logged(const std::string& source)
      : source_(std::hash<std::string>()(source)), began_(now()) {}
  ~Logged() {
    const char* path = std::getenv("FAKE_NVRTC_LOG");
    if (!path) return;
    const std::string line =
        std::to_string(source_) + ' ' + std::to_string(began_) + ' ' + std::to_string(now()) + '\n';
    std::ofstream(path, std::ios::app) << line << std::flush;
  }
  Logged(const Logged&) = delete;

 private:
  static int64_t now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }
  size_t source_;
  int64_t began_;
};

}  // namespace

extern "C" {

const char* nvrtcGetErrorString(nvrtcResult) { return "error of the fake NVRTC"; }

nvrtcResult nvrtcGetNumSupportedArchs(int* count) {
  *count = 2;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetSupportedArchs(int* archs) {
  archs[0] = 80, archs[1] = 90;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram* program, const char* source, const char*, int,
                               const char* const*, const char* const*) {
  *program = new _nvrtcProgram{source, "", ""};
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcDestroyProgram(nvrtcProgram* program) {
  delete *program;
  return NVRTC_SUCCESS;
}

// FAKE_NVRTC_REFUSES: every program, for callers that should need none.
nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int, const char* const*) {
  if (std::getenv("FAKE_NVRTC_REFUSES")) return NVRTC_ERROR_COMPILATION;
  const Logged logged(program->source);
  const std::string text = with_kernels(program->source);
  const std::string stem =
      (folder() / std::to_string(std::hash<std::string>()(text + read(FAKE_WORDS)))).string();
  program->cubin = fake::compiled_magic + stem + ".so";
  if (fs::exists(stem + ".so")) return NVRTC_SUCCESS;
  const std::string own = stem + "." + std::to_string(getpid());  // until it is complete
  std::ofstream(own + ".cpp") << text;
  const std::string command =
      FAKE_COMPILER " -std=c++20 -O1 -ffp-contract=off -fno-math-errno -shared -fPIC -w -o " + own +
      ".so " + own + ".cpp 2> " + own + ".log";
  const bool done = std::system(command.c_str()) == 0;
  if (done)
    fs::rename(own + ".so", stem + ".so");
  else
    program->log = read(own + ".log");
  fs::remove(own + ".cpp");
  fs::remove(own + ".log");
  return done ? NVRTC_SUCCESS : NVRTC_ERROR_COMPILATION;
}

// Another one for other words.
nvrtcResult nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = static_cast<int>(std::hash<std::string>()(read(FAKE_WORDS)) & 0xffff);
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t* bytes) {
  *bytes = program->log.size() + 1;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char* to) {
  std::memcpy(to, program->log.c_str(), program->log.size() + 1);
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t* bytes) {
  *bytes = program->cubin.size() + 1;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char* to) {
  std::memcpy(to, program->cubin.c_str(), program->cubin.size() + 1);
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, size_t* bytes) {
  return nvrtcGetCUBINSize(program, bytes);
}
nvrtcResult nvrtcGetPTX(nvrtcProgram program, char* to) { return nvrtcGetCUBIN(program, to); }

}  // extern "C"
