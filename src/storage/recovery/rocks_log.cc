#include "storage/recovery/rocks_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <rocksdb/file_checksum.h>

#include "storage/keys.h"

namespace orrery::storage {
namespace {

constexpr std::size_t kHeaderSize = 7;
constexpr std::size_t kReusedHeaderSize = 11;
constexpr std::uint8_t kReusedTypes = 4;  // Added to a type in a file that was used before.

enum class Part : std::uint8_t { Whole = 1, First = 2, Middle = 3, Last = 4 };

/// With the processor's instruction for it, where there is one.
std::uint32_t masked_crc(std::string_view bytes) {
  static const auto factory = rocksdb::GetFileChecksumGenCrc32cFactory();
  const auto generator = factory->CreateFileChecksumGenerator({});
  generator->Update(bytes.data(), bytes.size());
  generator->Finalize();
  const std::uint32_t crc = read_u32(generator->GetChecksum().data());
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8;
}

std::uint32_t read_little_u32(const char* at) {
  std::uint32_t value;
  std::memcpy(&value, at, 4);
  return value;
}

struct Fragment {
  Part part;
  std::string_view payload;
  std::size_t end;  ///< offset of the byte behind it
};

class Reader {
 public:
  Reader(std::string_view file, const RocksLogVisitor& visitor) : file_(file), visitor_(visitor) {}

  void run(std::size_t at) {
    while (at < file_.size()) {
      const std::size_t block_end = end_of_block(at);
      if (block_end - at < kHeaderSize) {
        at = block_end;
        continue;
      }
      const auto fragment = fragment_at(at);
      if (!fragment) {
        at = resume(is_open_ ? begin_ : at, at, describe(at));
      } else if (!follows(fragment->part)) {
        // The fragment itself is sound: something before it is missing.
        const bool begins = fragment->part == Part::Whole || fragment->part == Part::First;
        bad(is_open_ ? begin_ : at, "a part of a record is missing");
        is_open_ = false;
        at = begins ? at : fragment->end;
      } else {
        take(*fragment, at);
        at = fragment->end;
      }
    }
    if (is_open_) bad(begin_, "the record is cut off");
  }

 private:
  std::size_t end_of_block(std::size_t at) const {
    return (at / kRocksLogBlockSize + 1) * kRocksLogBlockSize;
  }

  /// A fragment whose checksum holds.
  std::optional<Fragment> fragment_at(std::size_t at) const {
    const std::size_t end = std::min(end_of_block(at), file_.size());
    if (end - at < kHeaderSize) return {};
    const auto type = static_cast<std::uint8_t>(file_[at + 6]);
    if (type < 1 || type > 2 * kReusedTypes) return {};
    const bool is_reused = type > kReusedTypes;
    const std::size_t header = is_reused ? kReusedHeaderSize : kHeaderSize;
    const std::size_t size = payload_size(at);
    if (end - at < header + size) return {};
    const std::string_view checked = file_.substr(at + 6, header - 6 + size);
    if (masked_crc(checked) != read_little_u32(file_.data() + at)) return {};
    return Fragment{static_cast<Part>(is_reused ? type - kReusedTypes : type),
                    file_.substr(at + header, size), at + header + size};
  }

  std::size_t payload_size(std::size_t at) const {
    std::uint16_t size;
    std::memcpy(&size, file_.data() + at + 4, 2);
    return size;
  }

  std::string_view describe(std::size_t at) const {
    const std::size_t end = std::min(end_of_block(at), file_.size());
    if (end - at < kHeaderSize) return "the record is cut off";
    if (file_.substr(at, kHeaderSize).find_first_not_of('\0') == std::string_view::npos) {
      return "zeros where a record should be";
    }
    if (end - at < kHeaderSize + payload_size(at)) return "the record reaches beyond its block";
    return "the checksum does not hold";
  }

  bool follows(Part part) const { return is_open_ == (part == Part::Middle || part == Part::Last); }

  void take(const Fragment& fragment, std::size_t at) {
    switch (fragment.part) {
      case Part::Whole:
        visitor_.record(fragment.payload, at, fragment.end);
        return;
      case Part::First:
        is_open_ = true;
        begin_ = at;
        record_.assign(fragment.payload);
        return;
      case Part::Middle:
        record_.append(fragment.payload);
        return;
      case Part::Last:
        record_.append(fragment.payload);
        is_open_ = false;
        visitor_.record(record_, begin_, fragment.end);
        return;
    }
  }

  void bad(std::size_t offset, std::string_view why) const {
    if (visitor_.bad) visitor_.bad(offset, why);
  }

