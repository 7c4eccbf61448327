// ServerProcess: the real binary, started and stopped by a test. Uses nothing but the system.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

extern char** environ;

namespace orrery::test {

/// The key that every emulator has, and that a server without --key takes.
inline constexpr std::string_view kWellKnownKey =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

/// Waits until `condition` holds; false when it still does not after `deadline`.
template <typename Condition>
bool wait_until(Condition condition,
                std::chrono::milliseconds deadline = std::chrono::seconds(30)) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

/// From the environment (ORRERY_BINARY), else what the build made.
inline std::string orrery_binary() {
  if (const char* given = std::getenv("ORRERY_BINARY")) return given;
#ifdef ORRERY_BINARY_PATH
  return ORRERY_BINARY_PATH;
#else
  throw std::runtime_error("ORRERY_BINARY must name the binary of the server");
#endif
}

/// The output and exit code of a command of the binary.
struct CommandOutcome {
  int exit_code = -1;
  std::string output;  ///< standard output and standard error
};

/// Starts `orrery arguments…` with this as its standard output and error, and none of the ORRERY_
/// variables of the tests. The child ends with the thread that started it.
inline pid_t spawn_orrery(const std::vector<std::string>& arguments, int output, int errors) {
  std::vector<std::string> words{orrery_binary()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::vector<char*> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!std::string_view(*variable).starts_with("ORRERY_")) environment.push_back(*variable);
  }
  environment.push_back(nullptr);

  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child > 0) return child;
  // Only calls that are safe in the child of a process with many threads.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(errors, STDERR_FILENO);
  ::execve(argv[0], argv.data(), environment.data());
  ::_exit(127);
}

/// Runs a command of the binary to its end.
inline CommandOutcome run_orrery(const std::vector<std::string>& arguments) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe failed");
  const pid_t child = spawn_orrery(arguments, ends[1], ends[1]);
  ::close(ends[1]);
  CommandOutcome outcome;
  char piece[4096];
  for (ssize_t count = 0; (count = ::read(ends[0], piece, sizeof piece)) > 0;) {
    outcome.output.append(piece, static_cast<std::size_t>(count));
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

/// One server. Started by the constructor and ready when that returns; stopped by the destructor.
/// The thread that starts it must live as long as the server shall.
class ServerProcess {
 public:
  struct Options {
    std::vector<std::string> arguments;  ///< of `orrery serve`, besides data and address
    bool keeps_data = false;             ///< so that it can be started again with what it had
  };

  ServerProcess() : ServerProcess(Options()) {}
  explicit ServerProcess(Options options) : options_(std::move(options)) {
    std::string pattern = (std::filesystem::temp_directory_path() / "orrery-sdk-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    directory_ = pattern;
    start();
  }
  ~ServerProcess() {
    stop();
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  /// "http://127.0.0.1:43445/", the same after a restart.
  const std::string& endpoint() const { return endpoint_; }
  /// The same by https, which the server speaks at the same port.
  std::string secure_endpoint() const { return "https" + endpoint_.substr(4); }
  /// Where it keeps its data if it keeps_data, with the certificate that it has made for itself.
  std::filesystem::path data_directory() const { return directory_ / "data"; }
  std::string key() const { return std::string(kWellKnownKey); }
  std::string connection_string() const {
    return "AccountEndpoint=" + endpoint_ + ";AccountKey=" + key() + ";";
  }
  pid_t process() const { return process_; }
  bool running() const { return process_ > 0; }

  /// Starts it, on the port that it had before, and waits until it takes requests.
  void start() {
    if (running()) return;
    std::vector<std::string> arguments{"serve", "--listen",
                                       "127.0.0.1:" + (port_.empty() ? "0" : port_)};
    if (options_.keeps_data) {
      arguments.insert(arguments.end(), {"--data-dir", data_directory().string()});
    } else {
      arguments.push_back("--ephemeral");
    }
    arguments.insert(arguments.end(), options_.arguments.begin(), options_.arguments.end());

    const int log =
        ::open((directory_ / "log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    int ends[2];
    if (log < 0 || ::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe, or no log");
    process_ = spawn_orrery(arguments, ends[1], log);
    ::close(ends[1]);
    ::close(log);
    output_ = ends[0];
    wait_for_endpoint();
  }

  /// As an operator would. Running requests come to their end.
  void stop() { end(SIGTERM); }
  /// As a crash.
  void kill() { end(SIGKILL); }
  void restart() {
    stop();
    start();
  }
  /// It stands still, with its connections open.
  void pause() {
    ::kill(process_, SIGSTOP);
    // The signal takes its time to reach all threads.
    int status = 0;
    ::waitpid(process_, &status, WUNTRACED);
  }
  void resume() { ::kill(process_, SIGCONT); }

  /// Its standard error.
  std::string log() const {
    std::ifstream file(directory_ / "log");
    return {std::istreambuf_iterator<char>(file), {}};
  }

  /// `orrery split`; `container` is "database/container". Throws when it is refused.
  void split(const std::string& container, const std::string& range_id) const {
    command({"split", container, "--range", range_id});
  }
  /// `orrery merge` of two neighbours.
  void merge(const std::string& container, const std::string& left,
             const std::string& right) const {
    command({"merge", container, "--ranges", left, right});
  }
  /// A command of the binary that talks to this server.
  std::string command(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--endpoint", endpoint_, "--account-key", key()});
    CommandOutcome outcome = run_orrery(arguments);
    if (outcome.exit_code != 0) {
      throw std::runtime_error("orrery " + arguments.front() + ": " + outcome.output);
    }
    return std::move(outcome.output);
  }

 private:
  static constexpr std::chrono::seconds kStartMax{60};

  void wait_for_endpoint() {
    const auto end_time = std::chrono::steady_clock::now() + kStartMax;
    std::string said;
    while (true) {
      const auto begin = said.find("http://");
      if (const auto end_of_line = said.find('\n', begin);
          begin != std::string::npos && end_of_line != std::string::npos) {
        endpoint_ = said.substr(begin, said.find_first_of(" \n", begin) - begin);
        const auto colon = endpoint_.rfind(':');
        port_ = endpoint_.substr(colon + 1, endpoint_.find('/', colon) - colon - 1);
        return;
      }
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          end_time - std::chrono::steady_clock::now());
      pollfd ready{output_, POLLIN, 0};
      char piece[1024];
      const ssize_t count =
          left.count() > 0 && ::poll(&ready, 1, static_cast<int>(left.count())) > 0
              ? ::read(output_, piece, sizeof piece)
              : 0;
      if (count <= 0) {
        kill();
        throw std::runtime_error("the server did not start: " + said + log());
      }
      said.append(piece, static_cast<std::size_t>(count));
    }
  }

  void end(int signal) {
    if (!running()) return;
    ::kill(process_, signal);
    ::kill(process_, SIGCONT);
    int status = 0;
    ::waitpid(process_, &status, 0);
    process_ = -1;
    ::close(output_);
  }

  Options options_;
  std::filesystem::path directory_;
  std::string endpoint_;
  std::string port_;
  pid_t process_ = -1;
  int output_ = -1;
};

}  // namespace orrery::test
