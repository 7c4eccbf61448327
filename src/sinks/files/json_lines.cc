#include "sinks/files/json_lines.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/stop_wait.h"
#include "json/lines.h"
#include "orrery/exception.h"
#include "processor/leases/lease.h"

namespace orrery::sinks {
namespace {

namespace fs = std::filesystem;
using processor::ObserverContext;
using processor::Outcome;
using processor::plain_position;
using OrderedJson = nlohmann::ordered_json;
using SteadyClock = std::chrono::steady_clock;

constexpr std::string_view kSuffix = ".jsonl";
constexpr std::string_view kClosed = ".closed";
constexpr const char* kSide = ".orrery";
constexpr const char* kPart = "part";
constexpr const char* kNewest = "newest";
constexpr std::chrono::milliseconds kCheckpointWait{1000};

Error file_failed(const fs::path& path) {
  return Error(ErrorCode::Unavailable,
               fmt::format("cannot write {}: {}", path.string(), std::strerror(errno)));
}

/// Fit for the name of a file, and for no other text.
std::string file_word(std::string_view text) {
  std::string word;
  for (const char letter : text) {
    const bool plain = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                       (letter >= '0' && letter <= '9') || letter == '-' || letter == '_';
    word +=
        plain ? std::string(1, letter) : fmt::format("%{:02X}", static_cast<unsigned char>(letter));
  }
  return word;
}

std::optional<std::uint64_t> position_number(std::string_view position) {
  position = plain_position(position);
  if (position.empty()) return 0;
  std::uint64_t number = 0;
  const char* end = position.data() + position.size();
  const auto [stop, failure] = std::from_chars(position.data(), end, number);
  if (failure != std::errc() || stop != end) return std::nullopt;
  return number;
}

Result<> write_all(const FileDescriptor& file, std::string_view text, const fs::path& path) {
  while (!text.empty()) {
    const ssize_t count = ::write(file.number(), text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_failed(path);
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

Result<> sync_directory(const fs::path& path) {
  const FileDescriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.is_open() || ::fsync(directory.number()) != 0) return file_failed(path);
  return {};
}

Result<> make_directory(const fs::path& path) {
  std::error_code failure;
  fs::create_directories(path, failure);
  if (failure) {
    return Error(ErrorCode::Unavailable,
                 fmt::format("cannot make {}: {}", path.string(), failure.message()));
  }
  return sync_directory(path.parent_path());
}

/// Durable when it returns, and never half.
Result<> write_file(const fs::path& path, std::string_view text) {
  const fs::path draft = path.string() + ".new";
  const FileDescriptor file(::open(draft.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0666));
  if (!file.is_open()) return file_failed(draft);
  ORRERY_TRY(write_all(file, text, draft));
  if (::fsync(file.number()) != 0) return file_failed(draft);
  if (::rename(draft.c_str(), path.c_str()) != 0) return file_failed(path);
  return sync_directory(path.parent_path());
}

/// nullopt: there is none.
std::optional<FileRecord> read_file_record(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  auto record = FileRecord::parse(text);
  return record ? std::optional(*std::move(record)) : std::nullopt;
}

/// The epochs of all staging directories of a lease, closed ones that were not yet removed too.
std::vector<std::uint64_t> epochs_in(const fs::path& directory) {
  std::vector<std::uint64_t> epochs;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(directory, failure)) {
    std::string name = entry.path().filename().string();
    if (name.ends_with(kClosed)) name.resize(name.size() - kClosed.size());
    if (const auto epoch = position_number(name)) epochs.push_back(*epoch);
  }
  return epochs;
}

}  // namespace

Result<> make_writable(const fs::path& directory) {
  std::error_code failure;
  fs::create_directories(directory, failure);
  if (failure || ::access(directory.c_str(), W_OK) != 0) {
    return Error(ErrorCode::Unavailable,
                 fmt::format("cannot write in {}: {}", directory.string(),
                             failure ? failure.message() : std::strerror(errno)));
  }
  return {};
}

std::string file_name_of(std::string_view lease, std::string_view from) {
  const auto number = position_number(from);
  const std::string position =
      number ? fmt::format("{:020}", *number) : file_word(plain_position(from));
  return fmt::format("{}-{}{}", file_word(lease), position, kSuffix);
}

std::string FileRecord::to_json() const {
  return OrderedJson{{"file", file}, {"from", from}, {"to", to}}.dump() + "\n";
}

Result<FileRecord> FileRecord::parse(std::string_view json) {
  const OrderedJson value = OrderedJson::parse(json, nullptr, /*allow_exceptions=*/false);
  const auto text = [&value](const char* name) {
    return value.contains(name) && value[name].is_string() ? value[name].get<std::string>()
                                                           : std::string();
  };
  if (!value.is_object() || text("file").empty()) {
    return Error(ErrorCode::BadRequest, "this names no file");
  }
  return FileRecord{text("file"), text("from"), text("to")};
}

bool FileRecord::is_replayed_from(std::string_view position) const {
  const auto begin = position_number(from);
  const auto now = position_number(position);
  if (begin && now) return *now <= *begin;
  return plain_position(position) == plain_position(from);
}

JsonLinesSink::JsonLinesSink(JsonLinesOptions options, std::shared_ptr<SinkStats> stats,
                             ReportProblem report_problem)
    : options_(std::move(options)),
      stats_(std::move(stats)),
      report_problem_(std::move(report_problem)) {}

JsonLinesSink::~JsonLinesSink() { drop_part(); }

void JsonLinesSink::open(ObserverContext& context) {
  if (const auto taken = take_over(context); !taken) {
    throw std::runtime_error(taken.error().message());
  }
}

Result<> JsonLinesSink::take_over(const ObserverContext& context) {
  const fs::path places = options_.directory / kSide / file_word(context.lease_token());
  const auto place_of = [&places](std::uint64_t epoch) {
    return places / fmt::format("{}", epoch);
  };
  staging_ = place_of(context.epoch());
  ORRERY_TRY(make_directory(staging_));
  // Ours exists before we list the others: of two owners who do this at once, one sees the other.
  for (const std::uint64_t epoch : epochs_in(places)) {
    if (epoch == context.epoch()) continue;
    if (epoch > context.epoch()) {
      return Error(ErrorCode::Conflict,
                   fmt::format("somebody who acquired the lease {} later writes its files by now",
                               context.lease_token()));
    }
    const fs::path closed = place_of(epoch).string() + std::string(kClosed);
    if (::rename(place_of(epoch).c_str(), closed.c_str()) != 0 && errno != ENOENT) {
      return file_failed(closed);
    }
    std::error_code failure;
    if (const auto newest = read_file_record(closed / kNewest);
        newest && newest->is_replayed_from(context.from())) {
      fs::remove(options_.directory / newest->file, failure);
    }
    fs::remove_all(closed, failure);
  }
  return sync_directory(options_.directory);
}

Outcome JsonLinesSink::process(ObserverContext& context, const processor::Documents& changes) {
  auto stored = append(context, changes.items());
  if (stored && (is_full() || context.stop().stop_requested())) stored = complete(context);
  if (!stored) {
    drop_part();
    report_problem_(context.lease_token(), stored.error().message());
    return Outcome::stop(stored.error().message());
  }
  stats_->documents += changes.size();
  return Outcome::done();
}

void JsonLinesSink::idle(ObserverContext& context) {
  if (!part_) return;
  const auto stored = complete(context);
  // Nothing was acknowledged: the part is renamed later, together with the changes that come until
  // then.
  if (!stored) report_problem_(context.lease_token(), stored.error().message());
}

Result<> JsonLinesSink::append(const ObserverContext& context, Changes changes) {
  const fs::path path = staging_ / kPart;
  if (!part_) {
    Part part;
    part.record = {file_name_of(context.lease_token(), context.from()), context.from(), {}};
    part.file =
        FileDescriptor(::open(path.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0666));
    if (!part.file.is_open()) return file_failed(path);
    part.begun = SteadyClock::now();
    part_ = std::move(part);
  }
  const std::string lines = json::lines(changes);
  ORRERY_TRY(write_all(part_->file, lines, path));
  part_->bytes += lines.size();
  part_->documents += changes.size();
  part_->record.to = context.to();
  return {};
}

bool JsonLinesSink::is_full() const {
  return part_->bytes >= options_.file_bytes_max ||
         part_->documents >= options_.file_documents_max ||
         SteadyClock::now() - part_->begun >= options_.file_time_max;
}

Result<> JsonLinesSink::complete(ObserverContext& context) {
  const fs::path path = staging_ / kPart;
  if (::fsync(part_->file.number()) != 0) return file_failed(path);
  ORRERY_TRY(write_file(staging_ / kNewest, part_->record.to_json()));
  const fs::path place = options_.directory / part_->record.file;
  if (::rename(path.c_str(), place.c_str()) != 0) return file_failed(place);
  ORRERY_TRY(sync_directory(options_.directory));
  part_.reset();
  return checkpoint(context);
}

/// Retries until it succeeds: the next file must not begin before this one is checkpointed.
Result<> JsonLinesSink::checkpoint(ObserverContext& context) {
  while (true) {
    try {
      context.checkpoint();
      return {};
    } catch (const client::CosmosException& refusal) {
      if (context.stop().stop_requested()) return Error(ErrorCode::Conflict, refusal.what());
      report_problem_(context.lease_token(), refusal.what());
    }
    wait_unless_stopped(context.stop(), kCheckpointWait);
  }
}

void JsonLinesSink::drop_part() {
  if (!part_) return;
  ::unlink((staging_ / kPart).c_str());
  part_.reset();
}

}  // namespace orrery::sinks
