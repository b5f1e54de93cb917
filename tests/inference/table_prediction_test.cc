#include "trainer/inference/predict/table_prediction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"
#include "support/net_text.h"
#include "support/temp_folder.h"
#include "trainer/backend/device/cpu_device.h"
#include "trainer/storage/array_file.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TableColumn Scaled(const std::string& name, double subtract, double multiply) {
  TableColumn column;
  column.name = name;
  column.subtract = subtract;
  column.multiply = multiply;
  return column;
}

TableColumn Classes(const std::string& name, std::vector<std::string> categories) {
  TableColumn column;
  column.name = name;
  column.is_categorical = true;
  column.categories = std::move(categories);
  return column;
}

// Returns a net that outputs the `inputs` values of its input, for two rows at once.
NetSpec Echo(int inputs) {
  return NetFromText(
      "layer { name: 'in' type: 'Input' top: 'data' input_param { shape { dim: 2 "
      "dim: " +
      std::to_string(inputs) +
      " } } } layer { name: 'out' type: 'Power' bottom: 'data' top: 'out' }");
}

class TablePredictionTest : public testing::Test {
 protected:
  // The inputs are a, stored unchanged, and b, stored as (b - 1) * 2.
  TablePredictionTest() { format_.inputs = {Scaled("a", 0, 1), Scaled("b", 1, 2)}; }

  TablePredictionResult Predict(const NetSpec& spec, const std::string& table,
                                const std::string& out = "", const std::string& output = "") {
    WriteTableFormat(folder_ / "train.h5.columns.json", format_);
    const std::unique_ptr<Device> device = MakeCpuDevice(1);
    InferenceNet net(spec, *device, {.state = StateOf(caffe::TEST)});
    printed_.clear();
    return PredictTable(net,
                        {.table = folder_.Write("new.csv", table),
                         .like = folder_ / "train.h5",
                         .output = output,
                         .out = out.empty() ? "" : folder_ / out},
                        [&](const std::string& text) { printed_ += text; });
  }
  void ExpectRefused(const NetSpec& spec, ErrorCode code, const std::string& part,
                     const std::string& output = "") {
    EXPECT_THAT(ErrorOf([&] { Predict(spec, "a,b\n1,2\n", "", output); }),
                Pair(code, HasSubstr(part)));
  }

  TempFolder folder_;
  TableFormat format_;
  std::string printed_;
};

TEST_F(TablePredictionTest, NumbersAreInTheUnitOfTheTable) {
  format_.labels = {Scaled("y", 10, 0.5), Scaled("z", 0, 1)};
  const TablePredictionResult result = Predict(Echo(2), "b,a\n1,3\n2,-4\n1.5,0.1\n");
  EXPECT_EQ(result.rows, 3);
  EXPECT_EQ(printed_, "row,y,z\n1,16,0\n2,2,2\n3,10.2,1\n");
}

TEST_F(TablePredictionTest, AClassHasAProbabilityPerCategory) {
  format_.labels = {Classes("kind", {"cat", "the dog, \"Rex\""})};
  format_.ignored = {"id"};
  Predict(Echo(2), "id,a,b\n\"x,1\",0.75,1.125\ny,0.25,1.375\n");
  EXPECT_EQ(printed_,
            "id,kind,kind=cat,\"kind=the dog, \"\"Rex\"\"\"\n"
            "\"x,1\",cat,0.75,0.25\n"
            "y,\"the dog, \"\"Rex\"\"\",0.25,0.75\n");
  format_.labels = {Scaled("kind", 0, 1)};
  Predict(Echo(2), "id,a,b\nx,0.75,1.125\n,0.25,1.375\n");
  EXPECT_EQ(printed_, "id,kind,kind=0,kind=1\nx,0,0.75,0.25\n,1,0.25,0.75\n");
}

TEST_F(TablePredictionTest, ASigmoidTellsTwoClassesApart) {
  format_.inputs = {Scaled("a", 0, 1)};
  format_.labels = {Classes("kind", {"cat", "dog"})};
  Predict(Echo(1), "a\n0.75\n0.25\n");
  EXPECT_EQ(printed_, "row,kind,kind=dog\n1,dog,0.75\n2,cat,0.25\n");
}

