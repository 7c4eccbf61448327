// orrery keygen: makes an account key.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/connection.h"
#include "protocol/auth/account_key.h"

namespace orrery::cli {
namespace {

/// A new file for the owner only. One that is there is left alone: its key may be in use.
Result<> write_new_file(const std::string& path, const std::string& text) {
  const int file = ::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  if (file < 0) {
    return Error(ErrorCode::Unavailable,
                 fmt::format("cannot make {}: {}", path, std::strerror(errno)));
  }
  const bool written =
      ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      ::fsync(file) == 0;
  const int failure = errno;
  ::close(file);
  if (written) return {};
  ::unlink(path.c_str());
  return Error(ErrorCode::Unavailable,
               fmt::format("cannot write {}: {}", path, std::strerror(failure)));
}

Result<> run(const std::string& file) {
  ORRERY_TRY(const auto key, make_account_key());
  if (!file.empty()) return write_new_file(file, key + "\n");
  fmt::print("{}\n", key);
  return {};
}

}  // namespace

void add_keygen(CLI::App& app, int& exit_code) {
  auto file = std::make_shared<std::string>();
  auto* keygen = app.add_subcommand("keygen", "Make an account key and print it on one line");
  keygen->add_option("--file", *file,
                     "Write it to this new file, which only you can read, instead; for 'orrery "
                     "serve --key-file'");
  keygen->callback([file, &exit_code] {
    if (const auto outcome = run(*file); !outcome) exit_code = complain(outcome.error());
  });
}

}  // namespace orrery::cli
