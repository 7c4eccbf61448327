// DeadLetterFile: a file of JSON lines for changes that could not be delivered.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "base/file_descriptor.h"
#include "base/result.h"
#include "orrery/processor.h"

namespace orrery::sinks {

/// One dead letter per line, each durable. Thread-safe.
class DeadLetterFile {
 public:
  /// Appends to a file that exists. Unavailable when it can't be written.
  static Result<std::shared_ptr<DeadLetterFile>> open(const std::string& path);

  /// Throws when the letter could not be written: the document then comes again.
  void append(const processor::DeadLetter& letter);

 private:
  explicit DeadLetterFile(FileDescriptor file) : file_(std::move(file)) {}

  std::mutex mutex_;  // Guards what follows.
  FileDescriptor file_;
  bool is_torn_ = false;  // The last line has no end.
};

}  // namespace orrery::sinks