TEST_F(TablePredictionTest, AnswersGoToFiles) {
  format_.labels = {Scaled("y", 10, 0.5), Scaled("z", 0, 1)};
  const std::string table = "a,b\n3,1\n-4,2\n0,1.5\n";
  Predict(Echo(2), table, "p.csv");
  EXPECT_EQ(ReadText(folder_ / "p.csv"), "row,y,z\n1,16,0\n2,2,2\n3,10,1\n");
  EXPECT_EQ(printed_, "");
  for (const std::string name : {"p.npz", "p.npy", "p.h5"}) {
    Predict(Echo(2), table, name);
    const auto file = OpenArrayFile(folder_ / name);
    const auto array = file->Array("out");
    EXPECT_THAT(array->dims(), ElementsAre(3, 2)) << name;
    std::vector<float> values(6);
    array->ReadRows(0, 3, values);
    EXPECT_THAT(values, ElementsAre(16, 0, 2, 2, 10, 1)) << name;
    EXPECT_THAT(ErrorOf([&] { Predict(Echo(2), table, name); }),
                Pair(ErrorCode::kCannotCreate, HasSubstr("--force to replace it")));
  }
  EXPECT_EQ(ErrorOf([&] { Predict(Echo(2), table, "p.csv"); }).first, ErrorCode::kCannotCreate);
  Predict(Echo(2), table, "p.tsv");
  EXPECT_EQ(ReadText(folder_ / "p.tsv"), "row\ty\tz\n1\t16\t0\n2\t2\t2\n3\t10\t1\n");
  EXPECT_THAT(ErrorOf([&] { Predict(Echo(2), table, "p.jsonl"); }),
              Pair(ErrorCode::kUsage, HasSubstr("answers about a table go to a .csv, .tsv, .npz")));
}

TEST_F(TablePredictionTest, RefusesANetThatDoesNotFitTheTable) {
  format_.labels = {Scaled("y", 0, 1), Scaled("z", 0, 1), Scaled("w", 0, 1)};
  ExpectRefused(Echo(3), ErrorCode::kData,
                "train.h5.columns.json: the table has 2 inputs, but the net's input 'data' has 3 "
                "numbers for each item");
  ExpectRefused(Echo(2), ErrorCode::kConfig,
                "output 'out' has 2 numbers for each row, but the table has 3 labels; choose "
                "another output with --output");
  format_.labels = {Classes("kind", {"a", "b", "c"})};
  ExpectRefused(Echo(2), ErrorCode::kConfig, "but the table has 3 classes");
  ExpectRefused(Echo(2), ErrorCode::kUsage, "the net has no output 'ot'. Did you mean 'out'?",
                "ot");
  ExpectRefused(NetFromText("layer { name: 'in' type: 'Input' top: 'a' top: 'b' input_param { "
                            "shape { dim: 2 dim: 1 } } } layer { name: 'sum' type: 'Eltwise' "
                            "bottom: 'a' bottom: 'b' top: 'out' }"),
                ErrorCode::kConfig, "the net has 2 inputs, but a table fills one Input layer");
}

TEST_F(TablePredictionTest, TheCommentOfTheNetsFileNamesTheSet) {
  EXPECT_EQ(ResolveLike("given", Echo(1)), "given");
  EXPECT_EQ(ResolveLike("", Echo(1)), "");
  const auto load = [&](const std::string& comment) {
    return LoadNet(folder_.Write("deploy.prototxt",
                                 comment + "name: 'x'\nlayer { name: 'in' type: 'Input' top: "
                                           "'data' input_param { shape { dim: 1 dim: 1 } } }\n"));
  };
  const NetSpec net = load(std::string("# ") + kTableComment + "none/train.h5\n");
  EXPECT_EQ(ResolveLike("", net), "none/train.h5");
  EXPECT_EQ(ResolveLike("given", net), "given");
  format_.labels = {Scaled("y", 0, 1)};
  WriteTableFormat(folder_ / "train.h5.columns.json", format_);
  const NetSpec beside = load(std::string("# ") + kTableComment + "train.h5\n");
  EXPECT_EQ(ResolveLike("", beside), folder_ / "train.h5");
}

}  // namespace
}  // namespace trainer
