// Moves documents that have not changed for a while from a container to files.
//
//   archive_cold_data DATABASE CONTAINER DIRECTORY [LEASES] [--older-than=SECONDS] [--by=day|key]
//                     [--delete] [--once]
//
// A file has one document per line. Files are in one directory per day of the last change
// (DIRECTORY/2024-05-17/…), or with --by=key in one per partition key. With --delete a document
// leaves the container once it is safely on the disk.
//
// A file appears whole or not at all: it is written under another name, brought to the disk and
// then renamed. After a crash the last batch comes again. It makes the same files again, or ones
// that overlap them: then a line is there twice, with the same _rid and _etag.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <nlohmann/json.hpp>

#include "example.h"

namespace client = orrery::client;
namespace processor = orrery::processor;
using Json = nlohmann::json;

namespace {

void check(bool ok, const std::string& what) {
  if (!ok) throw std::system_error(errno, std::generic_category(), what);
}

/// Brings what is in a file, or the names in a directory, to the disk.
void sync(const std::filesystem::path& path) {
  const int file = open(path.c_str(), O_RDONLY);
  check(file >= 0, path);
  const bool done = fsync(file) == 0;
  close(file);
  check(done, path);
}

void write_whole(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  const std::filesystem::path unfinished = path.string() + ".unfinished";
  const int file = open(unfinished.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  check(file >= 0, unfinished);
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = write(file, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) break;
    done += static_cast<std::size_t>(count);
  }
  close(file);
  check(done == text.size(), unfinished);
  sync(unfinished);
  std::filesystem::rename(unfinished, path);
  sync(path.parent_path());
  sync(path.parent_path().parent_path());
}

std::string day_of(std::time_t time) {
  std::tm parts{};
  gmtime_r(&time, &parts);
  char text[16];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d", &parts)};
}

/// A name for a directory, from any text: what is no letter or digit is written %XX.
std::string file_name(const std::string& text) {
  static const char* const kDigits = "0123456789ABCDEF";
  std::string name;
  for (const unsigned char c : text) {
    if (std::isalnum(c) != 0 || c == '_') {
      name += static_cast<char>(c);
    } else {
      name += {'%', kDigits[c / 16], kDigits[c % 16]};
    }
  }
  return name;
}

class Archive {
 public:
  Archive(client::Container source, std::filesystem::path directory,
          const example::Arguments& arguments)
      : source_(std::move(source)),
        directory_(std::move(directory)),
        key_path_(source_.read().value.partition_key_paths.at(0)),
        by_key_(arguments.value("by", "day") == "key"),
        delete_(arguments.has("delete")),
        age_min_(std::stol(arguments.value("older-than", "0"))) {}

  processor::Outcome take(processor::ObserverContext& context,
                          const processor::Documents& changes) const {
    // The feed shows each document once, at its last change, the oldest first. So those that are
    // cold stand at the front, and the rest only has to wait.
    const std::time_t cold = std::time(nullptr) - age_min_;
    std::vector<Json> documents;
    std::size_t count = 0;
    for (; count < changes.size(); ++count) {
      Json document = Json::parse(changes[count]);
      if (document.at("_ts").get<std::time_t>() > cold) break;
      if (is_unchanged(document)) documents.push_back(std::move(document));
    }
    if (count == 0) {
      // The lease is kept meanwhile; nothing behind these can be colder.
      const auto wait = Json::parse(changes[0]).at("_ts").get<std::time_t>() - cold;
      return processor::Outcome::retry(std::chrono::seconds(wait), "nothing is cold yet");
    }
    write_files(context.lease_token(), documents);
    if (delete_) remove(documents);
    return processor::Outcome::done_until(count);
  }

 private:
  client::PartitionKey key_of(const Json& document) const {
    if (!document.contains(key_path_)) return client::PartitionKey::none();
    return client::PartitionKey::from_json("[" + document.at(key_path_).dump() + "]");
  }

  /// A batch that has waited to grow cold may be out of date. What has changed since comes again,
  /// further on in the feed.
  bool is_unchanged(const Json& document) const {
    if (age_min_ == 0) return true;
    const std::string etag = document.at("_etag");
    try {
      return source_
                 .read_item(document.at("id").get<std::string>(), key_of(document),
                            {.if_none_match = etag})
                 .status == 304;
    } catch (const client::CosmosException& failure) {
      if (!failure.is_not_found()) throw;
      return false;
    }
  }

  void write_files(const std::string& range, const std::vector<Json>& documents) const {
    struct File {
      std::string lines;
      std::uint64_t first_lsn = 0, last_lsn = 0;
    };
    std::map<std::string, File> files;
    for (const Json& document : documents) {
      const std::string group = by_key_ ? file_name(key_of(document).json())
                                        : day_of(document.at("_ts").get<std::time_t>());
      File& file = files[group];
      file.last_lsn = document.at("_lsn").get<std::uint64_t>();
      if (file.lines.empty()) file.first_lsn = file.last_lsn;
      file.lines += document.dump() + "\n";
    }
    // Named after where in the feed it comes from: the same changes make the same file again.
    for (const auto& [group, file] : files) {
      write_whole(directory_ / group /
                      ("range-" + range + "-" + std::to_string(file.first_lsn) + "-" +
                       std::to_string(file.last_lsn) + ".jsonl"),
                  file.lines);
    }
  }

  void remove(const std::vector<Json>& documents) const {
    for (const Json& document : documents) {
      const std::string etag = document.at("_etag");
      try {
        // Only this version.
        source_.delete_item(document.at("id").get<std::string>(), key_of(document),
                            {.if_match = etag});
      } catch (const client::CosmosException& failure) {
        // It has changed since, so it is not cold any more, and the feed will show it again. Or it
        // was deleted already, perhaps by ourselves before a crash.
        if (!failure.is_precondition_failed() && !failure.is_not_found()) throw;
      }
    }
  }

  client::Container source_;
  std::filesystem::path directory_;
  Json::json_pointer key_path_;
  bool by_key_;
  bool delete_;
  std::time_t age_min_;
};

}  // namespace

int main(int argc, char** argv) {
  return example::guarded([&] {
    const example::Arguments arguments(argc, argv);
    if (arguments.words.size() < 3) {
      std::cerr << "usage: archive_cold_data DATABASE CONTAINER DIRECTORY [LEASES] "
                   "[--older-than=SECONDS] [--by=day|key] [--delete] [--once]\n";
      return 2;
    }
    const auto database = example::connect().database(arguments.words[0]);
    const auto source = database.container(arguments.words[1]);
    const auto leases = example::lease_container(
        database, arguments.words.size() > 3 ? arguments.words[3] : "leases");
    const Archive archive(source, arguments.words[2], arguments);

    const std::string prefix = "archive.";
    processor::ChangeFeedProcessorHost host(
        "archive", source, leases, {.start_from_beginning = true}, {.lease_prefix = prefix});
    host.set_health_monitor(example::report_trouble);
    const auto take = [&](processor::ObserverContext& context,
                          const processor::Documents& changes) {
      return archive.take(context, changes);
    };
    const processor::LeaseGroup group(source, processor::container_lease_store(leases), prefix);
    processor::run_until_signal(host, take, example::when_done(group, arguments.has("once")));
    return 0;
  });
}
