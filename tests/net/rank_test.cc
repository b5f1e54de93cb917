// Differences between the replicas of a net, and what they have in common.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/net_text.h"
#include "support/temp_folder.h"
#include "support/test_device.h"
#include "trainer/base/text/text.h"
#include "trainer/hdf5/appender.h"
#include "trainer/net/net.h"

namespace trainer {
namespace {

using testing::ElementsAreArray;

class ReplicaTest : public testing::Test {
 protected:
  // Returns the values of `blob` in some passes of a replica's training net.
  static std::vector<float> Passes(const std::string& text, const Rank& rank,
                                   const std::string& blob, int passes) {
    return PassesOfParts(text, rank, 1, blob, passes)[0];
  }

  // Returns the values of a net that computes `parts` replicas, by replica.
  static std::vector<std::vector<float>> PassesOfParts(const std::string& text, const Rank& first,
                                                       int parts, const std::string& blob,
                                                       int passes) {
    const NetSpec spec = NetFromText(text);
    const auto device = MakeTestDevice(2);
    ParamStore params(*device);
    NetOptions options = QuietOptions(caffe::TRAIN);
    options.rank = first;
    options.virtual_ranks = parts;
    Net net(spec, options, *device, params);
    std::vector<std::vector<float>> all(static_cast<size_t>(parts));
    for (int pass = 0; pass < passes; ++pass) {
      for (int part = 0; part < parts; ++part) {
        net.Run({.mode = Pass::Mode::kForward, .virtual_rank = part});
        net.TakeLoss();
        const Tensor value = net.Value(blob);
        std::vector<float> host(static_cast<size_t>(value.Count()));
        net.ReadNchw(value, host);
        std::vector<float>& of_part = all[static_cast<size_t>(part)];
        of_part.insert(of_part.end(), host.begin(), host.end());
      }
    }
    EXPECT_EQ(net.passes(), static_cast<uint32_t>(passes));
    return all;
  }
};

TEST_F(ReplicaTest, DropsOtherElementsThanTheOthersAndRank0ThoseOfARunAlone) {
  const std::string net = R"(
    layer { name: "data" type: "DummyData" top: "x"
            dummy_data_param { shape { dim: 10 dim: 30 } data_filler { value: 1 } } }
    layer { name: "drop" type: "Dropout" bottom: "x" top: "mask" })";
  const std::vector<float> alone = Passes(net, {}, "mask", 2);
  EXPECT_THAT(Passes(net, {0, 4}, "mask", 2), ElementsAreArray(alone));
  std::vector<std::vector<float>> seen = {alone};
  for (int rank = 1; rank < 4; ++rank) {
    const std::vector<float> mask = Passes(net, {rank, 4}, "mask", 2);
    for (const std::vector<float>& other : seen) {
      int equal = 0;
      for (size_t i = 0; i < mask.size(); ++i) equal += mask[i] == other[i];
      EXPECT_NEAR(equal, 300, 60) << "independent masks agree in half of 600 elements";
    }
    seen.push_back(mask);
  }
}

TEST_F(ReplicaTest, StartsFromTheSameWeights) {
  const std::string net = R"(
    layer { name: "data" type: "DummyData" top: "x"
            dummy_data_param { shape { dim: 2 dim: 3 } data_filler { value: 1 } } }
    layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
            inner_product_param { num_output: 5 weight_filler { type: "xavier" } } })";
  EXPECT_THAT(Passes(net, {2, 3}, "ip", 1), ElementsAreArray(Passes(net, {}, "ip", 1)));
}

// Shuffled data comes in the order of a run alone: each replica takes its part of it.
TEST_F(ReplicaTest, SharesOneOrderOfTheData) {
  const TempFolder folder;
  {
    Hdf5Appender file(folder / "rows.h5");
    std::vector<float> rows(24);
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i);
    file.Append("x", std::vector<int64_t>{24, 1}, rows);
    file.Flush();
  }
  WriteText(folder / "list.txt", folder / "rows.h5");
  const auto net = [&](int batch) {
    return Join("layer { name: 'rows' type: 'HDF5Data' top: 'x' hdf5_data_param { source: '",
                folder / "list.txt", "' shuffle: true batch_size: ", batch, " } }");
  };
  const std::vector<float> order = Passes(net(6), {}, "x", 8);
  for (int rank = 0; rank < 3; ++rank) {
    const std::vector<float> part = Passes(net(2), {rank, 3}, "x", 8);
    for (size_t i = 0; i < part.size(); ++i) {
      EXPECT_EQ(part[i], order[3 * i + static_cast<size_t>(rank)]) << rank << " " << i;
    }
  }
}

TEST_F(ReplicaTest, OfANetOfSeveralPartsHaveTheirOwnNumbersMasksAndStates) {
  const std::string net = R"(
    layer { name: "data" type: "DummyData" top: "x" top: "cont"
            dummy_data_param { shape { dim: 2 dim: 3 dim: 4 } shape { dim: 2 dim: 3 }
              data_filler { type: "gaussian" } data_filler { value: 1 } } }
    layer { name: "lstm" type: "LSTM" bottom: "x" bottom: "cont" top: "lstm"
            recurrent_param { num_output: 5 weight_filler { type: "xavier" } } }
    layer { name: "drop" type: "Dropout" bottom: "lstm" top: "drop" })";
  for (const int first : {0, 2}) {
    const auto parts = PassesOfParts(net, {first, 4}, 2, "drop", 3);
    for (int part = 0; part < 2; ++part) {
      EXPECT_THAT(parts[static_cast<size_t>(part)],
                  ElementsAreArray(Passes(net, {first + part, 4}, "drop", 3)));
    }
    EXPECT_NE(parts[0], parts[1]);
  }
}

}  // namespace
}  // namespace trainer
