#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/file_checksum.h>

#include "base/file_descriptor.h"
#include "storage/handle.h"
#include "storage/store.h"

namespace orrery::storage {
namespace {

constexpr std::size_t kPieceBytes = 1 << 20;

using Table = rocksdb::LiveFileMetaData;

std::string path_of(const Table& table) { return table.db_path + table.name; }

/// Its blocks against the checksums behind them, but for the parts of a filter.
std::string fault_of_blocks(const std::string& path) {
  rocksdb::ReadOptions reading;
  reading.readahead_size = 2 << 20;
  const auto status =
      rocksdb::VerifySstFileChecksum(rocksdb::Options(), rocksdb::EnvOptions(), reading, path);
  return status.ok() ? "" : status.ToString();
}

/// All its bytes against the checksum that the MANIFEST has. Empty also when it was enough.
std::string fault_of_file(const Table& table, rocksdb::FileChecksumGenerator& generator,
                          const std::function<bool()>& go_on) {
  const FileDescriptor file(::open(path_of(table).c_str(), O_RDONLY | O_CLOEXEC));
  std::vector<char> piece(kPieceBytes);
  ssize_t size = file.is_open() ? 1 : -1;
  while (size > 0) {
    size = ::read(file.number(), piece.data(), piece.size());
    if (size > 0) generator.Update(piece.data(), static_cast<std::size_t>(size));
    if (!go_on()) return "";
  }
  if (size < 0) return fmt::format("cannot be read: {}", std::strerror(errno));
  generator.Finalize();
  if (generator.GetChecksum() == table.file_checksum) return "";
  return "its bytes do not have the checksum that they were written with";
}

std::string fault_of(const Table& table, const std::function<bool()>& go_on) {
  const auto factory = rocksdb::GetFileChecksumGenCrc32cFactory();
  const auto generator = factory->CreateFileChecksumGenerator({});
  if (table.file_checksum_func_name != generator->Name()) return fault_of_blocks(path_of(table));
  return fault_of_file(table, *generator, go_on);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> damaged_tables(
    const std::filesystem::path& directory) {
  std::vector<std::pair<std::string, std::string>> damaged;
  std::error_code failure;
  for (const auto& each : std::filesystem::directory_iterator(directory / "store", failure)) {
    if (each.path().extension() != ".sst") continue;
    auto fault = fault_of_blocks(each.path().string());
    if (!fault.empty()) {
      damaged.emplace_back("store/" + each.path().filename().string(), std::move(fault));
    }
  }
  return damaged;
}

void Store::verify_tables(
    const std::function<bool()>& go_on,
    const std::function<void(const std::string& table, const std::string& why)>& tell) const {
  const auto handle = wait_for_handle();
  if (!handle) return;
  const auto live_tables = [&] {
    std::vector<Table> tables;
    handle->db->GetLiveFilesMetaData(&tables);
    return tables;
  };
  for (const Table& table : live_tables()) {
    if (!go_on()) return;
    const std::string fault = fault_of(table, go_on);
    if (fault.empty()) continue;
    // A compaction may have replaced it meanwhile.
    const auto now = live_tables();
    const bool is_live = std::ranges::any_of(
        now, [&](const Table& each) { return each.file_number == table.file_number; });
    if (is_live) tell("store" + table.name, fault);
  }
}

}  // namespace orrery::storage
