// SPDX-License-Identifier: Apache-2.0
#include "settings.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>

#include "conformance/comm/bodies.h"
#include "conformance/comm/peer.h"

namespace comm_suite {
namespace {

// How foreign launchers are called, and what makes them run more ranks than cores, as any user. The
// last two keep the libraries from looking for PCI devices, OpenCL and displays: half of a start.
struct Launcher {
  const char* name;
  std::vector<const char*> words;
};
const std::vector<Launcher>& launchers() {
  static const std::vector<Launcher> all = {
      {"orrery", {}},
      {"mpirun.openmpi", {"mpirun.openmpi", "--oversubscribe", "--bind-to", "none"}},
      {"mpiexec.mpich", {"mpiexec.mpich"}}};
  return all;
}
constexpr const char* launcher_variables[][2] = {
    {"OMPI_ALLOW_RUN_AS_ROOT", "1"},        {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
    {"OMPI_MCA_oob_tcp_if_include", "lo"},  {"OMPI_MCA_btl", "self,vader"},
    {"HWLOC_PLUGINS_PATH", "/nonexistent"}, {"HWLOC_COMPONENTS", "-linuxio,-pci"}};

const Launcher& find(const std::string& name) {
  return *std::find_if(launchers().begin(), launchers().end(),
                       [&](const Launcher& l) { return l.name == name; });
}

bool is_installed(const std::string& program) {
  std::istringstream path(std::getenv("PATH"));
  for (std::string place; std::getline(path, place, ':');)
    if (access((place + "/" + program).c_str(), X_OK) == 0) return true;
  return false;
}

// The backend whose library has a fake here, and the variables that name the library.
#ifdef FAKE_NCCL
constexpr const char *faked = "nccl", *fake_library = FAKE_NCCL;
#else
constexpr const char *faked = "", *fake_library = "";
#endif
constexpr const char* library_variables[] = {"ORRERY_CUDA_LIBRARY", "ORRERY_NCCL_LIBRARY"};

constexpr const char *bare_variable = "COMM_TEST_BARE", *apart_variable = "COMM_TEST_APART";

// The launcher as a child in place of ours; the ranks are this program again.
[[noreturn]] void become(const Launcher& launcher, int n, const std::string& body,
                         const std::string& argument, const std::vector<std::string>& env) {
  for (const auto& [name, value] : launcher_variables) setenv(name, value, 1);
  // An MPI library keeps memory when it ends, and its code is gone when leaks are looked for.
  if (!launcher.words.empty()) setenv("LSAN_OPTIONS", "detect_leaks=0", 1);
  for (const std::string& entry : env) {
    const size_t equals = entry.find('=');
    setenv(entry.substr(0, equals).c_str(), entry.substr(equals + 1).c_str(), 1);
  }
  char self[4096];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  self[std::max<ssize_t>(length, 0)] = 0;
  const std::string ranks = std::to_string(n);
  std::vector<const char*> words = launcher.words;
  for (const char* word : {"-n", ranks.c_str(), static_cast<const char*>(self), "--body",
                           body.c_str(), argument.c_str()})
    words.push_back(word);
  words.push_back(nullptr);
  execvp(words[0], const_cast<char* const*>(words.data()));
  std::perror(words[0]);
  _exit(1);
}

ranks::Outcome run_under(const Launcher& launcher, int n, const std::string& body,
                         const std::string& argument, const std::vector<std::string>& env) {
  const auto begin = std::chrono::steady_clock::now();
  const int out = memfd_create("output", 0);
  fcntl(out, F_SETFL, O_APPEND);
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(out, 1);
    dup2(out, 2);
    dup2(open("/dev/null", O_RDONLY), 0);
    become(launcher, n, body, argument, env);
  }
  ranks::Outcome outcome = ranks::finish({pid, out});
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return outcome;
}

const Body probe("probe", [](const std::string& backend, const std::string&) {
  orr_comm_caps caps{};
  caps.size = sizeof caps;
  char reason[256] = "";
  const orr_comm_api& api = orrery::Registry::get().comm(backend);
  if (!api.probe(api.self, &caps, reason, sizeof reason)) fail(ORR_UNAVAILABLE, "{}", reason);
  return 0;
});

std::string ask(const Setting& s) {
  if (const auto& words = find(s.launcher).words; !words.empty() && !is_installed(words.front()))
    return std::string(words.front()) + " is not installed";
  const ranks::Outcome outcome = run(s, 1, "probe");
  if (outcome.code == 0) return "";
  if (outcome.output.find("comm '" + s.backend + "'") == std::string::npos &&
      outcome.output.find("rank 0: ") == std::string::npos)
    ADD_FAILURE() << s << " gives no reason: " << outcome.output;
  return s.backend + " under " + s.launcher + ": " + outcome.output.substr(0, 400);
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Setting& s) {
  return out << (s.fake.empty() ? "" : "fake ") << s.backend << " under " << s.launcher
             << (s.hosts.empty() ? "" : ", hosts " + s.hosts) << (s.apart ? ", apart" : "")
             << (s.bare ? ", messages only" : "");
}

std::string name_of(const Setting& s) {
  std::string name = (s.fake.empty() ? "" : "fake_") + s.backend + "_" + s.launcher +
                     (s.hosts.empty() ? "" : "_hosts_" + s.hosts) + (s.apart ? "_apart" : "") +
                     (s.bare ? "_messages_only" : "");
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
}

std::vector<Setting> settings() {
  std::vector<Setting> all;
  for (const std::string& backend : orrery::Registry::get().names(ORR_KIND_COMM))
    for (const Launcher& launcher : launchers()) {
      if (backend != "null") all.push_back({.backend = backend, .launcher = launcher.name});
      if (backend == faked)
        all.push_back({.backend = backend, .launcher = launcher.name, .fake = fake_library});
    }
  for (const char* hosts : {"aabb", "abcde"})
    all.push_back({.backend = "local", .launcher = "orrery", .hosts = hosts});
  all.push_back({.backend = "local", .launcher = "orrery", .apart = true});
  return all;
}

std::string why_not(const Setting& s) {
  static std::map<std::string, std::string> known;
  const std::string name = name_of(s);
  if (!known.count(name)) known[name] = ask(s);
  return known[name];
}

bool is_main(const Setting& s) {
  return s.launcher == "orrery" ||
         !why_not({.backend = s.backend, .launcher = "orrery", .fake = s.fake}).empty();
}

ranks::Outcome run(const Setting& s, int n, const std::string& body, const std::string& argument,
                   const std::vector<std::string>& variables) {
  std::vector<std::string> env = variables;
  for (const char* name : library_variables)
    if (!s.fake.empty()) env.push_back(std::string(name) + "=" + s.fake);
  const std::string words = s.backend + " " + argument;
  if (!s.hosts.empty()) env.push_back("ORRERY_TEST_HOSTS=" + s.hosts);
  if (s.apart) env.push_back(std::string(apart_variable) + "=1");
  if (s.bare) env.push_back(std::string(bare_variable) + "=1");
  if (s.launcher == "orrery") return ranks::run(n, body, words, env);
  return run_under(find(s.launcher), n, body, words, env);
}

void BesidesTheJudge::SetUp() {
  OnMain::SetUp();
  const Setting& s = GetParam();
  if (!IsSkipped() && name_of(s) == name_of({.backend = s.backend, .launcher = "orrery"}))
    GTEST_SKIP() << "the judge of plugins asks";
}

std::vector<int> sizes(const Setting& s, int fewest) {
  std::vector<int> all;
  for (int n = 1; n <= 5; ++n) {
    const std::string hosts = s.hosts.substr(0, static_cast<size_t>(n));
    if (n >= fewest && (hosts.empty() || hosts.find_first_not_of(hosts[0]) != std::string::npos))
      all.push_back(n);
  }
  return all;
}

namespace {

// From here on the kernel lets no thread of this process read or write another one's memory, as
// kernels do that restrict ptrace.
void forbid_reaching_peers() {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{sizeof code / sizeof *code, code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
      syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter))
    fail(ORR_FAILED, "cannot forbid process_vm_readv and process_vm_writev: {}",
         std::strerror(errno));
}

}  // namespace

Body::Body(const char* name, int (*run)(const std::string&, const std::string&)) {
  const ranks::Body body(name, [run](const std::string& words) {
    Peer::only_messages = std::getenv(bare_variable);
    if (std::getenv(apart_variable)) forbid_reaching_peers();
    const size_t blank = words.find(' ');
    return run(words.substr(0, blank), words.substr(blank + 1));
  });
}

// Those that the judge of plugins has, too.
const std::vector<Body> judged = [] {
  std::vector<Body> registered;
  for (const NamedBody& body : all_bodies()) registered.emplace_back(body.name, body.run);
  return registered;
}();

const auto names = [](const testing::TestParamInfo<Setting>& info) { return name_of(info.param); };
INSTANTIATE_TEST_SUITE_P(Backends, Everywhere, testing::ValuesIn(settings()), names);
INSTANTIATE_TEST_SUITE_P(Backends, OnMain, testing::ValuesIn(settings()), names);
INSTANTIATE_TEST_SUITE_P(Backends, BesidesTheJudge, testing::ValuesIn(settings()), names);
INSTANTIATE_TEST_SUITE_P(Backends, Failing, testing::ValuesIn(settings()), names);

}  // namespace comm_suite
