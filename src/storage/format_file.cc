#include "storage/format_file.h"

#include <fstream>

#include <fmt/format.h>

#include "storage/durable_file.h"

namespace orrery::storage {

bool reads_format(std::string_view line) {
  return line == kFormatLine || line == kFormatLineWithGaps;
}

std::string read_format(const std::filesystem::path& directory) {
  std::ifstream in(directory / kFormatFile);
  std::string line;
  std::getline(in, line);
  return line;
}

Result<> write_format(const std::filesystem::path& directory, std::string_view line) {
  return write_durably(directory / kFormatFile, std::string(line) + "\n");
}

namespace {

Result<> check_line(const std::filesystem::path& directory) {
  const std::string line = read_format(directory);
  if (reads_format(line)) return {};
  return Error(
      ErrorCode::Unavailable,
      fmt::format("{} holds '{}', but this version reads only '{}' and '{}'. Start the version of "
                  "Orrery that made it, or point --data-dir elsewhere",
                  (directory / kFormatFile).string(), line, kFormatLine, kFormatLineWithGaps));
}

}  // namespace

Result<> check_readable(const std::filesystem::path& directory) {
  std::error_code ignored;
  if (std::filesystem::exists(directory / kFormatFile, ignored)) return check_line(directory);
  return Error(ErrorCode::Unavailable,
               fmt::format("{} holds no data of Orrery: there is no '{}' file", directory.string(),
                           kFormatFile));
}

Result<> check_format(const std::filesystem::path& directory) {
  std::error_code ignored;
  if (std::filesystem::exists(directory / kFormatFile, ignored)) return check_line(directory);
  if (!std::filesystem::exists(directory / "store", ignored)) {
    return write_format(directory, kFormatLine);
  }
  return Error(ErrorCode::Unavailable,
               fmt::format("{} has a store but no '{}' file: it was not made by Orrery, or a copy "
                           "of it is incomplete. Point --data-dir at an empty directory or restore "
                           "the file from a backup",
                           directory.string(), kFormatFile));
}

}  // namespace orrery::storage
