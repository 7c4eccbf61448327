// A lease store for the processes of one machine: a directory with one file per document.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <boost/asio/thread_pool.hpp>

#include "base/clock.h"
#include "processor/leases/lease_store.h"

namespace orrery::processor {

/// A document is the file of its id, in which everything but letters, digits and `-=_` is written
/// `%XX`, with ".json" behind it:
///
///   line 1     the version, and the `ts` in seconds, as decimal numbers with a blank between them
///   the rest   the text of the document
///
/// Files are written beside and renamed, so that a reader sees the old text or the new. Writers
/// exclude each other by flock on the file "lock", which also holds the last version that was
/// given: 20 digits. So no etag appears twice, even of a document that was deleted and made again.
///
/// Thread-safe. Not for network file systems that know no flock.
class FileLeaseStore final : public AsyncLeaseStore {
 public:
  /// Makes the directory with the first document.
  explicit FileLeaseStore(std::filesystem::path directory);
  /// `clock` outlives it, and gives the `ts` of documents.
  FileLeaseStore(std::filesystem::path directory, const Clock& clock);

  Async<std::vector<StoredDocument>> list(std::string prefix) override;
  Async<StoredDocument> read(std::string id) override;
  Async<StoredDocument> create(std::string id, std::string text) override;
  Async<StoredDocument> replace(std::string id, std::string text, std::string etag) override;
  Async<> remove(std::string id, std::string etag) override;

 private:
  // These block.
  Result<std::vector<StoredDocument>> list_now(const std::string& prefix) const;
  Result<StoredDocument> read_now(const std::string& id) const;
  Result<StoredDocument> write_now(const std::string& id, const std::string& text,
                                   const std::optional<std::string>& etag);
  Result<> remove_now(const std::string& id, const std::string& etag);
  Result<std::filesystem::path> path_of(const std::string& id) const;

  SystemClock machine_clock_;
  const Clock& clock_;
  std::filesystem::path directory_;
  asio::thread_pool pool_;  // Last: its threads use what is above.
};

}  // namespace orrery::processor
