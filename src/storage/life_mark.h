// The file `life` in the data directory: tells the directory that the server ran in from a copy of
// it.
//
//   orrery life 1
//   life 2-7f3c…                                  the life that the store was in
//   store/MANIFEST-000012 1311040 1794787405.91…  inode and birth of files of the store that change
//   store/000015.log 1311041 1794787405.93…       as long as it is written to
//   mark 1311022 1794787406.118273645             and of this file itself
//
// It is written anew, as another file, whenever the store was opened. A copy has other inodes and
// births, whether tar, rsync or cp made it, and so has a directory that one was copied back into:
// rsync leaves alone what has not changed, and cp writes into the file that is there, but this file
// has changed with every start, and the others with what was written. Renaming keeps all of them.
#pragma once

#include <filesystem>

#include "base/clock.h"
#include "base/result.h"
#include "storage/life.h"
#include "storage/loss.h"
#include "storage/store.h"

namespace orrery::storage {

inline constexpr const char* kLifeMarkFile = "life";

enum class Origin {
  Unmarked,  ///< there is no mark: a new directory, one of an older version, or part of a copy
  Same,      ///< the directory is the one that was marked
  Copied,
};

/// The origin that the mark tells. Look before the store is opened, which replaces files. Blocks.
Origin origin_of(const std::filesystem::path& directory);

/// Makes origin_of() say Copied until mark_directory() is called: opening the store may remove what
/// it was told by. Durable when it returns. Blocks. Unavailable when the disk refuses.
Result<> mark_as_copied(const std::filesystem::path& directory);

/// Marks the directory of an open store. Durable when it returns. Blocks. Unavailable when the disk
/// refuses.
Result<> mark_directory(const std::filesystem::path& directory, const Store& store,
                        const Life& life);

/// The store in the life that it is in now.
struct LivingStore {
  std::unique_ptr<Store> store;
  Life life;
  bool has_begun = false;  ///< a new life: a copy, a loss that was accepted, or it was asked for
  Loss loss;               ///< that was accepted
};

/// Opens the store. Begins a new life when the directory is a copy of the one that was marked, when
/// acknowledged writes are lost and the options accept that, and when `new_life` asks for one.
/// Blocks. Errors as Store::open, which tells `refused_loss` what is missing.
Result<LivingStore> open_living(StoreOptions options, bool new_life, UnixSeconds now,
                                Loss* refused_loss = nullptr);

}  // namespace orrery::storage