  /// Reports the bad place, and finds where a record may begin behind it. The size of what is bad
  /// is tried first: it may be sound.
  std::size_t resume(std::size_t reported, std::size_t at, std::string_view why) {
    bad(reported, why);
    is_open_ = false;
    if (file_.size() - at >= kHeaderSize) {
      const std::size_t next = at + kHeaderSize + payload_size(at);
      if (next < std::min(end_of_block(at), file_.size()) && fragment_at(next)) return next;
    }
    for (++at; at < file_.size(); ++at) {
      if (fragment_at(at)) return at;
    }
    return at;
  }

  const std::string_view file_;
  const RocksLogVisitor& visitor_;
  bool is_open_ = false;  // Between the first part of a record and its last.
  std::size_t begin_ = 0;
  std::string record_;
};

}  // namespace

void visit_rocks_log(std::string_view file, const RocksLogVisitor& visitor, std::size_t from) {
  Reader(file, visitor).run(from);
}

std::size_t sound_size(std::string_view file, std::size_t from) {
  std::size_t size = from;
  bool is_sound = true;
  visit_rocks_log(file,
                  {[&](std::string_view, std::size_t, std::size_t end) {
                     if (is_sound) size = end;
                   },
                   [&](std::size_t, std::string_view) { is_sound = false; }},
                  from);
  return size;
}

bool has_odd_header(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  bool is_odd = false;
  std::string bytes(32 * kRocksLogBlockSize, '\0');
  for (off_t from = 0; !is_odd;) {
    const ssize_t size = ::pread(file, bytes.data(), bytes.size(), from);
    if (size <= 0) break;
    from += size;
    const auto end = static_cast<std::size_t>(size);
    // A header begins every block.
    for (std::size_t block = 0; block < end && !is_odd; block += kRocksLogBlockSize) {
      const std::size_t block_end = std::min(block + kRocksLogBlockSize, end);
      for (std::size_t at = block; at + kHeaderSize <= block_end && !is_odd;) {
        const auto type = static_cast<std::uint8_t>(bytes[at + 6]);
        is_odd = type == 0 || (type > kReusedTypes && type <= 2 * kReusedTypes);
        std::uint16_t payload;
        std::memcpy(&payload, bytes.data() + at + 4, 2);
        at += kHeaderSize + payload;
      }
    }
  }
  ::close(file);
  return is_odd;
}

std::size_t end_of_record(std::size_t file_size, std::size_t record_size) {
  std::size_t at = file_size;
  do {
    std::size_t room = kRocksLogBlockSize - at % kRocksLogBlockSize;
    if (room < kHeaderSize) {
      at += room;
      room = kRocksLogBlockSize;
    }
    const std::size_t part = std::min(record_size, room - kHeaderSize);
    at += kHeaderSize + part;
    record_size -= part;
  } while (record_size > 0);
  return at;
}

void append_rocks_log(std::string& file, std::string_view record) {
  bool is_first = true;
  bool is_last = false;
  while (!is_last) {
    std::size_t room = kRocksLogBlockSize - file.size() % kRocksLogBlockSize;
    if (room < kHeaderSize) {
      file.append(room, '\0');
      room = kRocksLogBlockSize;
    }
    const std::string_view payload = record.substr(0, room - kHeaderSize);
    record.remove_prefix(payload.size());
    is_last = record.empty();
    const Part part =
        is_first ? (is_last ? Part::Whole : Part::First) : (is_last ? Part::Last : Part::Middle);
    is_first = false;
    std::string checked(1, static_cast<char>(part));
    checked.append(payload);
    const std::uint32_t crc = masked_crc(checked);
    const auto size = static_cast<std::uint16_t>(payload.size());
    file.append(reinterpret_cast<const char*>(&crc), 4);
    file.append(reinterpret_cast<const char*>(&size), 2);
    file.append(checked);
  }
}

Result<std::string> read_bytes(const std::filesystem::path& path, std::uint64_t from) {
  const auto failed = [&] {
    return Error(ErrorCode::Unavailable,
                 fmt::format("cannot read {}: {}", path.string(), std::strerror(errno)));
  };
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return failed();
  std::string bytes;
  // Most files are small, and some do not tell their size.
  constexpr std::size_t kPieceMin = 4 << 10;
  constexpr std::size_t kPieceMax = 1 << 20;
  for (;;) {
    const std::size_t before = bytes.size();
    const std::size_t piece = std::clamp(before, kPieceMin, kPieceMax);
    bytes.resize(before + piece);
    const ssize_t size =
        ::pread(file, bytes.data() + before, piece, static_cast<off_t>(from + before));
    if (size < 0) {
      const auto error = failed();
      ::close(file);
      return error;
    }
    bytes.resize(before + static_cast<std::size_t>(size));
    if (size == 0) break;
  }
  ::close(file);
  return bytes;
}

}  // namespace orrery::storage
