#include "data/weight_images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "support/net_text.h"
#include "support/temp_folder.h"
#include "trainer/base/file/file.h"
#include "trainer/image/image.h"

namespace trainer {
namespace {

TEST(WeightImageTest, RoundsLimitsAndWritesNanAsBlack) {
  const TempFolder folder;
  const NetSpec net = NetFromText(R"(layer { name: "p" type: "Parameter" top: "p"
    parameter_param { shape { dim: 1 dim: 1 dim: 1 dim: 5 } picture: "p_%d.png" } })");
  const WeightImage image(net.layers[0]);
  const std::string path = folder / "p.png";
  image.Write(std::vector<float>{NAN, -5, 127.6f, 300, -NAN}, path);
  Image written;
  DecodeImage(ReadFile(path, 1 << 20), ColorMode::kGray, {path}, "the image", &written);
  EXPECT_THAT(written.pixels, testing::ElementsAre(0, 0, 128, 255, 0));
}

}  // namespace
}  // namespace trainer
