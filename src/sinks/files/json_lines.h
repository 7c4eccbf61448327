// JsonlObserver: keeps changes in files of JSON lines, each change in exactly one of them.
//
//   DIR/0-00000000000000000000.jsonl    what the lease 0 brought from that position on, complete
//   DIR/0-00000000000000004711.jsonl    the next one begins where it ended
//   DIR/.orrery/0/17/                   the workplace of whoever acquired the lease as epoch 17:
//     part                              the file that is being written
//     newest                            which file was last put in its place, from where to where
//
// A file is written to the side, made durable, renamed, and only then the position of its end is
// checkpointed. Whoever dies in between leaves at most one file whose position was not written; the
// next owner of the lease gets its changes again and takes that file away.
//
// The next owner also takes the workplaces of all before it away, each at one stroke, before it
// looks at what they did. Whoever has lost the lease without knowing it finds nothing to rename any
// more, and holds no lock that others would have to wait for.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "orrery/processor.h"
#include "sinks/delivery.h"
#include "sinks/exec/child_process.h"

namespace orrery::sinks {

struct JsonlOptions {
  std::filesystem::path directory;
  std::uint64_t file_bytes_max = 64 << 20;
  std::uint64_t file_documents_max = 100'000;
  std::chrono::milliseconds file_time_max{60'000};  ///< a file that takes longer is ended
};

/// The name of the file that begins at a position. Names of a lease sort like their positions.
std::string jsonl_name(std::string_view lease, std::string_view from);

/// A file, and what is in it.
struct JsonlRecord {
  std::string file;
  std::string from;
  std::string to;

  std::string to_json() const;
  /// BadRequest when it is none.
  static Result<JsonlRecord> parse(std::string_view json);
  /// Whether a lease that goes on from `position` brings all changes of the file again.
  bool comes_again(std::string_view position) const;
};

/// Needs explicit checkpoints, one lane, and batches that are never cut.
class JsonlObserver final : public processor::ChangeFeedObserver {
 public:
  JsonlObserver(JsonlOptions options, std::shared_ptr<Tally> tally, Complain complain);
  ~JsonlObserver() override;

  void open(processor::ObserverContext& context) override;
  /// Gives the lease up when the disk or the lease store refuses: everything since the last
  /// checkpoint comes again.
  processor::Outcome process(processor::ObserverContext& context,
                             const processor::Documents& changes) override;
  void idle(processor::ObserverContext& context) override;

 private:
  /// The file that is being written.
  struct Part {
    JsonlRecord record;  ///< of when it is complete
    Descriptor file;
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
  /// What was written since the last checkpoint comes again.
  void drop_part();

  JsonlOptions options_;
  std::shared_ptr<Tally> tally_;  // Shared by all observers, and whoever shows it.
  Complain complain_;
  std::filesystem::path workplace_;
  std::optional<Part> part_;
};

}  // namespace orrery::sinks
