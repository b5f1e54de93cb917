#include "trainer/base/error/error_collector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"

namespace trainer {
namespace {

[[noreturn]] void Fail(const std::string& text) { throw Error(ErrorCode::kData, text); }

TEST(ErrorCollectorTest, KeepsErrorsAndThrowsThemAtTheEnd) {
  ErrorCollector errors;
  errors.Throw();  // nothing to throw
  EXPECT_TRUE(errors.Try([] {}));
  EXPECT_FALSE(errors.Try([] { Fail("first"); }));
  EXPECT_EQ(ErrorOf([&] { errors.Throw(); }).second, "first");
  EXPECT_FALSE(errors.Try([] {
    throw ErrorGroup({Error(ErrorCode::kIo, "second"), Error(ErrorCode::kIo, "third")});
  }));
  ASSERT_EQ(errors.errors().size(), 3u) << "the errors of a group one by one";
  try {
    errors.Throw();
    FAIL() << "nothing was thrown";
  } catch (const ErrorGroup& group) {
    EXPECT_EQ(group.code(), ErrorCode::kData) << "the code of the first";
    EXPECT_EQ(group.all()[2].what(), std::string("third"));
  }
}

TEST(ErrorCollectorTest, WithoutACollectorAnErrorReachesTheCaller) {
  EXPECT_TRUE(ErrorCollector::Try(nullptr, [] {}));
  EXPECT_THROW(ErrorCollector::Try(nullptr, [] { Fail("here"); }), Error);
}

TEST(ErrorCollectorTest, OtherExceptionsAreNotKept) {
  ErrorCollector errors;
  EXPECT_THROW(errors.Try([] { throw std::bad_alloc(); }), std::bad_alloc);
  EXPECT_TRUE(errors.empty());
}

}  // namespace
}  // namespace trainer
