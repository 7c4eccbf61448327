#include "storage/life_mark.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "storage/durable_file.h"
#include "storage/format_file.h"

namespace orrery::storage {
namespace {

constexpr std::string_view kFirstLine = "orrery life 1";
constexpr std::string_view kOwnName = "mark";
constexpr std::string_view kLifeName = "life";

/// Inode and birth of a file, as it is written in the mark. Nothing when it is not there. A file
/// system that does not know when a file was made has the inode alone.
std::optional<std::string> identity_of(const std::filesystem::path& path) {
  struct statx found{};
  if (::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_BTIME, &found) != 0) {
    return std::nullopt;
  }
  if ((found.stx_mask & STATX_BTIME) == 0) found.stx_btime = {};
  return fmt::format("{} {}.{:09}", found.stx_ino, found.stx_btime.tv_sec, found.stx_btime.tv_nsec);
}

/// A line is a name, a space, and what is said of it.
std::optional<std::pair<std::string, std::string>> parse_line(const std::string& line) {
  const auto space = line.find(' ');
  if (space == std::string::npos) return std::nullopt;
  return std::pair(line.substr(0, space), line.substr(space + 1));
}

/// Whether the store's manifest is an older one than the mark names: their numbers only rise.
bool is_behind(const std::filesystem::path& directory, std::string_view marked) {
  constexpr std::string_view kManifest = "store/MANIFEST-";
  if (!marked.starts_with(kManifest)) return false;
  std::ifstream in(directory / "store" / "CURRENT");
  std::string current;
  std::getline(in, current);
  current.insert(0, "store/");
  return std::pair(current.size(), std::string_view(current)) < std::pair(marked.size(), marked);
}

struct Mark {
  Origin origin = Origin::Unmarked;
  std::string life;
};

Mark read_mark(const std::filesystem::path& directory) {
  const auto path = directory / kLifeMarkFile;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return {};
  std::ifstream in(path);
  std::string line;
  // One that cannot be read was not written by us: to lift heads once too often does no harm.
  Mark mark{.origin = Origin::Copied, .life = {}};
  if (!std::getline(in, line) || line != kFirstLine) return mark;
  bool is_own = false;
  while (std::getline(in, line)) {
    const auto parsed = parse_line(line);
    if (!parsed) return mark;
    const auto& [name, said] = *parsed;
    if (name == kLifeName) {
      mark.life = said;
    } else if (name == kOwnName) {
      is_own = identity_of(path) == said;
    } else {
      const auto there = identity_of(directory / name);
      if (there ? *there != said : is_behind(directory, name)) return mark;
    }
  }
  if (is_own) mark.origin = Origin::Same;
  return mark;
}

}  // namespace

Origin origin_of(const std::filesystem::path& directory) { return read_mark(directory).origin; }

Result<> mark_as_copied(const std::filesystem::path& directory) {
  return write_durably(directory / kLifeMarkFile, std::string(kFirstLine) + "\n");
}

Result<> mark_directory(const std::filesystem::path& directory, const Store& store,
                        const Life& life) {
  std::string text = fmt::format("{}\n{} {}\n", kFirstLine, kLifeName, life.text());
  for (const std::string& name : store.growing_files()) {
    if (const auto identity = identity_of(directory / name)) {
      text += fmt::format("{} {}\n", name, *identity);
    }
  }
  return write_durably(directory / kLifeMarkFile, [&text](const std::filesystem::path& draft) {
    return fmt::format("{}{} {}\n", text, kOwnName, identity_of(draft).value_or("?"));
  });
}

Result<LivingStore> open_living(StoreOptions options, bool new_life, UnixSeconds now,
                                Loss* refused_loss) {
  const auto directory = options.directory;
  const Mark mark = read_mark(directory);
  if (mark.origin == Origin::Copied) {
    // A store that this version does not know is refused before anything in it is touched.
    ORRERY_TRY(check_format(directory));
    ORRERY_TRY(mark_as_copied(directory));
  }
  LivingStore living;
  auto opened = Store::open(std::move(options), &living.loss);
  if (!opened) {
    if (refused_loss != nullptr) *refused_loss = std::move(living.loss);
    return opened.error();
  }
  living.store = std::move(*opened);
  ORRERY_TRY(const auto known, find_life(*living.store));
  // A store that knows its life was marked: without its mark, or with that of another life, it is
  // part of a copy, or the server stopped between the two writes of the last new life.
  const bool is_elsewhere = known && known->text() != mark.life;
  living.has_begun =
      new_life || mark.origin == Origin::Copied || is_elsewhere || !living.loss.is_empty();
  ORRERY_TRY(living.life,
             living.has_begun ? begin_life(*living.store, now) : open_life(*living.store, now));
  ORRERY_TRY(mark_directory(directory, *living.store, living.life));
  if (!living.loss.is_empty()) ORRERY_TRY(living.store->settle_loss());
  return living;
}

}  // namespace orrery::storage
