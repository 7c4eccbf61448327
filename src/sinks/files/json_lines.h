// JsonLinesSink: writes changes into files of JSON lines, each change into exactly one of them.
//
//   DIR/0-00000000000000000000.jsonl    the changes of lease 0 from that position on, complete
//   DIR/0-00000000000000004711.jsonl    the next one begins where it ended
//   DIR/.orrery/0/17/                   staging directory of the owner with epoch 17:
//     part                              the file that is being written
//     newest                            the file last renamed into its place, from where to where
//
// A file is written in the staging directory, made durable, renamed, and only then the position of
// its end is checkpointed. An owner that dies in between leaves at most one file whose position was
// not written; the next owner of the lease gets its changes again and removes that file.
//
// The next owner also removes the staging directories of all owners before it, each with one
// rename, before it reads what they did. An owner that has lost the lease without knowing it finds
// nothing to rename any more, and holds no lock that others would have to wait for.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/file_descriptor.h"
#include "base/result.h"
#include "orrery/processor.h"
#include "sinks/sink.h"

namespace orrery::sinks {

struct JsonLinesOptions {
  std::filesystem::path directory;
  std::uint64_t file_bytes_max = 64 << 20;
  std::uint64_t file_documents_max = 100'000;
  std::chrono::milliseconds file_time_max{60'000};  ///< a file that is open longer is ended
};

/// Makes the directory of the files, if need be. Unavailable when it can't be written.
Result<> make_writable(const std::filesystem::path& directory);

/// The name of the file that begins at a position. Names of a lease sort like their positions.
std::string file_name_of(std::string_view lease, std::string_view from);

/// A file, and the positions of the changes in it.
struct FileRecord {
  std::string file;
  std::string from;
  std::string to;

  std::string to_json() const;
  /// BadRequest when it is none.
  static Result<FileRecord> parse(std::string_view json);
  /// Whether a lease that continues from `position` brings all changes of the file again.
  bool is_replayed_from(std::string_view position) const;
};

/// Needs explicit checkpoints, one lane, and batches that are never cut.
class JsonLinesSink final : public processor::ChangeFeedObserver {
 public:
  JsonLinesSink(JsonLinesOptions options, std::shared_ptr<SinkStats> stats,
                ReportProblem report_problem);
  ~JsonLinesSink() override;

  void open(processor::ObserverContext& context) override;
  /// Gives the lease up when the disk or the lease store refuses: everything since the last
  /// checkpoint comes again.
  processor::Outcome process(processor::ObserverContext& context,
                             const processor::Documents& changes) override;
  void idle(processor::ObserverContext& context) override;

 private:
  /// The file that is being written.
  struct Part {
    FileRecord record;  ///< of when it is complete
    FileDescriptor file;
    std::uint64_t bytes = 0;
    std::uint64_t documents = 0;
    std::chrono::steady_clock::time_point begun;
  };

  Result<> take_over(const processor::ObserverContext& context);
  Result<> append(const processor::ObserverContext& context, Changes changes);
  bool is_full() const;
  /// Puts the file in its place; the position of `context` must be its end.
  Result<> complete(processor::ObserverContext& context);
  Result<> checkpoint(processor::ObserverContext& context);
  /// Changes since the last checkpoint come again.
  void drop_part();

  JsonLinesOptions options_;
  std::shared_ptr<SinkStats> stats_;  // Shared by all sinks of the process, and its display.
  ReportProblem report_problem_;
  std::filesystem::path staging_;
  std::optional<Part> part_;
};

}  // namespace orrery::sinks
