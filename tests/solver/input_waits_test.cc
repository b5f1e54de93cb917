#include "input_waits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainer {
namespace {

using testing::AllOf;
using testing::HasSubstr;

InputWork Work(double waited, double read, double decode, double augment, int threads, int cores) {
  return {"data", 100, waited, read, decode, augment, threads, cores};
}

TEST(DescribeInputWorkTest, SaysNothingWhereWaitingIsAFewPercent) {
  EXPECT_EQ(DescribeInputWork(Work(4, 90, 5, 5, 1, 2)), "");
  EXPECT_EQ(DescribeInputWork({}), "");
}

TEST(DescribeInputWorkTest, ASlowDiskIsNamedWithItsShare) {
  EXPECT_THAT(DescribeInputWork(Work(60, 80, 15, 5, 1, 2)),
              AllOf(HasSubstr("Waiting for data took 60 % of the time: layer 'data'"),
                    HasSubstr("reads (80 % of its work), decodes (15 %) and transforms (5 %)"),
                    HasSubstr("with 1 thread."), HasSubstr("Reading is the bottleneck: ")));
}

TEST(DescribeInputWorkTest, ReadingIsNotSharedByThreadsAndDecodingIs) {
  EXPECT_THAT(DescribeInputWork(Work(30, 40, 60, 0, 1, 4)),
              HasSubstr("Decoding is the bottleneck"));
  EXPECT_THAT(DescribeInputWork(Work(30, 40, 60, 0, 4, 4)), HasSubstr("Reading is the bottleneck"));
}

TEST(DescribeInputWorkTest, TellsWhetherMoreCoresAreThere) {
  EXPECT_THAT(DescribeInputWork(Work(30, 1, 90, 9, 2, 8)),
              AllOf(HasSubstr("store smaller images"),
                    HasSubstr("set data_param.threads (there are 8 cores)")));
  EXPECT_THAT(DescribeInputWork(Work(30, 1, 9, 90, 2, 2)),
              AllOf(HasSubstr("Transforming is the bottleneck, and this run has only 2 cores"),
                    HasSubstr("use fewer transformations in transform_param"),
                    HasSubstr("ask for more cores")));
}

TEST(DescribeInputWorkTest, AnotherDeviceOfDataIsLateWithoutStages) {
  EXPECT_THAT(DescribeInputWork(Work(50, 0, 0, 0, 1, 1)), HasSubstr("layer 'data' is late"));
}

}  // namespace
}  // namespace trainer
