#include "sinks/exec/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fmt/format.h>

extern char** environ;

namespace orrery::sinks {
namespace {

using Clock = std::chrono::steady_clock;

/// Between asking a group to end and ending it.
constexpr std::chrono::milliseconds kTermGrace{2000};
constexpr std::size_t kReadBytes = 64 << 10;

Error failed(std::string_view what, int error) {
  return Error(ErrorCode::Unavailable, fmt::format("cannot {}: {}", what, std::strerror(error)));
}

struct Pipe {
  FileDescriptor read;
  FileDescriptor write;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return failed("make a pipe", errno);
  return Pipe{FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

void set_nonblocking(const FileDescriptor& end) {
  ::fcntl(end.number(), F_SETFL, ::fcntl(end.number(), F_GETFL) | O_NONBLOCK);
}

/// Ours, with those of `added` in the place of their namesakes.
std::vector<char*> environment_with(const std::vector<std::string>& added) {
  std::vector<char*> all;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view variable(*each);
    const std::string_view name = variable.substr(0, variable.find('=') + 1);
    bool replaced = false;
    for (const std::string& other : added) replaced = replaced || other.starts_with(name);
    if (!replaced) all.push_back(*each);
  }
  for (const std::string& each : added) all.push_back(const_cast<char*>(each.c_str()));
  all.push_back(nullptr);
  return all;
}

int poll_time(Clock::time_point deadline) {
  if (deadline == Clock::time_point::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1 << 30));
}

/// The arguments of posix_spawn, with an owner.
struct SpawnPlan {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;

  SpawnPlan(int input, int output) {
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    // Closes our sockets, and pipes of other children, which would not see their end otherwise.
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setpgroup(&attributes, 0);
    sigset_t signals;
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes, &signals);
    sigaddset(&signals, SIGPIPE);
    posix_spawnattr_setsigdefault(&attributes, &signals);
    posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
};

}  // namespace

void ProcessGroups::add(pid_t group) {
  const std::scoped_lock lock(mutex_);
  groups_.insert(group);
}

void ProcessGroups::remove(pid_t group) {
  const std::scoped_lock lock(mutex_);
  groups_.erase(group);
}

void ProcessGroups::kill_all() {
  const std::scoped_lock lock(mutex_);
  for (const pid_t group : groups_) ::kill(-group, SIGKILL);
}

Result<std::unique_ptr<ChildProcess>> ChildProcess::start(const std::string& command,
                                                          const std::vector<std::string>& variables,
                                                          std::shared_ptr<ProcessGroups> groups) {
  ORRERY_TRY(auto input, make_pipe());
  ORRERY_TRY(auto output, make_pipe());
  std::vector<char*> environment = environment_with(variables);
  std::array<std::string, 3> words = {"sh", "-c", command};
  std::array<char*, 4> arguments = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  const SpawnPlan plan(input.read.number(), output.write.number());
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, "/bin/sh", &plan.actions, &plan.attributes,
                                  arguments.data(), environment.data());
  if (error != 0) return failed("start /bin/sh", error);
  FileDescriptor watch(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  const int watch_error = errno;
  groups->add(pid);
  const bool watched = watch.is_open();
  set_nonblocking(input.write);
  set_nonblocking(output.read);
  std::unique_ptr<ChildProcess> child(new ChildProcess(
      pid, std::move(watch), std::move(input.write), std::move(output.read), std::move(groups)));
  if (!watched) return failed("watch a child process", watch_error);
  return child;
}

ChildProcess::ChildProcess(pid_t pid, FileDescriptor watch, FileDescriptor input,
                           FileDescriptor output, std::shared_ptr<ProcessGroups> groups)
    : pid_(pid),
      watch_(std::move(watch)),
      input_(std::move(input)),
      output_(std::move(output)),
      groups_(std::move(groups)) {}

ChildProcess::~ChildProcess() {
  if (reaped_) return;
  ::kill(-pid_, SIGKILL);
  reap();
}

ChildProcess::Ending ChildProcess::exchange(std::string_view input, bool close_input,
                                            const Limits& limits, const Take& take) {
  if (reaped_) return Ending::Exited;
  const auto begin = Clock::now();
  auto deadline = limits.time_max.count() > 0 ? begin + limits.time_max : Clock::time_point::max();
  bool stopping = false;
  const FileDescriptor wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const std::stop_callback ring(limits.stop, [&wake] {
    const std::uint64_t one = 1;
    (void)!::write(wake.number(), &one, sizeof one);
  });
  while (true) {
    if (input.empty() && close_input) input_.close();
    std::array<pollfd, 4> waits = {
        pollfd{input.empty() ? -1 : input_.number(), POLLOUT, 0},
        pollfd{output_.number(), POLLIN, 0},
        pollfd{watch_.number(), POLLIN, 0},
        pollfd{stopping ? -1 : wake.number(), POLLIN, 0},
    };
    ::poll(waits.data(), waits.size(), poll_time(deadline));
    if (waits[0].revents != 0) write_some(input);
    if (waits[1].revents != 0 && read_some(take)) return Ending::Satisfied;
    if (waits[2].revents != 0) {
      // Reads the rest of its output, without waiting for other processes that hold the pipe.
      while (output_.is_open()) {
        pollfd left{output_.number(), POLLIN, 0};
        if (::poll(&left, 1, 0) != 1) break;
        if (read_some(take)) return Ending::Satisfied;
      }
      reap();
      return Ending::Exited;
    }
    if (waits[3].revents != 0) {
      stopping = true;
      deadline = std::min(deadline, Clock::now() + limits.grace);
    }
    if (Clock::now() >= deadline) {
      kill_group();
      return stopping ? Ending::Stopped : Ending::TimedOut;
    }
  }
}

void ChildProcess::write_some(std::string_view& input) {
  const ssize_t count = ::write(input_.number(), input.data(), input.size());
  if (count >= 0) {
    input.remove_prefix(static_cast<std::size_t>(count));
  } else if (errno != EAGAIN && errno != EINTR) {
    input_.close();  // It does not want to read on.
    input = {};
  }
}

bool ChildProcess::read_some(const Take& take) {
  std::array<char, kReadBytes> room;
  const ssize_t count = ::read(output_.number(), room.data(), room.size());
  if (count > 0) return take(std::string_view(room.data(), static_cast<std::size_t>(count)));
  if (count == 0 || (errno != EAGAIN && errno != EINTR)) output_.close();
  return false;
}

void ChildProcess::finish(std::chrono::milliseconds grace) {
  if (reaped_) return;
  input_.close();
  output_.close();
  if (wait_for_exit(grace)) {
    reap();
  } else {
    kill_group();
  }
}

bool ChildProcess::wait_for_exit(std::chrono::milliseconds time) {
  const auto deadline = Clock::now() + time;
  pollfd wait{watch_.number(), POLLIN, 0};
  do {
    if (::poll(&wait, 1, poll_time(deadline)) == 1) return true;
  } while (Clock::now() < deadline);
  return false;
}

void ChildProcess::kill_group() {
  ::kill(-pid_, SIGTERM);
  wait_for_exit(kTermGrace);
  // Also when the first of the group has gone: others may not have.
  ::kill(-pid_, SIGKILL);
  reap();
}

void ChildProcess::reap() {
  groups_->remove(pid_);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  reaped_ = true;
  input_.close();
  output_.close();
  if (WIFEXITED(status)) {
    status_ = {WEXITSTATUS(status), fmt::format("exit code {}", WEXITSTATUS(status))};
  } else {
    status_ = {std::nullopt, fmt::format("killed by signal {}", WTERMSIG(status))};
  }
}

}  // namespace orrery::sinks
