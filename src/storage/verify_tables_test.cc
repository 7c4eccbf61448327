#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "storage/store.h"
#include "storage/test_store.h"

namespace orrery::storage {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class VerifyTablesTest : public testing::Test {
 protected:
  VerifyTablesTest() {
    // Keys enough for filters and indexes in several parts, in tables of the families that have
    // them and of one that has none.
    auto store = open_store(directory.path());
    Batch batch;
    for (int number = 0; number < kKeys; ++number) {
      for (const Family family : {Family::Ids, Family::Rids, Family::Log}) {
        batch.put(family, fmt::format("key {:06}", number), noise(200));
      }
    }
    EXPECT_TRUE(commit(*store, batch));
    store->flush();
  }

  std::vector<std::filesystem::path> tables() const {
    std::vector<std::filesystem::path> found;
    for (const auto& each : std::filesystem::directory_iterator(directory.path() / "store")) {
      if (each.path().extension() == ".sst") found.push_back(each.path());
    }
    return found;
  }

  /// Names of the tables that are told of.
  static std::vector<std::string> damaged(const Store& store) {
    std::vector<std::string> names;
    store.verify_tables([] { return true; },
                        [&](const std::string& table, const std::string&) {
                          names.push_back(std::filesystem::path(table).filename().string());
                        });
    return names;
  }

  static void flip(const std::filesystem::path& table, std::uintmax_t byte) {
    std::fstream file(table, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(byte));
    const auto changed = static_cast<char>(file.get() ^ 0x10);
    file.seekp(static_cast<std::streamoff>(byte));
    file.put(changed);
  }

  static constexpr int kKeys = 15'000;
  TemporaryDirectory directory;
};

TEST_F(VerifyTablesTest, ATableIsAsItWasWritten) {
  EXPECT_THAT(damaged(*open_store(directory.path())), IsEmpty());
}

TEST_F(VerifyTablesTest, AFlippedBitIsFoundWhereverItIs) {
  const auto store = open_store(directory.path());
  ASSERT_GE(tables().size(), 3u);
  for (const auto& table : tables()) {
    const auto size = std::filesystem::file_size(table);
    // The end has what is not data: filters, indexes, properties, footer.
    for (std::uintmax_t byte = size - 1; byte > size - size / 40; byte -= 2503) {
      flip(table, byte);
      ASSERT_THAT(damaged(*store), ElementsAre(table.filename().string()))
          << "byte " << byte << " of " << size;
      flip(table, byte);
    }
    flip(table, size / 3);
    EXPECT_THAT(damaged(*store), ElementsAre(table.filename().string()));
    flip(table, size / 3);
  }
}

TEST_F(VerifyTablesTest, OfAStoreThatCannotBeOpenedTablesAreReadByThemselves) {
  EXPECT_THAT(damaged_tables(directory.path()), IsEmpty());
  const auto table = tables().front();
  // Of the footer, without which no table can be opened.
  flip(table, std::filesystem::file_size(table) - 3);
  EXPECT_FALSE(try_open_store(directory.path()));
  EXPECT_THAT(damaged_tables(directory.path()),
              ElementsAre(testing::Pair("store/" + table.filename().string(), testing::Ne(""))));
}

TEST_F(VerifyTablesTest, ATableThatIsGoneIsTold) {
  const auto store = open_store(directory.path());
  const auto table = tables().front();
  std::filesystem::remove(table);
  EXPECT_THAT(damaged(*store), ElementsAre(table.filename().string()));
}

TEST_F(VerifyTablesTest, ItEndsInTheMiddleOfATableWhenThatIsEnough) {
  const auto store = open_store(directory.path());
  int asked = 0;
  flip(tables().front(), 100);
  store->verify_tables([&] { return ++asked < 2; }, [](const auto&, const auto&) { FAIL(); });
  EXPECT_LE(asked, 3);
}

}  // namespace
}  // namespace orrery::storage
