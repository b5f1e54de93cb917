// Tests memory estimates: what a plan says before the run equals what the solver then holds.

#include "trainer/analysis/memory/memory_estimate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <thread>

#include "datum.pb.h"
#include "digits_run.h"
#include "support/scoped.h"
#include "support/source_folder.h"
#include "support/test_device.h"
#include "support/thread_group.h"
#include "trainer/backend/device/meta_device.h"
#include "trainer/datasets/from_text.h"
#include "trainer/monitor/observer.h"
#include "trainer/solver/solver.h"
#include "trainer/storage/database_writer.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::map<std::string, size_t> BytesByKey(const std::vector<MemoryItem>& items) {
  std::map<std::string, size_t> bytes;
  for (const MemoryItem& item : items) bytes[item.key] = item.bytes;
  return bytes;
}

std::map<std::string, size_t> Planned(const SolverSpec& spec, const Device& device) {
  return BytesByKey(EstimateMemory(spec, device).Items(UnlimitedRoom(device)));
}

// Counts the memory of a solver that is ready to train.
std::map<std::string, size_t> Built(const SolverSpec& spec, const Device& device) {
  SolverOptions options;
  options.saves = false;
  ObserverList nobody;
  Solver solver(spec, options, device, nobody);
  return BytesByKey(EstimateMemory(spec, solver).Items(UnlimitedRoom(device)));
}

// Returns the solver files of models/, as paths relative to that folder.
std::vector<std::string> SolverFiles() {
  std::set<std::string> files;
  const std::filesystem::path models = SourceFolder() + "/models";
  for (const auto& folder : std::filesystem::directory_iterator(models)) {
    if (!folder.is_directory()) continue;
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      const std::string name = file.path().filename().string();
      if (!name.starts_with("solver") || !name.ends_with(".prototxt")) continue;
      if (folder.path().filename() == "neural_style") continue;  // needs the user's images
      files.insert(std::filesystem::relative(file.path(), models).string());
    }
  }
  return {files.begin(), files.end()};
}

// Writes ten zero images for the data layer of the model.
std::string WriteZeros(const std::string& model, const LayerSpec& layer, const TempFolder& folder) {
  caffe::Datum datum;
  const int crop = static_cast<int>(layer.proto().transform_param().crop_size());
  datum.set_channels(crop > 0 || model.starts_with("cifar") ? 3 : model == "siamese" ? 2 : 1);
  const int side = crop > 0 ? crop : model.starts_with("cifar") ? 32 : 28;
  datum.set_height(side);
  datum.set_width(side);
  datum.set_data(
      std::string(static_cast<size_t>(datum.channels()) * static_cast<size_t>(side * side), '\0'));
  std::string path = folder / "zeros";
  if (std::filesystem::exists(path)) return path;
  const std::unique_ptr<DbWriter> writer = CreateDb("LMDB", path);
  for (int i = 0; i < 10; ++i) writer->Put(Join(i), datum.SerializeAsString());
  writer->Commit();
  return path;
}

// Writes a set of four records from a text, and returns its list.
std::string WriteTextSet(const TempFolder& folder) {
  std::string list = folder / "text.txt";
  if (std::filesystem::exists(list)) return list;
  WriteText(folder / "a", std::string(4 * 128 + 1, 'a'));
  TextOptions options;
  options.text = folder / "a";
  options.output = folder / "text.h5";
  WriteTextRecords(options);
  return list;
}

// Makes the nets read batches of 4 such records, and shrinks large inner products, whose weights
// take half a GiB and seconds to fill.
void MakeSmall(const std::string& model, const TempFolder& folder, SolverSpec* spec) {
  for (NetSpec& net : spec->nets) {
    for (LayerSpec& layer : net.layers) {
      caffe::LayerParameter& proto = layer.mutable_proto();
      if (proto.inner_product_param().num_output() > 1000 && model.ends_with("net")) {
        proto.mutable_inner_product_param()->set_num_output(32);
      }
      for (caffe::BlobShape& marks : *proto.mutable_dummy_data_param()->mutable_shape()) {
        if (layer.type() == "DummyData") marks.set_dim(1, 4);  // the LSTM's sequences
      }
      if (layer.type() == "HDF5Data") {
        proto.mutable_hdf5_data_param()->set_source(WriteTextSet(folder));
        proto.mutable_hdf5_data_param()->set_batch_size(4);
      }
      if (layer.type() != "Data") continue;
      proto.mutable_transform_param()->clear_mean_file();
      proto.mutable_data_param()->set_source(WriteZeros(model, layer, folder));
      proto.mutable_data_param()->set_backend(caffe::DataParameter::LMDB);
      proto.mutable_data_param()->set_batch_size(4);
    }
  }
}

class ModelMemoryTest : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Of, ModelMemoryTest, testing::ValuesIn(SolverFiles()),
                         [](const auto& one) {
                           std::string name = one.param;
                           std::ranges::replace_if(
                               name, [](char c) { return c == '/' || c == '.'; }, '_');
                           return name;
                         });

