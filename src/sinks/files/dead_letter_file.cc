#include "sinks/files/dead_letter_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>

#include "json/lines.h"

namespace orrery::sinks {

Result<std::shared_ptr<DeadLetterFile>> DeadLetterFile::open(const std::string& path) {
  FileDescriptor file(::open(path.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0666));
  if (!file.is_open()) {
    return Error(ErrorCode::Unavailable,
                 fmt::format("cannot write {}: {}", path, std::strerror(errno)));
  }
  return std::shared_ptr<DeadLetterFile>(new DeadLetterFile(std::move(file)));
}

void DeadLetterFile::append(const processor::DeadLetter& letter) {
  const std::string text = letter.to_json();
  const std::string_view view = text;
  std::string line = json::lines({&view, 1});
  const std::scoped_lock lock(mutex_);
  // A torn line, of a disk that was full, must not spoil this one.
  if (is_torn_) line.insert(0, "\n");
  const ssize_t written = ::write(file_.number(), line.data(), line.size());
  is_torn_ = written != static_cast<ssize_t>(line.size());
  if (is_torn_ || ::fsync(file_.number()) != 0) {
    throw std::runtime_error(
        fmt::format("the file of dead letters can't be written: {}", std::strerror(errno)));
  }
}

}  // namespace orrery::sinks
