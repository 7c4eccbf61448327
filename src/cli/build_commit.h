// The commit that the binary was built from, written by cmake/build_commit.cmake at every build.
#pragma once

namespace orrery::cli {

/// Twelve digits, with `-dirty` behind them where the tree had changes; empty where it is not
/// known.
extern const char* const kBuildCommit;

}  // namespace orrery::cli