TEST_P(ModelMemoryTest, ThePlanCountsWhatTheSolverHolds) {
  const ScopedCurrentFolder sources(SourceFolder());  // the files have paths relative to it
  const TempFolder folder;
  SolverSpec spec = LoadSolver(Join(SourceFolder(), "/models/", GetParam()));
  MakeSmall(GetParam().substr(0, GetParam().find('/')), folder, &spec);
  const std::unique_ptr<Device> device = MakeTestDevice(1);
  const auto planned = Planned(spec, *device);
  EXPECT_EQ(planned, Built(spec, *device));
  EXPECT_GT(planned.at("parameters"), 0u);
  EXPECT_GT(planned.at("values"), 0u);
}

class RuleMemoryTest : public testing::Test {
 protected:
  std::map<std::string, size_t> Count(const std::string& fields) {
    DigitsRun run;
    run.solver = Edited(run.solver, "momentum: 0.9", fields);
    const SolverSpec spec = run.Load();
    std::map<std::string, size_t> planned = Planned(spec, *device_);
    EXPECT_EQ(planned, Built(spec, *device_)) << fields;
    return planned;
  }

  static constexpr size_t kArray = DigitsRun::kWeightBytes;
  const std::unique_ptr<Device> device_ = MakeTestDevice(1);
};

TEST_F(RuleMemoryTest, CountsWeightsGradientsAndTheRulesState) {
  const auto bytes = Count("momentum: 0.9");
  EXPECT_EQ(bytes.at("parameters"), kArray);
  EXPECT_EQ(bytes.at("gradients"), kArray);
  EXPECT_EQ(bytes.at("rule_state"), kArray);
  EXPECT_EQ(bytes.count("averages"), 0u);
}

TEST_F(RuleMemoryTest, CountsTheProgramAndTheCopyForSnapshots) {
  TRAINER_CPU_ONLY("memory of the host");
  const auto bytes = Count("momentum: 0.9");
  EXPECT_EQ(bytes.at("program"), size_t{16} << 20);
  EXPECT_EQ(bytes.at("snapshot"), 2 * kArray);
  EXPECT_EQ(Count("momentum: 0.9 snapshot_diff: true").at("snapshot"), 3 * kArray);
  EXPECT_EQ(Count("momentum: 0.9 ema_decay: 0.9").at("snapshot"), 3 * kArray);
}

TEST_F(RuleMemoryTest, CountsTheAveragedWeights) {
  EXPECT_EQ(Count("momentum: 0.9 ema_decay: 0.9").at("averages"), kArray);
}

TEST_F(RuleMemoryTest, CountsTheHistoryOfLbfgs) {
  const auto bytes = Count("type: \"LBFGS\" lbfgs_param { history: 4 }");
  EXPECT_EQ(bytes.at("rule_state"), (2 * 4 + 3) * kArray);
}

TEST_F(RuleMemoryTest, CountsTheSumsOfVirtualRanks) {
  EXPECT_EQ(Count("momentum: 0.9 virtual_ranks: 2").at("part_sums"), kArray);
}

TEST_F(RuleMemoryTest, ARankHoldsTheSumsOfItsOwnVirtualRanks) {
  TRAINER_CPU_ONLY("the ranks are threads that compute on the host");
  DigitsRun run;
  run.solver += "virtual_ranks: 4";
  const SolverSpec spec = run.Load();
  Meeting meeting(2);
  std::vector<MemoryEstimate> estimates(2);
  const auto count = [&](int rank) {
    const std::unique_ptr<Device> device = MakeTestDevice(1);
    ThreadGroup group(meeting, rank, true);
    SolverOptions options;
    options.saves = false;
    options.group = &group;
    ObserverList nobody;
    Solver solver(spec, options, *device, nobody);
    estimates[static_cast<size_t>(rank)] = EstimateMemory(spec, solver);
  };
  std::thread other([&] { count(1); });
  count(0);
  other.join();
  for (const MemoryEstimate& estimate : estimates) {
    EXPECT_EQ(estimate.virtual_ranks, 2);
    EXPECT_EQ(estimate.part_sums, Count("momentum: 0.9 virtual_ranks: 2").at("part_sums"));
  }
}

// Neither snapshots nor rule states contain these weights.
TEST_F(RuleMemoryTest, CountsWeightsThatOnlyATestNetHas) {
  const auto before = Count("momentum: 0.9");
  DigitsRun run;
  run.net += R"(
layer { name: "more" type: "InnerProduct" bottom: "data" top: "more" include { phase: TEST }
        inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "end" type: "Silence" bottom: "more" include { phase: TEST } }
)";
  const SolverSpec spec = run.Load();
  auto planned = Planned(spec, *device_);
  EXPECT_EQ(planned, Built(spec, *device_));
  EXPECT_EQ(planned.at("parameters"), 2 * kArray);
  for (const char* same : {"gradients", "rule_state", "snapshot"}) {
    EXPECT_EQ(planned[same], before.count(same) > 0 ? before.at(same) : 0) << same;
  }
}

