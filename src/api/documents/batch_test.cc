#include "api/documents/batch.h"

#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/documents/document_request.h"
#include "api/test_request.h"

namespace orrery::api {
namespace {

using testing::HasSubstr;
using Kind = partition::Write::Kind;
using Type = BatchOperationType;

BatchOperation operation(Type type, std::optional<std::string> id,
                         std::optional<std::string_view> body = {}) {
  BatchOperation made;
  made.type = type;
  made.id = std::move(id);
  made.resource_body = body;
  return made;
}

class PlanTest : public testing::Test {
 protected:
  Result<PlannedOperation> plan(const BatchOperation& one, bool minimal = false) {
    return plan_operation(container, one, key, minimal);
  }
  partition::Write write(const BatchOperation& one) {
    auto planned = plan(one);
    EXPECT_TRUE(planned) << planned.error().message();
    return planned ? std::move(planned->write) : partition::Write{};
  }
  ErrorCode refusal(const BatchOperation& one) {
    const auto planned = plan(one);
    EXPECT_FALSE(planned);
    if (!planned) message = planned.error().message();
    return planned ? ErrorCode::Internal : planned.error().code();
  }

  std::shared_ptr<const catalog::Container> container = test_container(kHashKey);
  std::optional<PartitionKey> key = PartitionKey::parse(R"(["a"])").value();
  std::string message;
};

constexpr std::string_view kDocument = R"({"id":"x","pk":"a"})";

TEST_F(PlanTest, EachTypeBecomesItsKindOfWrite) {
  const auto place = place_of(container->definition, *key);
  const auto create = plan(operation(Type::Create, {}, kDocument));
  ASSERT_TRUE(create);
  EXPECT_EQ(create->write.kind, Kind::Create);
  EXPECT_EQ(create->write.key, (partition::DocumentKey{place.epk.bytes, place.canonical, "x"}));
  EXPECT_EQ(create->write.version.open_text, R"({"id":"x","pk":"a")");
  EXPECT_EQ(create->epk, place.epk);
  EXPECT_EQ(write(operation(Type::Upsert, {}, kDocument)).kind, Kind::Upsert);
  const auto renaming = write(operation(Type::Replace, "old", kDocument));
  EXPECT_EQ(renaming.kind, Kind::Replace);
  EXPECT_EQ(renaming.key.id, "old");
  EXPECT_EQ(renaming.version.new_id, "x");
  EXPECT_EQ(write(operation(Type::Read, "x")).kind, Kind::Read);
  EXPECT_EQ(write(operation(Type::Delete, "x")).kind, Kind::Delete);
  const auto patch = write(operation(Type::Patch, "x", R"([{"op":"set","path":"/n","value":1}])"));
  EXPECT_EQ(patch.kind, Kind::Patch);
  EXPECT_EQ(patch.change(kDocument)->open_text, R"({"id":"x","pk":"a","n":1)");
}

TEST_F(PlanTest, ConditionsGoWhereTheyMeanSomething) {
  const auto conditional = [&](BatchOperation one) {
    one.if_match = "m";
    one.if_none_match = "n";
    const auto made = write(one);
    return made.if_match + "/" + made.if_none_match;
  };
  EXPECT_EQ(conditional(operation(Type::Create, {}, kDocument)), "/");
  EXPECT_EQ(conditional(operation(Type::Upsert, {}, kDocument)), "m/");
  EXPECT_EQ(conditional(operation(Type::Replace, "x", kDocument)), "m/");
  EXPECT_EQ(conditional(operation(Type::Delete, "x")), "m/");
  EXPECT_EQ(conditional(operation(Type::Read, "x")), "m/n");
}

TEST_F(PlanTest, WhatIsMissingOrWrongIsSaid) {
  for (const auto type : {Type::Replace, Type::Patch, Type::Read, Type::Delete}) {
    EXPECT_EQ(refusal(operation(type, {}, kDocument)), ErrorCode::BadRequest);
    EXPECT_THAT(message, HasSubstr("'id'"));
  }
  for (const auto type : {Type::Create, Type::Upsert, Type::Replace, Type::Patch}) {
    EXPECT_EQ(refusal(operation(type, "x")), ErrorCode::BadRequest);
    EXPECT_THAT(message, HasSubstr("'resourceBody'"));
  }
  EXPECT_EQ(refusal(operation(Type::Create, {}, R"({"id":"x","pk":"b"})")),
            ErrorCode::PartitionKeyMismatch);
  EXPECT_EQ(refusal(operation(Type::Create, {}, "\x80\x01")), ErrorCode::BadRequest);
  EXPECT_THAT(message, HasSubstr("binary JSON"));
  auto directed = operation(Type::Create, {}, kDocument);
  directed.indexing_directive = "Nonsense";
  EXPECT_EQ(refusal(directed), ErrorCode::BadRequest);
}

TEST_F(PlanTest, OnlyWhatBringsADocumentCanDoWithoutAKey) {
  key.reset();
  EXPECT_EQ(write(operation(Type::Create, {}, kDocument)).key.id, "x");
  for (const auto type : {Type::Replace, Type::Read, Type::Delete}) {
    EXPECT_EQ(refusal(operation(type, "x", kDocument)), ErrorCode::BadRequest);
  }
}

TEST_F(PlanTest, AMinimalAnswerTellsNoText) {
  EXPECT_TRUE(plan(operation(Type::Read, "x"))->write.tells_text);
  EXPECT_FALSE(plan(operation(Type::Read, "x"), true)->write.tells_text);
}

TEST(BatchKeys, AreTheTextOfAnArray) {
  BatchOperation one;
  EXPECT_EQ(key_of(one).value(), std::nullopt);
  one.partition_key = R"(["a",1])";
  EXPECT_EQ(key_of(one).value()->to_json(), R"(["a",1])");
  one.partition_key = "a";
  EXPECT_EQ(key_of(one).error().code(), ErrorCode::BadRequest);
}

TEST(BatchOutcomes, HaveStatusChargeAndWhatElseThereIs) {
  const auto container = test_container(kHashKey);
  partition::Written written;
  written.kind = partition::Written::Kind::Created;
  written.position.lsn = Lsn{5};
  written.header.indexed_leaves = 2;
  written.text = kDocument;
  written.text_size = 1024;
  const auto created = OperationOutcome::of(written, false, container->definition);
  EXPECT_EQ(created.status, 201);
  EXPECT_EQ(created.charge.text(), "5.24");
  EXPECT_EQ(created.etag, written.etag().text());
  EXPECT_EQ(created.text, kDocument);
  EXPECT_EQ(OperationOutcome::of(written, true, container->definition).text, "");

  written.kind = partition::Written::Kind::Deleted;
  EXPECT_EQ(OperationOutcome::of(written, false, container->definition).etag, "");
  written.kind = partition::Written::Kind::NotModified;
  EXPECT_EQ(OperationOutcome::of(written, false, container->definition).status, 304);
  EXPECT_EQ(OperationOutcome::of(written, false, container->definition).charge.text(), "1");

  const auto conflict = OperationOutcome::of(Error(ErrorCode::Conflict, "taken"));
  EXPECT_EQ(conflict.status, 409);
  EXPECT_EQ(conflict.charge.text(), "1.24");
  EXPECT_EQ(conflict.message, "taken");
  const auto busy = OperationOutcome::of(Error(ErrorCode::TooManyRequests, "busy"));
  EXPECT_EQ(busy.status, 429);
  EXPECT_EQ(busy.substatus, 3092);
  EXPECT_GT(busy.retry_after_ms, 0u);
  EXPECT_EQ(OperationOutcome::of(Error(ErrorCode::ResponseTooLarge, "")).substatus, 3402);
  EXPECT_EQ(OperationOutcome().status, 424) << "as it is made it stands for: not tried";
  EXPECT_EQ(OperationOutcome().charge.hundredths, 0);
}

TEST(BatchOutcomes, AreWrittenInTheFormOfTheRequest) {
  const std::vector<OperationOutcome> outcomes(2);
  EXPECT_EQ(write_outcomes(outcomes, false),
            R"([{"statusCode":424,"requestCharge":0},{"statusCode":424,"requestCharge":0}])");
  EXPECT_EQ(write_outcomes(outcomes, true).front(), '\x81');
}

}  // namespace
}  // namespace orrery::api
