// SPDX-License-Identifier: Apache-2.0
#include "launch/launch_hosts.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "launch/affinity.h"
#include "launch/environment.h"
#include "launch/host_probe.h"
#include "launch/restarts.h"
#include "launch/socket.h"
#include "launch/supervisor.h"
#include "launch/token.h"

namespace orrery {
namespace {

// The text as one quoted word for a shell.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

// The environment variables that ranks on all hosts get: our settings, those about threads, and
// where to meet. Other variables stay those of each host.
std::vector<std::string> variables_for(const JobHost& first) {
  std::vector<std::string> out;
  for (char** e = environ; *e; ++e) {
    const std::string_view entry(*e);
    const bool ours =
        entry.starts_with("ORRERY_") || entry.starts_with("OMP_") || entry.starts_with("NO_COLOR=");
    if (ours && !is_foreign(entry) && !entry.starts_with(token_variable)) out.emplace_back(entry);
  }
  out.push_back("MASTER_ADDR=" + first.name.substr(first.name.find('@') + 1));
  out.push_back("MASTER_PORT=" + choose_port());
  out.push_back(std::string(token_variable) + "=" + new_token());
  return out;
}

int ranks_of(const std::vector<JobHost>& hosts) {
  int ranks = 0;
  for (const JobHost& host : hosts) ranks += host.slots;
  return ranks;
}

// The hosts of `all` that are not in `others`.
std::vector<JobHost> without(const std::vector<JobHost>& all, const std::vector<JobHost>& others) {
  std::vector<JobHost> found;
  for (const JobHost& host : all)
    if (std::none_of(others.begin(), others.end(),
                     [&](const JobHost& other) { return other.name == host.name; }))
      found.push_back(host);
  return found;
}

class HostsLauncher : public Supervisor {
 public:
  // `lost`: hosts that this start leaves out. Once one is back, ranks are told to stop (SIGUSR1),
  // so that they save, and the job can start again with it.
  HostsLauncher(Front& front, const HostsOptions& options, const std::vector<JobHost>& lost);
  ~HostsLauncher() override {
    for (int fd : controls_) close(fd);
  }
  // Those that could be reached to the end. REQUIRES: run() has returned.
  std::vector<JobHost> hosts_left() const;
  // Whether the launchers of all hosts have begun.
  bool all_began() const;
  // Those that are back, for which the ranks were told to stop.
  const std::vector<JobHost>& hosts_back() const { return back_; }

 protected:
  void start() override;
  void look() override;
  void pass_on(const Child& child, int signal) override;
  bool ended_badly(size_t child) override;
  int tell(size_t child) override;

 private:
  void start_host(const JobHost& host, const std::string& orders);
  std::string remedy(const Child& child) const;

