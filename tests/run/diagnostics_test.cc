// The errors and warnings of a check.

#include "trainer/run/preflight/diagnostics.h"

#include <glog/logging.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "preflight/log_capture.h"
#include "support/json_reader.h"

namespace trainer {
namespace {

using testing::ElementsAre;

TEST(DiagnosticsTest, ErrorsComeFirstAndATextCountsOnce) {
  Diagnostics diagnostics;
  diagnostics.Warn("solver.prototxt:3:1: the learning rate is high");
  EXPECT_EQ(diagnostics.ExitCode(), 0);
  EXPECT_TRUE(diagnostics.Collect([] {}));
  EXPECT_FALSE(diagnostics.Collect(
      [] { throw Error(ErrorCode::kData, {"data/train_lmdb"}, "a record is bad"); }));
  diagnostics.Add(Error(ErrorCode::kConfig, "net.prototxt:1:2: no field"));
  diagnostics.Add(Error(ErrorCode::kConfig, "net.prototxt:1:2: no field"));
  EXPECT_EQ(diagnostics.Counts(), "2 errors, 1 warning");
  EXPECT_EQ(diagnostics.ExitCode(), static_cast<int>(ErrorCode::kData));
  EXPECT_EQ(diagnostics.ToText(),
            "error: data/train_lmdb: a record is bad\n"
            "error: net.prototxt:1:2: no field\n"
            "warning: solver.prototxt:3:1: the learning rate is high\n");
}

TEST(DiagnosticsTest, TheJsonHasThePlaceApartFromTheMessage) {
  Diagnostics diagnostics;
  diagnostics.Add(Error(ErrorCode::kConfig, "net.prototxt:1:2: no field"));
  diagnostics.Warn("Test net (#0): test_iter 3");
  const JsonValue json = ReadJson(Json::Object().Set("list", diagnostics.ToJson()).ToString());
  EXPECT_EQ(json["list"][0]["place"].text, "net.prototxt:1:2");
  EXPECT_EQ(json["list"][0]["message"].text, "no field");
  EXPECT_EQ(json["list"][0]["exit_code"].number, static_cast<int>(ErrorCode::kConfig));
  EXPECT_EQ(json["list"][1]["severity"].text, "warning");
  EXPECT_EQ(json["list"][1]["place"].text, "");
}

TEST(LogCaptureTest, WarningsOfTheLogBecomeDiagnostics) {
  Diagnostics diagnostics;
  {
    const LogCapture capture(false, &diagnostics);
    LOG(INFO) << "an information";
    LOG(WARNING) << "a warning\x1b";
    LOG(ERROR) << "an error";
  }
  LOG(WARNING) << "after it";
  EXPECT_THAT(diagnostics.WarningTexts(), ElementsAre("a warning\\x1b"));
}

}  // namespace
}  // namespace trainer