// The 40 records make batches of 16, so the last batch of an exact pass needs its own net.
TEST_F(RuleMemoryTest, CountsTheLastBatchOfAnExactTestPass) {
  DigitsRun run;
  const size_t whole = Planned(run.Load(), *device_).at("values");
  run.solver = Edited(run.solver, "test_iter: 3", "test_iter: 0");
  const SolverSpec spec = run.Load();
  const auto planned = Planned(spec, *device_);
  EXPECT_EQ(planned, Built(spec, *device_));
  EXPECT_GT(planned.at("values"), whole);
}

TEST(MemoryEstimatorTest, PlansTheTestNetsOnceForAllTrainingBatches) {
  const DigitsRun run;
  SolverSpec spec = run.Load();
  const std::unique_ptr<Device> device = MakeTestDevice(1);
  std::vector<std::string> titles;
  MemoryEstimator estimator(
      *device, BufferReuse::kShared,
      [&](const std::string& title, const Graph&) { titles.push_back(title); });
  const MemoryEstimate first = estimator.Estimate(spec);
  EXPECT_EQ(first.batch, 16);
  EXPECT_THAT(titles, ElementsAre("training net", "test net (#0)"));
  const SolverSpec larger = run.Load({"layer[digits,TRAIN].data_param.batch_size=64"});
  const MemoryEstimate second = estimator.Estimate(larger);
  EXPECT_THAT(titles, ElementsAre("training net", "test net (#0)", "training net"));
  EXPECT_EQ(second.batch, 64);
  EXPECT_GT(second.activations, first.activations);
  EXPECT_EQ(BytesByKey(second.Items({})), BytesByKey(EstimateMemory(larger, *device).Items({})));
}

TEST(MemoryEstimatorTest, PlansTheNetInWhichAllLayersLearn) {
  DigitsRun run;
  run.net = WithConvolutions(run.net, 4);
  const std::unique_ptr<Device> device = MakeTestDevice(1);
  const std::string freeze = "layer[/c[0-9]/].freeze=true";
  const auto all = Planned(run.Load(), *device);
  const auto frozen = Planned(run.Load({freeze}), *device);
  for (const char* less : {"gradients", "values"}) {
    EXPECT_LT(frozen.at(less), all.at(less)) << less;
  }
  EXPECT_EQ(frozen, Built(run.Load({freeze}), *device));
  const SolverSpec spec = run.Load({freeze, "unfreeze_at=5"});
  EXPECT_EQ(Planned(spec, *device), all) << "from iteration 5 on";
  EXPECT_EQ(Built(spec, *device), all);
}

TEST(MemoryItemsTest, ListWhatARunHoldsOnAGpuAndWhatIsAnEstimate) {
  const DigitsRun run;
  const std::unique_ptr<Device> device = MakeMetaDevice();
  const MemoryEstimate estimate = EstimateMemory(run.Load(), *device);
  const MemoryRoom gpu = {.gpu = true, .estimated = true, .name = ""};
  const std::vector<MemoryItem> items = estimate.Items(gpu);
  std::vector<std::string> names;
  for (const MemoryItem& item : items) names.push_back(item.name);
  EXPECT_THAT(names, ElementsAre("parameters", "gradients", "rule state", "values of all nets",
                                 "batches in transfer", "context and libraries (estimate)"));
  const auto bytes = BytesByKey(items);
  EXPECT_EQ(bytes.at("parameters"), DigitsRun::kWeightBytes);
  EXPECT_EQ(bytes.at("rule_state"), DigitsRun::kWeightBytes);
  EXPECT_GE(bytes.at("staging"), 2u * 16 * 784) << "of both nets, as bytes";
  const auto on_real_gpu = BytesByKey(estimate.Items({.gpu = true, .name = ""}));
  EXPECT_EQ(on_real_gpu.count("context"), 0u) << "the driver tells what is free beside it";
}

TEST(MemoryItemsTest, ArePrintedTheLargestFirst) {
  const std::vector<MemoryItem> items = {{"parameters", "parameters", 3 << 20},
                                         {"gradients", "gradients", 0},
                                         {"values", "values of all nets", 5 << 20, true}};
  EXPECT_EQ(ToText(items), "  5.00 MiB  values of all nets\n  3.00 MiB  parameters\n");
  EXPECT_EQ(TotalBytes(items), size_t{8} << 20);
  EXPECT_THAT(ToJson(items).ToString(), HasSubstr("\"together\": 8388608"));
  EXPECT_EQ(DescribeLargest(items),
            "values of all nets 5.00 MiB, parameters 3.00 MiB, "
            "gradients 0 B");
}

}  // namespace
}  // namespace trainer