  const HostsOptions& options_;
  std::vector<std::pair<JobHost, HostProbe>> lost_;
  std::vector<JobHost> back_;
  std::vector<int> controls_;  // by host: the socket whose other end its launcher reads
};

std::vector<std::string> arguments_of(const std::string& command) {
  std::istringstream text(command);
  std::vector<std::string> arguments;
  for (std::string one; text >> one;) arguments.push_back(one);
  return arguments;
}

HostsLauncher::HostsLauncher(Front& front, const HostsOptions& options,
                             const std::vector<JobHost>& lost)
    : Supervisor(front), options_(options) {
  for (const JobHost& host : lost) {
    std::vector<std::string> command = arguments_of(options.remote_shell);
    command.insert(command.end(), {host.name, "true"});
    lost_.emplace_back(host, HostProbe(std::move(command)));
  }
  if (!lost.empty()) look_within_ = static_cast<int>(deadline_ns() / 1000000);
}

void HostsLauncher::look() {
  if (!back_.empty()) return;
  for (auto& [host, probe] : lost_)
    if (probe.is_back()) back_.push_back(host);
  if (back_.empty()) return;
  say(fmt::format("orrery: host {} is back: the ranks save and start again with it",
                  back_.front().name));
  for (const Child& c : children_)
    if (c.running) pass_on(c, SIGUSR1);
}

void HostsLauncher::start() {
  int first = 0;
  nlohmann::json orders = {{"directory", std::filesystem::current_path().string()},
                           {"world_size", ranks_of(options_.hosts)},
                           {"job", new_job_name()},
                           {"argv", options_.argv},
                           {"threads", options_.threads},
                           {"pin", {pinning().on, pinning().asked}},
                           {"variables", variables_for(options_.hosts.front())}};
  for (const JobHost& host : options_.hosts) {
    orders["host"] = host.name;
    orders["ranks"] = host.slots;
    orders["first_rank"] = first;
    start_host(host, orders.dump() + "\n");
    first += host.slots;
  }
}

void HostsLauncher::start_host(const JobHost& host, const std::string& orders) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
    fail(ORR_FAILED, "launcher: no socket for {}: {} (see ulimit -n)", host.name,
         std::strerror(errno));
  controls_.push_back(pair[0]);
  ChildSpec spec{
      static_cast<int>(controls_.size()) - 1, "", {}, {}, {}, {}, "", verdict_mark, pair[1]};
  spec.argv = arguments_of(options_.remote_shell);
  spec.program = spec.argv.front();
  spec.argv.insert(spec.argv.end(),
                   {host.name, fmt::format("exec {} run --as-host {}", quoted(own_program()),
                                           quoted(options_.title))});
  for (char** e = environ; *e; ++e) spec.env.emplace_back(*e);
  children_.push_back(start_child(spec, front_));
  close(pair[1]);
  const timeval patience{10, 0};
  setsockopt(pair[0], SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  send(pair[0], orders.data(), orders.size(),
       MSG_NOSIGNAL);  // if the shell is gone already, its end will be noticed
}

void HostsLauncher::pass_on(const Child& child, int signal) {
  const std::string line = std::to_string(signal) + "\n";
  send(controls_[static_cast<size_t>(child.rank)], line.data(), line.size(),
       MSG_NOSIGNAL | MSG_DONTWAIT);
}

// If a host's launcher has not begun, no ranks were started there, and those of other hosts would
// wait for them: all are killed. That is a failure even if the exit code is 0, as on a host that
// runs another command instead.
bool HostsLauncher::ended_badly(size_t child) {
  Child& c = children_[child];
  for (LinePrefixer& o : c.output) o.pump(true);
  if (c.output.back().kept()) return c.code != 0;
  kill_all();
  return true;
}

bool HostsLauncher::all_began() const {
  return std::all_of(children_.begin(), children_.end(),
                     [](const Child& child) { return child.output.back().kept().has_value(); });
}

std::vector<JobHost> HostsLauncher::hosts_left() const {
  std::vector<JobHost> left;
  for (const Child& child : children_) {
    const bool begun = child.output.back().kept().has_value();
    const bool killed = child.signal == SIGKILL;  // by us, when another had failed
    if (killed || (begun && child.code != 255))
      left.push_back(options_.hosts[static_cast<size_t>(child.rank)]);
  }
  return left;
}

// What the user can do, by exit codes of ssh and of shells. A program that ends with another code
// has printed what is wrong.
std::string HostsLauncher::remedy(const Child& child) const {
  const std::string& shell = options_.remote_shell;
  const std::string& host = options_.hosts[static_cast<size_t>(child.rank)].name;
  if (child.code == 255)
    return fmt::format(
        ": '{0} {1} true' must work and ask nothing; for ssh, accept the host's key once by hand "
        "(ssh {1}), and leave yours there (ssh-copy-id {1})",
        shell, host);
  if (child.code == 126 || child.code == 127)
    return fmt::format(": it takes '{}' here and {} there", shell, own_program());
  if (child.code == 0)
    return ": what ran there was not Orrery: does the host allow this key one command only?";
  return "";
}

// Prints the line of the host's launcher that says what happened. If there is none, prints the last
// line that came from the host, which may be the remote shell's.
int HostsLauncher::tell(size_t child) {
  const Child& c = children_[child];
  const LinePrefixer& errors = c.output.back();
  const bool begun = errors.kept().has_value(), lost = begun && c.code == 255;
  if (begun && !errors.kept()->empty()) {
    say(*errors.kept());
    return c.code;
  }
  const JobHost& host = options_.hosts[child];
  const std::string& last = errors.last_line();
  say(fmt::format(
      "orrery: {}: host {}: {}{} ({}{}){}", host.where, host.name, lost ? "lost: " : "",
      last.empty() ? "no word from there" : last,
      c.signal ? fmt::format("killed by signal {}", c.signal) : fmt::format("exit code {}", c.code),
      after_signal(), begun ? "" : remedy(c)));
  if (c.signal || (begun && !lost)) return c.code;
  return lost ? ORR_RETRY : ORR_UNAVAILABLE;
}

// Reads the orders: one line. It is read byte by byte, because the signals behind it are read later
// by another function. A terminal is refused: it would echo the token (ssh -tt).
std::string read_orders() {
  std::string line;
  for (char c; line.empty() || line.back() != '\n'; line += c) {
    pollfd ready{0, POLLIN, 0};
    if (isatty(0) || poll(&ready, 1, static_cast<int>(deadline_ns() / 1000000)) <= 0 ||
        read(0, &c, 1) != 1)
      fail(ORR_INVALID,
           "run --as-host is started by 'orrery run --hosts FILE', which tells it what to do on "
           "its stdin, which is no terminal (ssh -T)");
  }
  return line;
}

}  // namespace

std::string default_remote_shell() {
  const int64_t seconds = deadline_ns() / 1000000000;
  return fmt::format("ssh -T -o BatchMode=yes -o ConnectTimeout={} -o ServerAliveInterval={}",
                     std::max<int64_t>(seconds, 1), std::max<int64_t>(seconds / 3, 1));
}

int launch_hosts(const HostsOptions& options) {
  if (options.remote_shell.find_first_not_of(' ') == std::string::npos)
    fail(ORR_INVALID,
         "--remote-shell '': name a command that takes a host and a command, such as ssh");
  HostsOptions now = options;
  const std::string name = new_job_name();
  Front front;
  int start = 0;
  for (Restarts restarts(options.restarts);;) {
    set_job_start({name, ++start});
    HostsLauncher launcher(front, now, without(options.hosts, now.hosts));
    const int code = launcher.run();
    if (code == ORR_RETRY && launcher.has_lost_ranks(code) &&
        !launcher.hosts_back().empty()) {  // counts as no restart
      now.hosts =
          without(options.hosts, without(without(options.hosts, now.hosts), launcher.hosts_back()));
      continue;
    }
    const std::vector<JobHost> hosts = launcher.hosts_left();
    const bool fewer = hosts.size() < now.hosts.size();
    // At the first start a host that cannot be reached is a mistake; later it may have been lost.
    if (restarts.left() == 0 || front.signals.told() ||
        !(launcher.has_lost_ranks(code) || (fewer && restarts.left() < options.restarts)))
      return front.finish(code);
    now.hosts = options.min_ranks > 0 && fewer && ranks_of(hosts) >= options.min_ranks
                    ? hosts
                    : options.hosts;
    if (now.hosts.size() < options.hosts.size())
      front.say(fmt::format("orrery: on {} of {} ranks: {} of {} hosts are left",
                            ranks_of(now.hosts), ranks_of(options.hosts), now.hosts.size(),
                            options.hosts.size()));
    const auto lasted = launcher.all_began() ? launcher.lasted() : Supervisor::Clock::duration{0};
    if (const int signal = restarts.use_one(lasted, front)) return front.finish(128 + signal);
  }
}

int launch_as_host() {
  const nlohmann::json orders = nlohmann::json::parse(read_orders());
  LaunchOptions options;
  HostPart part;
  orders.at("argv").get_to(options.argv);
  orders.at("ranks").get_to(options.ranks);
  orders.at("threads").get_to(options.threads);
  orders.at("host").get_to(part.host);
  pinning() = {orders.at("pin").at(0), orders.at("pin").at(1)};
  orders.at("job").get_to(part.job);
  orders.at("first_rank").get_to(part.first_rank);
  orders.at("world_size").get_to(part.world_size);
  // These overrule the host's own settings.
  for (const std::string entry : orders.at("variables")) {
    const size_t sign = entry.find('=');
    setenv(entry.substr(0, sign).c_str(), entry.c_str() + sign + 1, 1);
  }
  part.control = 0;
  const std::string directory = orders.at("directory");
  if (chdir(directory.c_str()) != 0)
    fail(ORR_INVALID, "there is no directory {} ({}): run where all hosts have the same files",
         directory, std::strerror(errno));
  options.part = std::move(part);
  fmt::print(stderr, "{}\n", verdict_mark);
  return launch(options);
}

}  // namespace orrery
