#include "protocol/wire/wire_error.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(WireError, EveryConditionHasAStatusWithAPhrase) {
  // ReadLimitReached is the last of them; a code without a row would stop the process here.
  for (int code = 0; code <= static_cast<int>(ErrorCode::ReadLimitReached); ++code) {
    const WireError wire = wire_error(static_cast<ErrorCode>(code));
    EXPECT_GE(wire.status, 400);
    EXPECT_FALSE(wire.code.empty());
    EXPECT_NE(reason_phrase(wire.status), "Unknown") << wire.status;
  }
}

TEST(WireError, TellsConditionsOfOneStatusApart) {
  EXPECT_EQ(wire_error(ErrorCode::PartitionKeyMismatch).substatus, 1001);
  EXPECT_EQ(wire_error(ErrorCode::ContainerRidMismatch).substatus, 1024);
  EXPECT_EQ(wire_error(ErrorCode::NotFound).substatus, 0);
  EXPECT_EQ(wire_error(ErrorCode::SessionNotAvailable).substatus, 1002);
  EXPECT_EQ(wire_error(ErrorCode::OwnerNotFound).substatus, 1003);
  EXPECT_EQ(wire_error(ErrorCode::NameCacheStale).substatus, 1000);
  EXPECT_EQ(wire_error(ErrorCode::RangeGone).substatus, 1002);
}

TEST(WireError, NeverTellsAClientThatItIsInTheWrongRegion) {
  // 403 with these makes JS4 retry for two minutes.
  for (int code = 0; code <= static_cast<int>(ErrorCode::ReadLimitReached); ++code) {
    const WireError wire = wire_error(static_cast<ErrorCode>(code));
    if (wire.status == 403) {
      EXPECT_NE(wire.substatus, 3);
      EXPECT_NE(wire.substatus, 1008);
    }
  }
}

TEST(ReasonPhrase, NamesTheStatusesThatAreSent) {
  EXPECT_EQ(reason_phrase(200), "OK");
  EXPECT_EQ(reason_phrase(201), "Created");
  EXPECT_EQ(reason_phrase(204), "No Content");
  EXPECT_EQ(reason_phrase(207), "Multi-Status");
  EXPECT_EQ(reason_phrase(304), "Not Modified");
  EXPECT_EQ(reason_phrase(599), "Unknown");
}

}  // namespace
}  // namespace orrery
