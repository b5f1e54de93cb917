#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/test_data.h"
#include "support/layer_runner.h"

namespace trainer {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

// Record k has 2 channels of 1 x 2 pixels, 4k, 4k + 1 | 4k + 2, 4k + 3, and label k.
class DataTest : public testing::Test {
 protected:
  DataTest() {
    Records records;
    for (int k = 0; k < 5; ++k) {
      std::string pixels;
      for (int i = 0; i < 4; ++i) pixels += static_cast<char>(4 * k + i);
      records.emplace_back(Key8(k), MakeDatum(2, 1, 2, pixels, k).SerializeAsString());
    }
    WriteDb("LMDB", path_, records);
  }
  std::string Layer(const std::string& fields = "", const std::string& more = "") const {
    return "type: \"Data\"\ndata_param { backend: LMDB source: '" + path_ + "' " + fields + " }\n" +
           more;
  }

  TempFolder folder_;
  std::string path_ = folder_ / "db";
};

TEST_F(DataTest, HandValuesComeInNchwOrderAndGoRound) {
  LayerRunner data(Layer("batch_size: 2"), {}, {.outputs = 2});
  EXPECT_EQ(data.OutputShape(0), Shape({2, 2, 1, 2}));
  EXPECT_EQ(data.OutputShape(1), Shape({2}));
  data.Forward();
  EXPECT_THAT(data.Output(0), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(data.Output(1), ElementsAre(0, 1));
  data.Forward();
  data.Forward();
  EXPECT_THAT(data.Output(0), ElementsAre(16, 17, 18, 19, 0, 1, 2, 3));
  EXPECT_THAT(data.Output(1), ElementsAre(4, 0));
}

TEST_F(DataTest, HandValuesOfATransform) {
  LayerRunner data(Layer("batch_size: 1", "transform_param { scale: 0.5 mean_value: 2 }"), {});
  data.Forward();
  EXPECT_THAT(data.Output(0), ElementsAre(-1, -0.5, 0, 0.5));
}

TEST_F(DataTest, ASavedPositionGoesOnWithTheNextBatch) {
  LayerRunner first(Layer("batch_size: 2"), {}, {.outputs = 2});
  first.Forward();
  const std::string state = first.layer().SaveState();
  first.Forward();
  LayerRunner second(Layer("batch_size: 2"), {}, {.outputs = 2});
  second.layer().RestoreState(state);
  second.Forward();
  EXPECT_EQ(second.Output(0), first.Output(0));
  EXPECT_EQ(second.layer().SaveState(), first.layer().SaveState());
}

TEST_F(DataTest, CountsWaits) {
  LayerRunner data(Layer("batch_size: 1"), {});
  data.Forward();
  ASSERT_NE(data.layer().data_layer(), nullptr);
  EXPECT_GE(data.layer().data_layer()->counters().first_wait_seconds, 0);
}

TEST_F(DataTest, LogsItsShapeOnceAndTheDatabase) {
  const LogLines log;
  LayerRunner data(Layer("batch_size: 3"), {}, {.outputs = 2});
  const std::vector<std::string> lines = log.Get();
  EXPECT_THAT(lines, Contains("Opened lmdb " + path_));
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "output data size: 3,2,1,2"), 1);
}

TEST_F(DataTest, RefusesBadFields) {
  EXPECT_THAT(RefusalOf(Layer(), {}), HasSubstr("batch_size"));
  EXPECT_THAT(RefusalOf("type: \"Data\" data_param { batch_size: 1 }", {}),
              HasSubstr("layer 'it' (Data): "));
  EXPECT_THAT(RefusalOf(Layer("batch_size: 1"), {}, {.outputs = 3}),
              HasSubstr("it needs 1 to 2 tops, but 3 are given"));
}

TEST_F(DataTest, RefusesAPositionOfAnotherDatabase) {
  LayerRunner data(Layer("batch_size: 1"), {});
  EXPECT_THROW(data.layer().RestoreState("1 5 0 no such key"), Error);
  EXPECT_THROW(data.layer().RestoreState("nonsense"), Error);
}

}  // namespace
}  // namespace trainer
#include "trainer/input/counters.h"
