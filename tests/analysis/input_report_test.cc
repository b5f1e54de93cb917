// Tests the report of how fast the data of a training net is read and consumed.

#include "trainer/analysis/input/input_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "digits_run.h"
#include "trainer/backend/device/cpu_device.h"
#include "trainer/datasets/convert.h"

namespace trainer {
namespace {

using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;

std::string Diagnose(const DigitsRun& run, const std::vector<std::string>& changes = {}) {
  const std::unique_ptr<Device> device = MakeCpuDevice();
  return ToText(DiagnoseInput(run.Load(changes), *device, {.seconds = 0.5, .iterations = 2}));
}

TEST(InputReportTest, TellsRatesAndAdvice) {
  const DigitsRun run;
  const std::string text = Diagnose(run);
  for (const char* part :
       {" cores used, ", "iteration without waiting: ", "file system", "net needs", "read cold",
        "data/train_lmdb", "advice, largest gain first:"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_THAT(run.folder().Names(), ElementsAre("data", "net.prototxt", "solver.prototxt"));
}

TEST(InputReportTest, MeasuresTarFilesThatATextLists) {
  const DigitsRun run;
  const std::string tar = run.folder() / "set.tar", list = run.folder() / "shards.txt";
  ConvertRecords(run.folder() / "data/train_lmdb", {.path = tar}, 1);
  run.folder().Write("shards.txt", tar + "\n");
  const std::string text = Diagnose(run, {"layer[digits,TRAIN].data_param.backend=TAR",
                                          "layer[digits,TRAIN].data_param.source=" + list});
  EXPECT_THAT(text, HasSubstr("shards.txt  TAR"));
}

TEST(InputReportTest, MeasuresTheFilesOfAList) {
  DigitsRun run;
  std::string list;
  for (int i = 0; i < 12; ++i) {
    run.folder().Write("image " + std::to_string(i) + ".pgm",
                       "P5 28 28 255\n" + std::string(28 * 28, static_cast<char>(40 + i)));
    list += "image " + std::to_string(i) + ".pgm " + std::to_string(i % 10) + "\n";
  }
  run.folder().Write("list.txt", list);
  run.net = Join(R"(layer { name: "d" type: "ImageData" top: "data" top: "label"
    image_data_param { source: "list.txt" root_folder: ")",
                 run.folder() / "",
                 R"(" batch_size: 4 is_color: false } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" })");
  const std::string text = Diagnose(run);
  EXPECT_THAT(text, ContainsRegex("list.txt +files +9.*KiB"));
  EXPECT_THAT(text, ContainsRegex("d( +[0-9]+)( +[0-9]+)( +[0-9]+)( +[0-9]+) +1"))
      << "no rate is missing";
  EXPECT_THAT(text, HasSubstr("each image is a separate file; pack them:"));
}

}  // namespace
}  // namespace trainer
