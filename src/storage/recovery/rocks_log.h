// The file format that RocksDB's write-ahead log and its MANIFEST share, read by ourselves: RocksDB
// says that something is wrong with such a file, but not where, nor what comes after it.
//
//   A file is a row of blocks of 32 KiB. A block is a row of fragments; where fewer than 7 bytes
//   are left in it they mean nothing. A record is one fragment, or several over as many blocks.
//
//   A fragment, integers little-endian:
//     offset 0   size 4   CRC32C of all after the size, masked
//     offset 4   size 2   size of the payload
//     offset 6   size 1   type: 1 a whole record, 2 its first part, 3 a middle one, 4 its last;
//                         5 to 8 the same in a file that was used before
//     offset 7   size 4   number of the file, only in types 5 to 8
//     then                the payload
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace orrery::storage {

inline constexpr std::size_t kRocksLogBlockSize = 32 << 10;

/// Told in the order of the file.
struct RocksLogVisitor {
  /// A whole record whose checksums hold, the offset at which it begins, and where it ends.
  std::function<void(std::string_view record, std::size_t begin, std::size_t end)> record;
  /// The bytes from here on are not what was written, up to the next record if there is one.
  std::function<void(std::size_t offset, std::string_view why)> bad = {};
};

/// Reads a file from a place at which a record begins. Past a bad place it goes on with the next
/// whole record whose checksums hold, wherever it begins.
void visit_rocks_log(std::string_view file, const RocksLogVisitor& visitor, std::size_t from = 0);

/// Where the last record ends before which nothing is bad.
std::size_t sound_size(std::string_view file, std::size_t from = 0);

/// Whether a header in the file has a type that RocksDB takes for the end of the log, or steps
/// over, without a word: zero, or one of files that are used again, as ours never are. Reads the
/// headers only. Blocks. False when it cannot be read: RocksDB will say so.
bool has_odd_header(const std::filesystem::path& path);

/// Where a record of that size ends that is appended to a file of that size.
std::size_t end_of_record(std::size_t file_size, std::size_t record_size);

/// For tests: the record as RocksDB would append it to a file of that content.
void append_rocks_log(std::string& file, std::string_view record);

/// The whole file, or what there is of it from `from` on. Blocks. Unavailable with its name.
Result<std::string> read_bytes(const std::filesystem::path& path, std::uint64_t from = 0);

}  // namespace orrery::storage
