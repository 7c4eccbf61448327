// The contract of every lease store.
#include "processor/leases/lease_store.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "processor/leases/file_lease_store.h"
#include "processor/leases/memory_lease_store.h"
#include "processor/leases/test_leases.h"

namespace orrery::processor {
namespace {

using ::testing::ElementsAre;

/// A directory of its own for a test.
class TestDirectory {
 public:
  TestDirectory() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "orrery-leases-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TestDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

enum class Store { Memory, File };

class LeaseStoreTest : public ::testing::TestWithParam<Store> {
 protected:
  TestDirectory directory;
  TestRuntime runtime;
  RuntimeClock clock{runtime};
  std::unique_ptr<AsyncLeaseStore> store = make();

  std::unique_ptr<AsyncLeaseStore> make() {
    if (GetParam() == Store::Memory) return std::make_unique<MemoryLeaseStore>(clock);
    return std::make_unique<FileLeaseStore>(directory.path() / "leases", clock);
  }
  template <typename T>
  ErrorCode failure(Async<T> task) {
    const auto result = runtime.run(std::move(task));
    EXPECT_FALSE(result.has_value());
    return result ? ErrorCode::Internal : result.error().code();
  }
  template <typename T>
  T get(Async<T> task) {
    auto result = runtime.run(std::move(task));
    EXPECT_TRUE(result.has_value()) << (result ? "" : result.error().message());
    return result ? std::move(*result) : T{};
  }
  std::vector<std::string> listed(const std::string& prefix) {
    std::vector<std::string> found;
    for (const auto& document : get(store->list(prefix))) found.push_back(document.id);
    return found;
  }
};

TEST_P(LeaseStoreTest, KeepsWhatWasCreated) {
  const auto created = get(store->create("P..0", R"({"id":"P..0"})"));
  const auto read = get(store->read("P..0"));
  EXPECT_EQ(read.id, "P..0");
  EXPECT_EQ(read.text, R"({"id":"P..0"})");
  EXPECT_EQ(read.etag, created.etag);
  EXPECT_EQ(read.ts, clock.unix_seconds());
  runtime.advance(std::chrono::seconds(40));
  EXPECT_EQ(get(store->read("P..0")).store_now - read.ts, 40);
}

TEST_P(LeaseStoreTest, AnIdIsTakenOnce) {
  get(store->create("P..0", "{}"));
  EXPECT_EQ(failure(store->create("P..0", "{}")), ErrorCode::Conflict);
}

TEST_P(LeaseStoreTest, ReplacesTheVersionThatWasSeenAndNoOther) {
  const auto first = get(store->create("P..0", "1"));
  const auto second = get(store->replace("P..0", "2", first.etag));
  EXPECT_NE(second.etag, first.etag);
  EXPECT_EQ(failure(store->replace("P..0", "3", first.etag)), ErrorCode::PreconditionFailed);
  EXPECT_EQ(get(store->read("P..0")).text, "2");
  EXPECT_EQ(failure(store->replace("P..1", "3", first.etag)), ErrorCode::NotFound);
}

TEST_P(LeaseStoreTest, RemovesTheVersionThatWasSeenOrAny) {
  const auto first = get(store->create("P..0", "1"));
  const auto second = get(store->replace("P..0", "2", first.etag));
  EXPECT_EQ(failure(store->remove("P..0", first.etag)), ErrorCode::PreconditionFailed);
  EXPECT_TRUE(runtime.run(store->remove("P..0", second.etag)));
  EXPECT_EQ(failure(store->read("P..0")), ErrorCode::NotFound);
  EXPECT_EQ(failure(store->remove("P..0", {})), ErrorCode::NotFound);
  get(store->create("P..0", "3"));
  EXPECT_TRUE(runtime.run(store->remove("P..0", {})));
}

TEST_P(LeaseStoreTest, EtagsOfADocumentThatWasMadeAgainAreNew) {
  const auto first = get(store->create("P..0", "1"));
  EXPECT_TRUE(runtime.run(store->remove("P..0", {})));
  get(store->create("P..0", "1"));
  EXPECT_EQ(failure(store->replace("P..0", "2", first.etag)), ErrorCode::PreconditionFailed);
}

TEST_P(LeaseStoreTest, ListsWhatBeginsWithAPrefixInOrder) {
  EXPECT_THAT(listed("P.."), ElementsAre());
  for (const auto* id : {"P..2", "P.info", "Q..0", "P..10", "P..-FF"}) get(store->create(id, "{}"));
  EXPECT_THAT(listed("P.."), ElementsAre("P..-FF", "P..10", "P..2"));
  EXPECT_THAT(listed("P.member."), ElementsAre());
}

TEST_P(LeaseStoreTest, IdsMayHaveAnyCharacters) {
  const std::vector<std::string> ids{"../../x", "a/b%2F", "localhost_qYcAAA==_qYcA+-EvJBQ=..0",
                                     "\xC3\xBC nul"};
  for (const auto& id : ids) {
    get(store->create(id, id));
    EXPECT_EQ(get(store->read(id)).text, id);
    EXPECT_THAT(listed(id), ElementsAre(id));
  }
}

INSTANTIATE_TEST_SUITE_P(All, LeaseStoreTest, ::testing::Values(Store::Memory, Store::File),
                         [](const auto& each) {
                           return each.param == Store::Memory ? "Memory" : "File";
                         });

class FileLeaseStoreTest : public ::testing::Test {
 protected:
  TestDirectory directory;
  TestRuntime runtime;
};

TEST_F(FileLeaseStoreTest, SurvivesTheProcess) {
  std::string etag;
  {
    FileLeaseStore store(directory.path());
    etag = runtime.run(store.create("P..0", "text\nof two lines"))->etag;
  }
  FileLeaseStore store(directory.path());
  const auto read = runtime.run(store.read("P..0"));
  EXPECT_EQ(read->text, "text\nof two lines");
  EXPECT_EQ(read->etag, etag);
  EXPECT_NE(runtime.run(store.create("P..1", "x"))->etag, etag);
}

TEST_F(FileLeaseStoreTest, StrangeFilesAreNotListed) {
  FileLeaseStore store(directory.path());
  ASSERT_TRUE(runtime.run(store.create("P..0", "x")));
  std::ofstream(directory.path() / "P..1") << "not ours";
  std::ofstream(directory.path() / "P%2E%2E0.json.new") << "half written";
  EXPECT_EQ(runtime.run(store.list("P.."))->size(), 1U);
  std::ofstream(directory.path() / "P%2E%2E7.json") << "broken";
  EXPECT_EQ(runtime.run(store.list("P..")).error().code(), ErrorCode::BadRequest);
}

TEST_F(FileLeaseStoreTest, IdsThatAreTooLongAreRefused) {
  FileLeaseStore store(directory.path());
  EXPECT_EQ(runtime.run(store.create(std::string(300, 'x'), "{}")).error().code(),
            ErrorCode::BadRequest);
}

TEST_F(FileLeaseStoreTest, ADirectoryThatCannotBeMadeIsUnavailable) {
  std::ofstream(directory.path() / "file") << "in the way";
  FileLeaseStore store(directory.path() / "file" / "leases");
  EXPECT_EQ(runtime.run(store.create("P..0", "{}")).error().code(), ErrorCode::Unavailable);
}

// Several stores over one directory are what several processes are: each locks by itself.
TEST_F(FileLeaseStoreTest, NoUpdateIsLostAmongManyWriters) {
  constexpr int kWriters = 4;
  constexpr int kSteps = 25;
  ASSERT_TRUE([&] {
    FileLeaseStore store(directory.path());
    return runtime.run(store.create("P..0", "0")).has_value();
  }());
  std::vector<std::thread> writers;
  for (int count = 0; count < kWriters; ++count) {
    writers.emplace_back([this] {
      TestRuntime own;
      FileLeaseStore store(directory.path());
      for (int done = 0; done < kSteps;) {
        const auto seen = own.run(store.read("P..0"));
        const std::string next = std::to_string(std::stoi(seen->text) + 1);
        if (own.run(store.replace("P..0", next, seen->etag))) ++done;
      }
    });
  }
  for (auto& writer : writers) writer.join();
  FileLeaseStore store(directory.path());
  EXPECT_EQ(runtime.run(store.read("P..0"))->text, std::to_string(kWriters * kSteps));
}

}  // namespace
}  // namespace orrery::processor
