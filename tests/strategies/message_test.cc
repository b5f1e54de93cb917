#include "message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TEST(MessageTest, ReadsWhatWasWritten) {
  MessageWriter writer;
  writer.Put(int64_t{-7}).Put(2.5);
  writer.Floats(2)[1] = 3;
  const Rpc::Bytes message = writer.Take();
  MessageReader reader(message);
  EXPECT_EQ(reader.Get<int64_t>(), -7);
  EXPECT_EQ(reader.Get<double>(), 2.5);
  EXPECT_THAT(reader.Floats(), ElementsAre(0, 3));
}

TEST(MessageTest, AMessageThatIsTooShortIsRefused) {
  const Rpc::Bytes message = MessageWriter().Put(int32_t{1}).Take();
  MessageReader reader(message);
  EXPECT_THAT(ErrorOf([&] { reader.Get<int64_t>(); }),
              Pair(ErrorCode::kProtocol,
                   HasSubstr("a message of another rank has only 4 bytes where 8 must follow")));
  EXPECT_EQ(reader.Get<int32_t>(), 1);
  EXPECT_THAT(ErrorOf([&] { reader.Get<int32_t>(); }),
              Pair(ErrorCode::kProtocol, HasSubstr("only 0 bytes where 4 must follow")));
}

}  // namespace
}  // namespace trainer
