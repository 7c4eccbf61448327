// The life of a store: a stretch of its history in which LSNs are dense and no change was lost.
//
// A data directory that is put back from a copy, or that lost acknowledged writes, goes on from an
// older state. Readers hold positions beyond its heads then, and session tokens, and none of them
// may ever hide a new change. So a new life begins: every head is lifted above all LSNs that any
// earlier life can have given out, and the distance is noted in the head as a gap. A position of
// an earlier life thus lies below everything that is new.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "protocol/ids.h"

namespace orrery::storage {

class Store;

/// Value of the key `l` in `catalog`.
///   offset 0   size 1   format version           offset 17   size 8   second in which it began
///   offset 1   size 8   number                   offset 25   size 16  id
///   offset 9   size 8   first LSN
struct Life {
  using Id = std::array<std::uint8_t, 16>;

  std::uint64_t number = 1;  ///< counts the lives of the store, from 1
  /// The head that every partition began this life with, and that containers begin with that are
  /// made in it.
  Lsn first_lsn{1};
  UnixSeconds began = 0;
  Id id{};  ///< drawn at random: two copies of a store go on in different lives

  /// Number and id, `2-` and 32 hex digits: as readers of the change feed are told.
  std::string text() const;

  static std::optional<Life> parse(std::string_view value);
  std::string make() const;
  bool operator==(const Life&) const = default;
};

inline constexpr std::string_view kLifeKey = "l";

/// Clients read LSNs into JavaScript's numbers.
inline constexpr std::uint64_t kLsnMax = (std::uint64_t{1} << 53) - 1;
/// A new life begins above the second in which it begins, times this. A partition does not take so
/// many writes in a second, so a copy that is put back a second time begins above the first time.
inline constexpr std::uint64_t kLsnsPerSecondMax = std::uint64_t{1} << 20;
/// And by so much above all heads that are known, where the clock is wrong.
inline constexpr std::uint64_t kLsnLiftMin = std::uint64_t{1} << 32;

/// The life that the store is in; nothing when it was made before there were lives, or just now.
/// Blocks. Unavailable when it cannot be read, or is of a later format.
Result<std::optional<Life>> find_life(const Store& store);

/// The life that the store is in. A store that was made before there were lives, or just now, gets
/// its first one. Blocks. Unavailable when the disk refuses or the value is of a later format.
Result<Life> open_life(Store& store, UnixSeconds now);

/// Begins a new life: in one synced write it is counted, gets an id, and all heads are lifted.
/// Nothing else may be using the store. Blocks. Unavailable when the disk refuses, or when no LSNs
/// are left; then the store is as it was.
Result<Life> begin_life(Store& store, UnixSeconds now);

}  // namespace orrery::storage
