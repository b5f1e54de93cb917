// Tests frames and fields of event records; in tests/tools/watching/watching_test.py TensorBoard
// reads them.

#include "observers/event_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainer {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(EventRecordsTest, AFrameHasLengthAndMaskedChecksums) {
  const std::string frame = Framed("abc");
  ASSERT_EQ(frame.size(), 8u + 4 + 3 + 4);
  EXPECT_EQ(frame.substr(0, 8), std::string("\3\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(frame.substr(12, 3), "abc");
  // CRC32C of "abc" is 0x364b3fb7 (RFC 3720's polynomial); rotated and added, it is 0x219d4fcb.
  const uint32_t crc = 0x364b3fb7, masked = ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
  uint32_t stored = 0;
  std::memcpy(&stored, frame.data() + 15, 4);
  EXPECT_EQ(stored, masked);
}

TEST(EventRecordsTest, AScalarIsATagAndAFloat) {
  SummaryEvent summary;
  summary.Scalar("a", 1.0f);
  const std::string event = summary.Event({0, 7});
  // The field numbers are wall_time 1, step 2, summary 5; value 1; tag 1, simple_value 2.
  const std::string expected(
      "\x09\0\0\0\0\0\0\0\0\x10\x07\x2a\x0a\x0a\x08\x0a\x01\x61\x15\0\0\x80\x3f", 23);
  EXPECT_EQ(event.substr(12, event.size() - 16), expected);
}

TEST(EventRecordsTest, NodesOfTheGraphAreJoinedByTheLastWriterOfABlob) {
  const std::vector<NetLayer> layers = {{"data", "Data", {}, {"data", "label"}},
                                        {"ip", "InnerProduct", {"data"}, {"ip"}},
                                        {"relu", "ReLU", {"ip"}, {"ip"}},
                                        {"relu", "ReLU", {"ip"}, {"ip"}},
                                        {"loss", "SoftmaxWithLoss", {"ip", "label"}, {"loss"}}};
  const std::string graph = GraphEvent({0, 0}, layers);
  EXPECT_THAT(graph, HasSubstr("\x0a\x06relu_2"));  // names are unique
  const size_t loss = graph.find("SoftmaxWithLoss");
  ASSERT_NE(loss, std::string::npos);
  EXPECT_THAT(graph.substr(loss), HasSubstr("\x1a\x06relu_2"));
  EXPECT_THAT(graph.substr(loss), HasSubstr("\x1a\x06"
                                            "data:1"));
  EXPECT_THAT(graph.substr(loss), Not(HasSubstr("\x1a\x02ip")));
}

}  // namespace
}  // namespace trainer
